"""The HTTP API over real connections."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from maskoban.boards import Level, read
from maskoban.cli.app import app
from maskoban.solving import rate, solves
from maskoban.studio.app import create_app
from tests.studio.serving import KNOWN, PATIENCE, known_model, picky_model, serving

ONE = "######\n#@$ .#\n######"
STUCK = "#######\n#@$#.##\n#######"


def ask(known: str, what: str, **asked: Any) -> Any:
    answer = httpx.post(f"{known}/api/{what}", json=asked, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, json.loads(value)


def stream(known: str, what: str, **asked: Any) -> list[tuple[str, Any]]:
    with httpx.stream("POST", f"{known}/api/{what}/stream", json=asked, timeout=PATIENCE) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(events(answer.iter_lines()))


def test_health_says_what_is_served(known: str) -> None:
    ask(known, "generate", count=1)  # the model is loaded by then
    health = httpx.get(f"{known}/api/health").json()
    assert health["status"] == "ok"
    assert (health["model"]["name"], health["model"]["height"], health["model"]["width"]) == ("known", 10, 10)
    assert [sampler["name"] for sampler in health["model"]["samplers"]] == ["best", "plain", "fast"]


def test_solve(known: str) -> None:
    found = ask(known, "solve", board=ONE)
    assert (found["verdict"], found["solution"], found["pushes"], found["moves"]) == ("solved", "RR", 2, 2)
    found = ask(known, "solve", board=STUCK, mode="pushes")
    assert (found["verdict"], found["solution"], found["pushes"]) == ("unsolvable", None, None)


def test_rate(known: str) -> None:
    rating, word = ask(known, "rate", board=ONE), rate(Level.parse(ONE)).difficulty
    assert (rating["verdict"], rating["pushes"], rating["word"]) == ("solved", 2, word)
    rating = ask(known, "rate", board="@ .")
    assert (rating["verdict"], rating["reason"], rating["word"]) == ("malformed", "no boxes", None)


def test_repair(known: str) -> None:
    mended = ask(known, "repair", board=STUCK)
    assert (mended["verdict"], mended["walls"]) == ("repaired", [[[1, 3]]])
    assert mended["board"] == "#######\n#@$ .##\n#######"
    assert ask(known, "repair", board=ONE)["verdict"] == "solvable"


def test_dead_cells(known: str) -> None:
    # A box next to the far wall never comes back.
    assert ask(known, "dead-cells", board="#######\n#@$. ##\n#######")["dead"] == [[1, 1], [1, 4]]


@pytest.mark.parametrize("kind", ["xsb", "sok", "slc", "npz", "npy"])
def test_convert_there_and_back(known: str, kind: str) -> None:
    level = {"board": ONE, "title": "One", "author": "Me", "comment": "", "solutions": ["RR"]}
    file = ask(known, "convert", levels=[level], to=kind)
    again = ask(known, "convert", content=file["content"], encoding=file["encoding"], to="sok")
    assert [each["board"] for each in again["levels"]] == [ONE]
    if kind not in ("xsb", "npy"):
        assert again["levels"][0]["title"] == "One"


def test_pictures(known: str) -> None:
    def picture(kind: str) -> httpx.Response:
        answer = httpx.post(f"{known}/api/picture", json={"board": ONE, "format": kind}, timeout=PATIENCE)
        assert answer.status_code == 200, answer.text
        return answer

    assert Image.open(BytesIO(picture("png").content)).size == (6 * 48, 3 * 48)
    assert picture("svg").text.startswith("<svg ")
    gif = Image.open(BytesIO(picture("gif").content))
    assert gif.n_frames == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "fields", [{}, {"sampler": "plain"}, {"sampler": "fast", "sweeps": 1}, {"temperature": 1.5}]
)
def test_generate_gives_the_boards_of_the_library(fields: dict[str, Any]) -> None:
    with serving(create_app(picky_model)) as address:
        sampled = ask(address, "generate", count=3, seed=5, **fields)
        sent = stream(address, "generate", count=3, seed=5, **fields)
    model = picky_model()
    config = model.sampler(**{"sampler": "best", **fields})
    expected = model.generate(3, seed=5, sampler=config)
    assert [each["board"] for each in sampled["boards"]] == [str(level) for level in expected]
    assert [each["title"] for each in sampled["boards"]] == [level.title for level in expected]
    assert (sampled["seed"], sampled["model"], sampled["sampler"]) == (5, "picky", asdict(config))
    assert next(data for name, data in sent if name == "start")["sampler"] == asdict(config)
    judged = {data["number"]: data["board"] for name, data in sent if name == "judged"}
    assert [judged[number] for number in range(3)] == [str(level) for level in expected]


def test_complete_keeps_the_given_cells(known: str) -> None:
    half = KNOWN.strip().replace("# @$ .   #", "# @ $.  *#")
    found = ask(known, "complete", board=half, count=4, seed=1)
    boards = [each["board"] for each in found["boards"]]
    assert boards == [str(level) for level in known_model().complete(Level.parse(half), 4, seed=1)]
    assert len(set(boards)) > 1
    for board in boards:
        assert all(one in (other, "?") for one, other in zip(half, board, strict=True))
    sent = stream(known, "complete", board=half, count=4, seed=1)
    assert [data["board"] for name, data in sent if name == "judged"] == boards


def test_the_solution_of_a_sampled_board_solves_it(known: str) -> None:
    board = ask(known, "generate", count=1, seed=3)["boards"][0]["board"]
    assert solves(Level.parse(board), ask(known, "solve", board=board, mode="pushes")["solution"])


def test_an_npz_file_travels_as_base64(known: str) -> None:
    file = ask(known, "convert", content=ONE, to="npz")
    assert file["encoding"] == "base64"
    assert b64decode(file["content"]).startswith(b"PK")
    again = ask(known, "convert", content=b64encode(ONE.encode()).decode(), encoding="base64")
    assert again["levels"][0]["board"] == ONE


def test_the_shipped_model_gives_the_boards_of_the_command_line(tmp_path: Path) -> None:
    with serving(create_app()) as address:
        sampled = ask(address, "generate", count=2, seed=11)
        solvable = ask(address, "generate", count=2, seed=11, only_solvable=True)
    for found, options in ((sampled, []), (solvable, ["--only-solvable"])):
        file = str(tmp_path / "boards.sok")
        app(["generate", "-n", "2", "--seed", "11", "--out", file, *options], standalone_mode=False)
        assert [each["board"] for each in found["boards"]] == [str(level) for level in read(file)]


def test_the_largest_board_may_have_any_line_ending(known: str) -> None:
    rows = ["#" * 64, "#@$." + " " * 59 + "#", *["#" + " " * 62 + "#"] * 61, "#" * 64]
    assert ask(known, "solve", board="\r\n".join(rows))["pushes"] == 1
