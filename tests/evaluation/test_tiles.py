"""Tiles a board, and how sure the mean number of walls is."""

from __future__ import annotations

from statistics import mean, stdev

import numpy as np
import pytest

from maskoban.errors import MaskobanError
from maskoban.evaluation import count_tiles

from .boards import SOLVABLE, drawn, scribbles


def test_against_counting_one_by_one() -> None:
    boards = scribbles(40, 6, 7)
    found = count_tiles(boards)
    for tile, name in enumerate(("wall", "floor", "player", "box", "goal", "box on goal", "player on goal")):
        counts = [board.ravel().tolist().count(tile) for board in boards]
        assert found.means[name] == pytest.approx(mean(counts))
    walls = [board.ravel().tolist().count(0) for board in boards]
    reach = 1.959964 * stdev(walls) / 40**0.5
    assert (found.walls.low, found.walls.high) == pytest.approx((mean(walls) - reach, mean(walls) + reach))
    assert found.walls.mean == found.means["wall"]


def test_one_board_alone_says_little() -> None:
    walls = count_tiles(drawn(SOLVABLE)).walls
    assert (walls.mean, walls.low, walls.high) == (18, 0, 28)


def test_no_boards_are_refused() -> None:
    with pytest.raises(MaskobanError, match="no boards"):
        count_tiles(np.empty((0, 4, 4), np.uint8))
