"""One wall, two walls, more: what it takes to mend a board."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from maskoban.boards import FLOOR, Tokens
from maskoban.boards.synth import synthesize
from maskoban.evaluation import Mending, measure_repairs, mend
from maskoban.solving import Limits, interior_walls, solve, solve_many

from .boards import HOPELESS, NO_PLAYER, ONE_WALL, SOLVABLE, TWO_WALLS, drawn


def fates(mending: Mending) -> list[str]:
    return [Mending.FATES[code] for code in mending.fates]


def slow_fate(board: Tokens) -> tuple[str, list[tuple[int, int]]]:
    """Every wall, then every pair, one solve at a time."""
    result = solve(board)
    if result.verdict != "unsolvable":
        return {"solved": "solvable"}.get(result.verdict, result.verdict), []
    for size, fate in ((1, "one wall"), (2, "two walls")):
        cures = []
        for cells in combinations(interior_walls(board), size):
            opened = board.copy()
            for cell in cells:
                opened[cell] = FLOOR
            if solve(opened).solved:
                cures.append(cells)
        if cures:
            return fate, [cell for (cell,) in cures] if size == 1 else []
    return "more walls", []


def test_each_fate() -> None:
    boards = drawn(SOLVABLE, ONE_WALL, TWO_WALLS, HOPELESS, NO_PLAYER)
    mending = mend(boards, solve_many(boards))
    assert fates(mending) == ["solvable", "one wall", "two walls", "more walls", "malformed"]
    assert np.argwhere(mending.cures).tolist() == [[1, 1, 3]]

    rates = measure_repairs(mending)
    assert (rates.one_wall.count, rates.two_walls.count, rates.one_wall.total) == (1, 2, 4)
    assert (rates.effective.share, rates.effective_two_walls.share) == (2 / 5, 3 / 5)
    assert (rates.broken.count, rates.more_walls, rates.unknown, rates.malformed) == (2, 1, 0, 1)


def test_what_a_limit_stops_is_neither_mended_nor_proved_broken() -> None:
    boards = drawn(ONE_WALL, SOLVABLE)
    mending = mend(boards, solve_many(boards), limits=Limits(states=0))
    assert fates(mending) == ["unknown", "solvable"]
    assert measure_repairs(mending).broken.count == 1


def test_spoilt_levels_against_one_solve_at_a_time() -> None:
    boards = synthesize(60, 7, 7, 2)
    rng = np.random.default_rng(0)
    for board in boards:  # one more wall somewhere on the floor, or two
        floor = np.argwhere(board == FLOOR)
        for row, column in floor[rng.permutation(len(floor))[:2]]:
            board[row, column] = 0
    mending = mend(boards, solve_many(boards))
    slow = [slow_fate(board) for board in boards]
    assert fates(mending) == [fate for fate, _ in slow]
    assert {"solvable", "one wall"} <= set(fates(mending))
    for cures, (_, cells) in zip(mending.cures, slow, strict=True):
        assert [tuple(cell) for cell in np.argwhere(cures).tolist()] == cells


def test_a_sample_without_failures() -> None:
    boards = drawn(SOLVABLE)
    rates = measure_repairs(mend(boards, solve_many(boards)))
    assert (rates.one_wall.share, rates.effective.share, rates.broken.share) == (None, 1.0, 0.0)
