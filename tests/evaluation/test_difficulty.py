"""Effort and pushes of the solved boards, against the shipped percentiles of the corpus."""

from __future__ import annotations

from collections import Counter
from math import ceil

import numpy as np
import pytest

from maskoban.boards.synth import synthesize
from maskoban.errors import MaskobanError
from maskoban.evaluation import measure_difficulty
from maskoban.solving import Limits, rate_many, solve_many
from maskoban.solving.rating import boxoban_quartiles, difficulty_for

from .boards import EASY, EXPERT, ONE_WALL, drawn


def percentiles(numbers: list[int]) -> list[int]:
    """The smallest number that at least p % do not exceed."""
    numbers = sorted(numbers)
    return [numbers[max(0, ceil(p * len(numbers) / 100) - 1)] for p in range(101)]


def test_against_rating_one_by_one() -> None:
    boards = np.concatenate([synthesize(30, 9, 9, 3), synthesize(7, 9, 9, 1)])
    boards[::5, 4, 4] = 3  # a box too many
    ratings = [rating for rating in rate_many(boards) if rating.verdict == "solved"]
    assert 0 < len(ratings) < 37
    found = measure_difficulty(solve_many(boards, "effort"))
    assert found.effort is not None
    assert found.pushes is not None
    assert found.effort.percentiles == percentiles([rating.effort for rating in ratings])
    assert found.pushes.percentiles == percentiles([rating.pushes for rating in ratings])
    assert found.effort.mean == pytest.approx(np.mean([rating.effort for rating in ratings]))
    assert found.pushes.mean == pytest.approx(np.mean([rating.pushes for rating in ratings]))
    words = Counter(difficulty_for(rating.effort) for rating in ratings)
    assert {word: share.count for word, share in found.quarters.items() if share.count} == words
    assert all(share.total == len(ratings) for share in found.quarters.values())


def test_the_corpus_comes_along() -> None:
    found = measure_difficulty(solve_many(synthesize(3, 7, 7, 1), "effort"))
    assert list(found.quarters) == ["easy", "medium", "hard", "expert"]
    assert found.effort is not None
    assert found.pushes is not None
    assert (found.effort.corpus_percentiles[50], len(found.pushes.corpus_percentiles)) == (1638, 101)


def test_without_a_solved_board_there_is_no_difficulty() -> None:
    with pytest.raises(MaskobanError, match="no board was solved"):
        measure_difficulty(solve_many(drawn(ONE_WALL), "effort"))


def test_a_search_that_is_in_the_last_quarter_when_it_stops_proves_an_expert_board() -> None:
    boards, limits = drawn(EASY, EXPERT, EASY), Limits(states=4_500)
    efforts = solve_many(boards, "effort", limits=limits)
    assert efforts.solved.tolist() == [True, False, True]
    ratings = rate_many(boards, limits=limits, quartiles=boxoban_quartiles())
    assert [rating.difficulty for rating in ratings] == ["easy", "expert", "easy"]
    found = measure_difficulty(efforts, all_solvable=True)
    assert {word: share.count for word, share in found.quarters.items() if share.count} == {
        "easy": 2,
        "expert": 1,
    }
    assert found.effort is not None
    assert found.effort.percentiles == percentiles([ratings[0].effort, ratings[2].effort])


def test_one_that_stops_before_has_no_quarter() -> None:
    efforts = solve_many(drawn(EASY, EXPERT), "effort", limits=Limits(states=4_000))
    found = measure_difficulty(efforts, all_solvable=True)
    assert [(share.count, share.total) for share in found.quarters.values()] == [
        (1, 1),
        (0, 1),
        (0, 1),
        (0, 1),
    ]


def test_boards_may_all_be_expert_and_their_efforts_unknown() -> None:
    efforts = solve_many(drawn(EXPERT), "effort", limits=Limits(states=4_500))
    found = measure_difficulty(efforts, all_solvable=True)
    assert (found.effort, found.pushes, found.quarters["expert"].count) == (None, None, 1)


def test_what_nobody_solved_is_no_expert_board() -> None:
    efforts = solve_many(drawn(EXPERT), "effort", limits=Limits(states=4_500))
    with pytest.raises(MaskobanError, match="every search for an effort hit its limit"):
        measure_difficulty(efforts)
