"""Fuzzes the studio's HTTP API: requests made from its own OpenAPI description, many of them wrong on purpose.

    python -m tests.fuzz.http_api --minutes 10 --seed 1

Every answer must have a status that the description has, and an error must say in one sentence what is wrong. The app
and its solver processes must still work at the end.
"""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import numpy as np
from fastapi.testclient import TestClient

from maskoban.diffusion.model import Model
from maskoban.studio.app import create_app
from tests.diffusion.dummies import Dummy
from tests.fuzz.core import SEEDS
from tests.fuzz.readers import mutations
from tests.fuzz.report import Budget, Report, main

MAX_SECONDS = 30.0  # of CPU, in the server's own process

#: Values that some program somewhere takes badly.
HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 1e308, -1e308, float("nan"), float("inf"), 0.1, "", " ", "\0",
    "\ud800", "😀" * 50, "../../etc/passwd", "#" * 100_000, "\n" * 100_000, "@", "5#|", "9" * 5000, "<" * 1000,
    [], {}, [[]] * 100, {"": {}}, ["#@$.#"] * 300,
]  # fmt: skip


def tiny_model() -> Model:
    """A model that is fast: every cell is wall or floor."""
    p = np.zeros((9, 7))
    p[:, :2] = 0.5
    return Model(Dummy(p, height=5, width=5, margin=1), {"name": "tiny"})


class Requests:
    """Bodies for the operations of an OpenAPI description."""

    def __init__(self, description: dict[str, Any], seed: int) -> None:
        self.description, self.rng = description, random.Random(seed)
        self.files = mutations(seed)
        self.operations = [
            (method.upper(), path, operation)
            for path, methods in description["paths"].items()
            for method, operation in methods.items()
        ]

    def next(self) -> tuple[str, str, bytes | None, dict[str, str], set[int]]:
        """Method, path, body, headers, and the statuses that the description has for them."""
        method, path, operation = self.rng.choice(self.operations)
        statuses = {int(status) for status in operation["responses"]} | {422}
        if "requestBody" not in operation:
            return method, path, None, {}, statuses
        body = self.value(operation["requestBody"]["content"]["application/json"]["schema"])
        if (
            isinstance(body, dict)
            and isinstance(body.get("seconds"), int | float)
            and self.rng.random() < 0.95
        ):
            body["seconds"] = 0.1  # a search of a minute is no better a test
        data = json.dumps(body).encode()
        if self.rng.random() < 0.1:
            data = self.damaged(data)
        kinds = ["application/json"] * 20 + ["text/plain", "", "application/json; charset=utf-16"]
        return method, path, data, {"content-type": self.rng.choice(kinds)}, statuses

    def damaged(self, data: bytes) -> bytes:
        place = self.rng.randrange(len(data) + 1)
        wild = [
            b"\xff",
            b"\0",
            b'"',
            b"[" * 2000,
            b"{" * 2000,
            b"9" * 5000,
            b"1e999",
            b"NaN",
            b"\\ud800",
            b",,",
        ]
        return data[:place] + self.rng.choice(wild) + data[place + self.rng.choice((0, 1, 10)) :]

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        """A value of a schema, or sometimes a hostile one."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.value(self.description["components"]["schemas"][name], depth)
        if self.rng.random() < 0.06:
            return self.rng.choice(HOSTILE)
        if "anyOf" in schema:
            return self.value(self.rng.choice(schema["anyOf"]), depth)
        if "const" in schema or "enum" in schema:
            return self.rng.choice(schema.get("enum", [schema.get("const")]))
        match schema.get("type"):
            case "object":
                needed = schema.get("required", [])
                return {
                    name: self.value(part, depth + 1)
                    for name, part in schema.get("properties", {}).items()
                    if self.rng.random() < (0.97 if name in needed else 0.5)
                }
            case "array":
                return [
                    self.value(schema.get("items", {}), depth + 1) for _ in range(self.rng.choice((0, 1, 3)))
                ]
            case "integer" | "number" as kind:
                low, high = schema.get("minimum", 0), schema.get("maximum", 5)
                number = self.rng.choice((low, low + 1, min(high, low + 3), high, high + 1, low - 1))
                return number if kind == "integer" else float(number)
            case "boolean":
                return self.rng.random() < 0.5
            case "null":
                return None
            case _:
                return self.text()

    def text(self) -> str:
        match self.rng.randrange(5):
            case 0 | 1:
                return self.rng.choice(SEEDS)
            case 2:
                side = self.rng.randint(1, 30)
                row = lambda: "".join(self.rng.choice("## @$.*+?") for _ in range(side))  # noqa: E731
                return "\n".join(row() for _ in range(self.rng.randint(1, 30)))
            case 3:
                return base64.b64encode(next(self.files)).decode()
            case _:
                return next(self.files).decode("utf-8", "replace")


def check(response: Any, statuses: set[int]) -> str:
    """The kind of the answer; raises what is wrong with it."""
    status = response.status_code
    assert status in statuses, f"status {status}, expected one of {sorted(statuses)}: {response.text[:500]}"
    if status >= 400:
        message = json.dumps(response.json())
        assert "Traceback" not in message
        assert len(message) < 10_000, f"a message of {len(message):,} characters"
    return str(status)


def run(budget: Budget, seed: int = 0) -> Report:
    """Fuzz as long as the budget says."""
    report = Report()
    with TestClient(
        create_app(tiny_model), base_url="http://127.0.0.1", raise_server_exceptions=False
    ) as client:
        requests = Requests(client.get("/api/openapi.json").json(), seed)
        while budget.left(report):
            report.inputs += 1
            method, path, data, headers, statuses = requests.next()
            with report.checking(
                lambda m=method, p=path, d=data, h=headers: f"{m} {p} {h} {d!r}", MAX_SECONDS
            ):
                response = client.request(method, path, content=data, headers=headers)
                report.outcomes[check(response, statuses)] += 1
        with report.checking(lambda: "the last request", MAX_SECONDS):
            solved = client.post("/api/solve", json={"board": SEEDS[0]})
            assert solved.json()["verdict"] == "solved", solved.text
    return report


if __name__ == "__main__":
    main(run, "Fuzz the studio's HTTP API.")
