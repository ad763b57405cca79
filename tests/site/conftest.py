"""The built site, and its JavaScript under Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.site.serving import built_site
from tests.studio.conftest import static as static


@pytest.fixture(scope="session")
def site() -> Path:
    return built_site()


class Node:
    """The modules of the site in a process of Node; ``node(kind, ...)`` runs a job of harness.mjs."""

    def __init__(self, folder: Path) -> None:
        command = ["node", str(Path(__file__).with_name("harness.mjs")), str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, kind: str, **job: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kind": kind, **job}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="session")
def node(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    if shutil.which("node") is None:
        pytest.skip("this test needs node")
    folder = tmp_path_factory.mktemp("node")
    for file in ("board.js", "solver.js", "rng.js", "sampler.js", "levels.js", "solver.wasm", "site.json"):
        shutil.copyfile(site / file, folder / file)
    (folder / "package.json").write_text('{"type": "module"}')
    running = Node(folder)
    yield running
    running.close()
