"""The events of sampling, without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskoban.boards import Level
from maskoban.diffusion.loading import load
from maskoban.diffusion.model import Model
from maskoban.solving import rate
from maskoban.studio.limits import MAX_SAMPLED
from maskoban.studio.sampling import MEASURED, Event, SamplingThreads, facts, sample
from maskoban.studio.schemas import Complete, Generate, Judgement
from tests.studio.serving import KNOWN, known_model, picky_model

REPORTS = Path(__file__).parents[2] / "docs" / "reports"


async def judge(board: str) -> Judgement:
    return Judgement(**rate(Level.parse(board)).as_json())


def events(load: Callable[[], Model], request: Generate, judge: Callable[[str], Any] = judge) -> list[Event]:
    async def collect() -> list[Event]:
        threads = SamplingThreads(load)
        try:
            return [event async for event in sample(threads, judge, request)]
        finally:
            threads.close()

    return asyncio.run(collect())


def named(found: list[Event], name: str) -> list[dict[str, Any]]:
    return [data for each, data in found if each == name]


@pytest.mark.parametrize("sweeps", [0, 2])
def test_every_commit_is_sent_with_its_probabilities(sweeps: int) -> None:
    request = Generate(count=2, seed=9, temperature=1.5, sweeps=sweeps)
    found = events(known_model, request)
    assert [name for name, _ in found if name != "commit"] == [
        "start", "boards", "attempt", "judged", "judged", "end",
    ]  # fmt: skip
    model = known_model()
    expected = model.trajectory(2, seed=9, sampler=model.sampler("best", temperature=1.5, sweeps=sweeps))
    commits = named(found, "commit")
    assert np.array([commit["cells"] for commit in commits]).T.tolist() == expected.cell.tolist()
    assert np.array([commit["tiles"] for commit in commits]).T.tolist() == expected.tile.tolist()
    shares = np.array([commit["probabilities"] for commit in commits]).transpose(1, 0, 2)
    assert np.allclose(shares, expected.probabilities, atol=1e-4)
    assert [each["board"] for each in named(found, "judged")] == [
        str(Level(board)) for board in expected.boards
    ]
    assert named(found, "start")[0]["evaluations"] == len(commits)


def test_a_rejected_board_starts_again() -> None:
    found = events(picky_model, Generate(count=4, seed=3))
    boards = {number: np.full(100, 7) for number in range(4)}
    attempts = dict.fromkeys(range(4), 1)
    for name, data in found:
        if name == "commit":
            for number, cell, tile in zip(data["numbers"], data["cells"], data["tiles"], strict=True):
                boards[number][cell] = tile
        elif name == "attempt":
            for number, accepted in zip(data["numbers"], data["accepted"], strict=True):
                attempts[number] += not accepted
    expected = picky_model().trajectory(4, seed=3)
    assert attempts == dict(enumerate(expected.attempts.tolist()))
    assert max(attempts.values()) > 1
    for judged in named(found, "judged"):
        number, tokens = judged["number"], Level.parse(judged["board"]).tokens
        assert judged["attempts"] == attempts[number]
        assert (tokens == expected.boards[number]).all()
        assert (boards[number].reshape(10, 10)[1:-1, 1:-1] == tokens[1:-1, 1:-1]).all()


def test_a_filter_keeps_the_first_boards_of_the_sequence_that_match() -> None:
    even = [number for number in range(40) if _floor_first(number)]

    async def picky(board: str) -> Judgement:
        solved = board.split("\n")[1][3] == " "
        return Judgement(
            **{**rate(Level.parse(board)).as_json(), "verdict": "solved" if solved else "unsolvable"}
        )

    found = events(known_model, Generate(count=3, seed=5, only_solvable=True), picky)
    assert [each["number"] for each in named(found, "judged") if each["kept"]] == even[:3]
    rounds = [data["numbers"] for data in named(found, "boards")]
    assert [*chain(*rounds)] == list(range(named(found, "end")[0]["sampled"]))
    assert named(found, "end") == [{"kept": 3, "sampled": rounds[-1][-1] + 1}]


def _floor_first(number: int) -> bool:
    board = known_model().trajectory(seed=5, numbers=[number]).boards[0]
    return bool(board[1, 3] == 1)


def test_a_filter_that_nothing_matches_ends() -> None:
    found = events(known_model, Generate(count=2, seed=5, difficulty="expert"))
    assert named(found, "end") == [{"kept": 0, "sampled": 2 * MAX_SAMPLED}]


def test_complete_keeps_the_given_cells_and_has_no_critic() -> None:
    half = KNOWN.strip().replace("# @$ .   #", "# @ $.  *#")
    found = events(picky_model, Complete(board=half, count=4, seed=1))
    assert named(found, "start")[0]["sampler"]["critic"] is False
    for each in named(found, "judged"):
        assert all(one in (other, "?") for one, other in zip(half, each["board"], strict=True))


def test_the_cost_that_is_shown_is_the_cost_that_was_measured() -> None:
    def report(name: str) -> Any:
        return json.loads((REPORTS / name / "report.json").read_text())

    best, plain = report("best"), report("best-plain")
    fast = next(row for row in best["steps"] if row["steps"] == 16)
    measured = {
        "best": (best["solvability"]["solvable"]["share"], best["source"]["attempts"]),
        "plain": (plain["solvability"]["solvable"]["share"], plain["source"]["attempts"]),
        "fast": (fast["solvable"]["share"], fast["attempts"]),
    }
    for name, (solvable, attempts) in measured.items():
        assert MEASURED["best", name] == (round(solvable, 3), round(attempts, 3))
    samplers = {sampler.name: sampler for sampler in facts(load()).samplers}
    assert [round(samplers[name].evaluations or 0) for name in ("best", "plain", "fast")] == [171, 64, 16]
    assert facts(picky_model()).samplers[0].solvable is None


def test_another_size_is_sampled_by_the_model_any_and_difficulty_is_a_condition() -> None:
    request = Generate(count=3, seed=4, sampler="fast", size="6x7", boxes=2, difficulty="hard")
    found = events(known_model, request)
    (head,) = named(found, "start")
    assert head["model"] == "any"
    expected = load("any").given(size=(6, 7), boxes=2, difficulty="hard").generate(3, 4, "fast")
    assert [each["board"] for each in named(found, "judged")] == [str(level) for level in expected]
    assert all(each["kept"] for each in named(found, "judged"))


def test_a_board_of_another_size_is_completed_by_the_model_any() -> None:
    board = "######\n#@$??#\n#????#\n#???.#\n######"
    found = events(known_model, Complete(count=2, seed=4, sampler="fast", board=board))
    assert named(found, "start")[0]["model"] == "any"
    for each in named(found, "judged"):
        assert all(given in (drawn, "?") for given, drawn in zip(board, each["board"], strict=True))


def test_a_number_of_boxes_of_the_first_model_is_a_filter() -> None:
    found = events(known_model, Generate(count=2, seed=4, boxes=2))
    assert named(found, "start")[0]["model"] == "any"  # other than four boxes
    found = events(known_model, Generate(count=1, seed=4, boxes=4))
    assert not any(each["kept"] for each in named(found, "judged"))  # the known board has two
