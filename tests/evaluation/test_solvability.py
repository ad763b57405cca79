"""Solvable, unsolvable, unknown and malformed boards are told apart and counted."""

from __future__ import annotations

import numpy as np
import pytest

from maskoban.boards.synth import synthesize
from maskoban.errors import MaskobanError
from maskoban.evaluation import measure_solvability
from maskoban.solving import Limits, solve, solve_many

from .boards import NO_PLAYER, ONE_WALL, SOLVABLE, TWO_GOALS, drawn


def test_every_verdict_is_counted() -> None:
    boards = drawn(SOLVABLE, SOLVABLE, SOLVABLE, ONE_WALL, NO_PLAYER, TWO_GOALS, NO_PLAYER)
    found = measure_solvability(boards, solve_many(boards))
    assert (found.solvable.count, found.solvable.total) == (3, 7)
    assert (found.unsolvable.count, found.unknown.count, found.malformed.count) == (1, 0, 3)
    assert list(found.malformed_by_reason.items()) == [("no player", 2), ("1 box but 2 goals", 1)]


def test_a_search_cut_short_is_unknown() -> None:
    boards = drawn(SOLVABLE)
    found = measure_solvability(boards, solve_many(boards, limits=Limits(states=0)))
    assert (found.solvable.count, found.unknown.count) == (0, 1)


def test_by_boxes_agrees_with_one_by_one() -> None:
    boards = np.concatenate([synthesize(20, 7, 8, boxes, seed=boxes) for boxes in (1, 2, 3)])
    boards[::3, 3, 3] = 5  # a box on a goal more
    found = measure_solvability(boards, solve_many(boards))
    slow: dict[int, list[int]] = {}
    for board in boards:
        boxes = sum(tile in (3, 5) for tile in board.ravel().tolist())
        slow.setdefault(boxes, []).append(int(solve(board).solved))
    assert {n: (s.count, s.total) for n, s in found.by_boxes.items()} == {
        n: (sum(slow[n]), len(slow[n])) for n in sorted(slow)
    }


def test_no_boards_and_wrong_verdicts_are_refused() -> None:
    boards = drawn(SOLVABLE)
    with pytest.raises(MaskobanError, match="no boards"):
        measure_solvability(boards[:0], solve_many(boards[:0]))
    with pytest.raises(MaskobanError, match="1 boards, but 0 verdicts"):
        measure_solvability(boards, solve_many(boards[:0]))
