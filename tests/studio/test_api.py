"""The HTTP API over real connections."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from maskoban.boards import Level
from maskoban.solving import solves
from maskoban.studio.app import create_app
from tests.studio.serving import KNOWN, known_model, serving

ONE = "######\n#@$ .#\n######"
STUCK = "#######\n#@$#.##\n#######"


def ask(studio: str, what: str, **asked: Any) -> Any:
    answer = httpx.post(f"{studio}/api/{what}", json=asked, timeout=60)
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


def stream(studio: str, what: str, **asked: Any) -> list[tuple[str, Any]]:
    with httpx.stream("POST", f"{studio}/api/{what}/stream", json=asked, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(events(answer.iter_lines()))


def test_health_says_what_is_served(studio: str) -> None:
    ask(studio, "generate", count=1)  # the model is there once it has drawn
    health = httpx.get(f"{studio}/api/health").json()
    assert health["status"] == "ok"
    assert health["model"] == {"name": "known", "height": 10, "width": 10}


def test_solve(studio: str) -> None:
    found = ask(studio, "solve", board=ONE)
    assert (found["verdict"], found["solution"], found["pushes"], found["moves"]) == ("solved", "RR", 2, 2)
    found = ask(studio, "solve", board=STUCK, mode="pushes")
    assert (found["verdict"], found["solution"], found["pushes"]) == ("unsolvable", None, None)


def test_rate(studio: str) -> None:
    rating = ask(studio, "rate", board=ONE)
    assert (rating["verdict"], rating["pushes"], rating["word"]) == ("solved", 2, "easy")
    rating = ask(studio, "rate", board="@ .")
    assert (rating["verdict"], rating["reason"], rating["word"]) == ("malformed", "no boxes", None)


def test_repair(studio: str) -> None:
    mended = ask(studio, "repair", board=STUCK)
    assert (mended["verdict"], mended["walls"]) == ("repaired", [[[1, 3]]])
    assert mended["board"] == "#######\n#@$ .##\n#######"
    assert ask(studio, "repair", board=ONE)["verdict"] == "solvable"


def test_dead_cells(studio: str) -> None:
    # A box next to the far wall never comes back.
    assert ask(studio, "dead-cells", board="#######\n#@$. ##\n#######")["dead"] == [[1, 1], [1, 4]]


@pytest.mark.parametrize("kind", ["xsb", "sok", "slc", "npz", "npy"])
def test_convert_there_and_back(studio: str, kind: str) -> None:
    level = {"board": ONE, "title": "One", "author": "Me", "comment": "", "solutions": ["RR"]}
    file = ask(studio, "convert", levels=[level], to=kind)
    again = ask(studio, "convert", content=file["content"], encoding=file["encoding"], to="sok")
    assert [each["board"] for each in again["levels"]] == [ONE]
    if kind not in ("xsb", "npy"):
        assert again["levels"][0]["title"] == "One"


def test_pictures(studio: str) -> None:
    def picture(kind: str) -> httpx.Response:
        answer = httpx.post(f"{studio}/api/picture", json={"board": ONE, "format": kind}, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer

    assert Image.open(BytesIO(picture("png").content)).size == (6 * 48, 3 * 48)
    assert picture("svg").text.startswith("<svg ")
    gif = Image.open(BytesIO(picture("gif").content))
    assert gif.n_frames == 3  # type: ignore[attr-defined]


def test_generate_gives_the_boards_of_the_seed(studio: str) -> None:
    drawn = ask(studio, "generate", count=3, seed=5)
    assert drawn["seed"] == 5
    assert drawn["model"] == "known"
    expected = [str(level) for level in known_model().generate(3, seed=5)]
    assert [each["board"] for each in drawn["boards"]] == expected
    assert {each["judgement"]["verdict"] for each in drawn["boards"]} == {"solved"}


@pytest.mark.parametrize("polish", [0, 2])
def test_the_stream_tells_every_commit_of_the_drawing(studio: str, polish: int) -> None:
    told = stream(studio, "generate", count=2, seed=9, temperature=1.5, polish=polish)
    assert [name for name, _ in told if name not in ("reveal", "judged")] == ["start", "finished", "end"]
    reveals = [data for name, data in told if name == "reveal"]
    commits = known_model().trajectory(2, seed=9, temperature=1.5, polish=polish)
    assert np.array([reveal["cells"] for reveal in reveals]).T.tolist() == commits.cell.tolist()
    assert np.array([reveal["tiles"] for reveal in reveals]).T.tolist() == commits.tile.tolist()
    shares = np.array([reveal["probabilities"] for reveal in reveals]).transpose(1, 0, 2)
    assert np.allclose(shares, commits.probabilities, atol=1e-4)
    boards = next(data for name, data in told if name == "finished")["boards"]
    assert boards == [str(Level(board)) for board in commits.frames()[-1]]
    judged = [data for name, data in told if name == "judged"]
    assert [each["number"] for each in judged] == [0, 1]
    assert judged[0]["judgement"]["pushes"] == 3


def test_complete_keeps_the_drawn_cells(studio: str) -> None:
    half = KNOWN.strip().replace("# @$ .   #", "# @ $.  *#")
    drawn = ask(studio, "complete", board=half, count=4, seed=1)
    assert len({each["board"] for each in drawn["boards"]}) > 1
    for each in drawn["boards"]:
        assert all(one in (other, "?") for one, other in zip(half, each["board"], strict=True))
    told = stream(studio, "complete", board=half, count=4, seed=1)
    boards = next(data for name, data in told if name == "finished")["boards"]
    assert boards == [each["board"] for each in drawn["boards"]]


def test_what_was_drawn_can_be_solved_by_what_is_answered(studio: str) -> None:
    board = ask(studio, "generate", count=1, seed=3)["boards"][0]["board"]
    assert solves(Level.parse(board), ask(studio, "solve", board=board, mode="pushes")["solution"])


def test_an_npz_file_travels_as_base64(studio: str) -> None:
    file = ask(studio, "convert", content=ONE, to="npz")
    assert file["encoding"] == "base64"
    assert b64decode(file["content"]).startswith(b"PK")
    again = ask(studio, "convert", content=b64encode(ONE.encode()).decode(), encoding="base64")
    assert again["levels"][0]["board"] == ONE


def test_the_shipped_model_draws() -> None:
    with serving(create_app()) as address:
        told = stream(address, "generate", count=1, seed=7)
        drawn = next(data for name, data in told if name == "finished")["boards"]
    from maskoban.diffusion.model import load

    assert drawn == [str(level) for level in load().generate(1, seed=7, critic=False)]


def test_the_largest_board_may_have_any_line_ending(studio: str) -> None:
    rows = ["#" * 64, "#@$." + " " * 59 + "#", *["#" + " " * 62 + "#"] * 61, "#" * 64]
    assert ask(studio, "solve", board="\r\n".join(rows))["pushes"] == 1
