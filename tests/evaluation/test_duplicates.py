"""Boards that repeat others of their sample, as they are or turned and mirrored."""

from __future__ import annotations

import numpy as np
import pytest

from maskoban.boards import Tokens, symmetries
from maskoban.evaluation import count_duplicates, without_player

from .boards import scribbles


def slow_duplicates(boards: Tokens, turned: bool) -> int:
    """How many boards equal one that came before, pair by pair."""
    still = without_player(boards)
    repeats = 0
    for i, board in enumerate(still):
        alike = symmetries(board) if turned else [board]
        repeats += any(np.array_equal(earlier, each) for earlier in still[:i] for each in alike)
    return repeats


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (1, 4)])
def test_against_every_pair(shape: tuple[int, int]) -> None:
    boards = scribbles(60, *shape, tiles=3)
    found = count_duplicates(boards)
    assert (found.exact.count, found.exact.total) == (slow_duplicates(boards, False), 60)
    assert found.under_symmetry.count == slow_duplicates(boards, True)
    assert 0 < found.exact.count < found.under_symmetry.count


def test_a_sample_without_repeats() -> None:
    found = count_duplicates(scribbles(50, 8, 8))
    assert (found.exact.count, found.under_symmetry.count) == (0, 0)
