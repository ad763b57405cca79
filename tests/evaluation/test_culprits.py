"""Walls that spoil a board against the other interior walls of the same boards."""

from __future__ import annotations

import numpy as np
import pytest

from maskoban.boards import WALL
from maskoban.errors import MaskobanError
from maskoban.evaluation import culprit_probabilities, measure_culprits, mend
from maskoban.solving import solve_many

from .boards import ONE_WALL, SOLVABLE, TWO_WALLS, drawn

BOARDS = drawn(SOLVABLE, ONE_WALL, TWO_WALLS, ONE_WALL)
MENDING = mend(BOARDS, solve_many(BOARDS))


def test_against_cell_by_cell() -> None:
    probabilities = np.random.default_rng(0).random(BOARDS.shape, np.float32)
    probabilities[1, 2, 2] = np.nan  # this wall was given
    culprits, others = [], []
    for board, probability, cures in zip(BOARDS, probabilities, MENDING.cures, strict=True):
        if not cures.any():
            continue
        for row in range(1, board.shape[0] - 1):
            for column in range(1, board.shape[1] - 1):
                p = probability[row, column]
                if board[row, column] == WALL and not np.isnan(p):
                    (culprits if cures[row, column] else others).append(p)
    found = culprit_probabilities(BOARDS, probabilities, MENDING)
    assert found[0].tolist() == culprits
    assert found[1].tolist() == others

    measured = measure_culprits(BOARDS, probabilities, MENDING)
    assert (measured.boards, measured.walls, measured.other_walls) == (2, 2, 2 * 6 - 1)
    assert measured.median == pytest.approx(sum(culprits) / 2)
    assert measured.other_median == pytest.approx(sorted(others)[5])


def test_nothing_mended_has_no_median() -> None:
    boards = drawn(SOLVABLE)
    measured = measure_culprits(boards, np.ones(boards.shape, np.float32), mend(boards, solve_many(boards)))
    assert (measured.boards, measured.median, measured.other_median) == (0, None, None)


def test_probabilities_must_fit_the_boards() -> None:
    with pytest.raises(MaskobanError, match=r"shape \(4, 4, 7\), but have \(4, 7\)"):
        culprit_probabilities(BOARDS, np.ones((4, 7), np.float32), MENDING)
