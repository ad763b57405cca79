"""How different boards are from each other: duplicates, distances, patterns, solutions."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import log2

import numpy as np
import pytest

from maskoban.boards import Tokens, symmetries
from maskoban.boards.synth import synthesize
from maskoban.errors import MaskobanError
from maskoban.evaluation import (
    count_duplicates,
    count_patterns,
    measure_boards,
    measure_diversity,
    pairwise_distance,
    without_player,
)
from maskoban.solving import rate_many

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


def test_the_mean_distance_against_every_pair() -> None:
    boards = scribbles(30, 4, 5, tiles=8)
    still = without_player(boards)
    pairs = [int((one != other).sum()) for one, other in combinations(still, 2)]
    assert pairwise_distance(boards) == pytest.approx(np.mean(pairs))
    with pytest.raises(MaskobanError, match="at least 2 boards, got 1"):
        pairwise_distance(boards[:1])


def test_patterns_and_solutions_against_counting_one_by_one() -> None:
    boards, corpus = synthesize(40, 7, 7, 2, seed=1), synthesize(200, 7, 7, 2, seed=2)
    boards[::4, 3, 3] = 3  # a box too many, so not solvable
    found = measure_diversity(boards, count_patterns(corpus), measure_boards(boards))

    def windows(levels: Tokens) -> Counter[bytes]:
        places = [(row, column) for row in range(5) for column in range(5)]
        return Counter(level[r : r + 3, c : c + 3].tobytes() for level in levels for r, c in places)

    ours, theirs = windows(boards), windows(corpus)
    assert found.patterns == len(ours)
    assert found.coverage == pytest.approx(sum(theirs[each] for each in ours) / theirs.total())
    assert found.novel == pytest.approx(sum(ours[each] for each in ours if each not in theirs) / ours.total())
    solved = [each for each in rate_many(boards) if each.verdict == "solved"]
    pairs = Counter((each.pushes, each.box_changes) for each in solved)
    assert (found.boards, found.solved, found.solutions) == (40, len(solved), len(pairs))
    entropy = -sum(count / pairs.total() * log2(count / pairs.total()) for count in pairs.values())
    assert found.effective_solutions == pytest.approx(2**entropy)


def test_boards_that_are_all_alike_have_no_diversity() -> None:
    boards = np.repeat(synthesize(1, 7, 7, 1), 5, axis=0)
    found = measure_diversity(boards, count_patterns(boards), measure_boards(boards))
    assert (found.pairwise_distance, found.solutions, found.effective_solutions) == (0, 1, 1)
    assert (found.coverage, found.novel) == (1, 0)
