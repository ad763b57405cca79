"""Guided effort, and the reference of every size and number of boxes."""

from __future__ import annotations

import numpy as np
import pytest

from maskoban.boards import Level
from maskoban.boards.geometry import symmetries
from maskoban.boards.synth import synthesize
from maskoban.solving import rate_many, solve_many
from maskoban.solving.filters import BoardFilter
from maskoban.solving.rating import (
    DIFFICULTIES,
    boxoban_quartiles,
    difficulties,
    difficulty_for,
    guided_difficulty,
)
from maskoban.solving.reference import BOXOBAN, GUIDED_STATES, guided_efforts, reference_of, size_table
from maskoban.solving.solver import Limits

BOARDS = synthesize(12, 8, 7, 2, seed=3)


def test_guided_effort_is_the_mean_over_the_symmetries() -> None:
    limits = Limits(states=GUIDED_STATES)
    for board, effort in zip(BOARDS, guided_efforts(BOARDS), strict=True):
        states = [
            solve_many(np.ascontiguousarray(turned), limits=limits).expanded[0]
            for turned in symmetries(board[None])
        ]
        assert effort == pytest.approx(np.prod(np.array(states, float)) ** (1 / 8), abs=0.01)


def test_turning_and_mirroring_change_nothing() -> None:
    efforts, words = guided_efforts(BOARDS), difficulties(BOARDS)
    for turned in symmetries(BOARDS):
        turned = np.ascontiguousarray(turned)
        assert guided_efforts(turned) == pytest.approx(efforts)
        assert difficulties(turned) == words


def test_unsolvable_and_malformed_boards_have_no_guided_effort() -> None:
    levels = ["#@$.#", "#@#$.#", "#@#", "#@*#"]
    found = guided_efforts([Level.parse(level).tokens for level in levels]).tolist()
    assert found == [1, -1, -1, 1]
    assert difficulties([Level.parse(level).tokens for level in levels])[1:3] == ["", ""]


def test_boxoban_is_the_reference_of_its_size() -> None:
    boards = synthesize(8, seed=4)
    efforts = solve_many(boards, "effort").expanded.tolist()
    expected = [difficulty_for(effort) for effort in efforts]
    ratings = rate_many(boards)
    assert difficulties(boards) == [rating.difficulty for rating in ratings] == expected
    assert {rating.reference for rating in ratings} == {"Boxoban medium"}
    assert boxoban_quartiles()["effort"] == [624, 1638, 4177]


def test_sizes_that_are_not_in_the_table_take_the_nearest() -> None:
    assert reference_of(8, 8, 5).name == "8x8 with 5 boxes"
    assert reference_of(9, 7, 5).name == "7x9 with 5 boxes"
    assert reference_of(20, 20, 3).name == "16x16 with 3 boxes, the nearest"
    assert reference_of(7, 8, 6).name == "8x9 with 6 boxes, the nearest"  # of the fewest cells with six boxes
    assert reference_of(3, 3, 1).name == "5x5 with 1 box, the nearest"
    rating = rate_many([Level.parse("#####\n#@$.#\n#####")])[0]
    assert (rating.difficulty, rating.guided_effort, rating.reference) == (
        "easy",
        1,
        "5x5 with 1 box, the nearest",
    )


def test_every_size_of_the_table_and_its_quarter_turn_has_its_own_entry() -> None:
    for name, ends in size_table().items():
        height, width, boxes = map(int, name.split("x"))
        for size in ((height, width), (width, height)):
            found = reference_of(*size, boxes)
            assert found == BOXOBAN if (*size, boxes) == (10, 10, 4) else found.ends == tuple(ends)
            assert "nearest" not in found.name


@pytest.mark.parametrize(("side", "boxes"), [(7, 2), (7, 3)])
def test_synthetic_boards_fall_into_all_quarters(side: int, boxes: int) -> None:
    words = difficulties(synthesize(150, side, side, boxes, seed=9))
    assert all(10 <= words.count(word) <= 85 for word in DIFFICULTIES)


def test_every_entry_of_the_table_ascends_and_grows_with_the_boxes() -> None:
    ends = [reference_of(8, 8, boxes).ends for boxes in range(1, 6)]
    assert all(each is not None and list(each) == sorted(each) for each in ends)
    medians = [each[1] for each in ends if each is not None]
    assert medians == sorted(medians)


def test_a_filter_uses_the_reference_of_the_size() -> None:
    words = difficulties(BOARDS)
    for wish in DIFFICULTIES:
        assert BoardFilter(difficulty=wish).matches(BOARDS).tolist() == [word == wish for word in words]
    assert guided_difficulty(-1, reference_of(7, 7, 2)) == ""
