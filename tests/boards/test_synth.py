"""Synthetic boards: solvable whatever the size and the boxes, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskoban.boards.synth import synthesize
from maskoban.boards.tiles import BOX, BOX_ON_GOAL, GOAL, PLAYER, PLAYER_ON_GOAL, SYMBOLS, WALL, Tokens
from maskoban.errors import MaskobanError
from maskoban.solving import Limits, solve, solve_many


def count(boards: Tokens, *tiles: int) -> Tokens:
    """How many of these tiles each board holds."""
    return np.isin(boards, tiles).sum((1, 2))


def is_well_formed(boards: Tokens, boxes: int) -> bool:
    border = np.ones(boards.shape[1:], bool)
    border[1:-1, 1:-1] = False
    return bool(
        (boards[:, border] == WALL).all()
        and (count(boards, PLAYER, PLAYER_ON_GOAL) == 1).all()
        and (count(boards, BOX, BOX_ON_GOAL) == boxes).all()
        and (count(boards, GOAL, BOX_ON_GOAL, PLAYER_ON_GOAL) == boxes).all()
        and (count(boards, BOX) > 0).all()  # something is left to do
    )


@settings(max_examples=60, deadline=None)
@given(
    height=st.integers(5, 12), width=st.integers(5, 12), boxes=st.integers(1, 3), seed=st.integers(0, 10**9)
)
def test_boards_of_any_size_are_well_formed_and_solvable(
    height: int, width: int, boxes: int, seed: int
) -> None:
    boards = synthesize(3, height, width, boxes, seed)
    assert boards.shape == (3, height, width)
    assert boards.dtype == np.uint8
    assert is_well_formed(boards, boxes)
    assert solve_many(boards).solved.all()


@pytest.mark.parametrize(
    ("height", "width", "boxes"),
    [(3, 5, 1), (5, 3, 1), (3, 9, 2), (3, 12, 3), (5, 5, 4), (6, 6, 5), (4, 16, 4), (14, 14, 2), (64, 3, 2)],
)
def test_narrow_and_crowded_boards_are_solvable_too(height: int, width: int, boxes: int) -> None:
    boards = synthesize(5, height, width, boxes)
    assert is_well_formed(boards, boxes)
    assert all(solve(board).solved for board in boards)


def test_the_largest_board_with_many_boxes() -> None:
    assert is_well_formed(synthesize(1, 64, 64, 20), 20)


def test_boards_are_like_the_corpus() -> None:
    boards = synthesize(400, seed=3)
    assert 66 < count(boards, WALL).mean() < 71  # Boxoban's mean is 68.6
    assert count(boards, BOX_ON_GOAL, PLAYER_ON_GOAL).sum() == 0  # and nothing starts on a goal there
    assert len(np.unique(boards, axis=0)) == 400
    results = solve_many(boards, mode="decomposed", solutions=False)
    assert results.solved.all()
    assert results.pushes.min() >= 8  # 2.5 a box in the solution of mode any
    assert 20 < np.median(results.expanded) < 60  # Boxoban's medium levels: 32
    assert 0.25 < (results.boxes_at_once == 1).mean() < 0.5  # and 37 %


@pytest.mark.parametrize(("side", "boxes", "most"), [(12, 5, 0.7), (14, 6, 0.7)])
def test_boxes_of_large_boards_block_each_other(side: int, boxes: int, most: float) -> None:
    """Before positions were chosen by energy, 80 % of boards of 14x14 could be solved box by box."""
    boards = synthesize(16, side, side, boxes, seed=1)
    groups = solve_many(boards, "decomposed", limits=Limits(states=50_000), solutions=False)
    assert (groups.boxes_at_once == 1).mean() < most
    floor = (boards != WALL).any(1).sum(1), (boards != WALL).any(2).sum(1)
    assert all((4 * used >= 3 * (side - 2)).mean() > 0.9 for used in floor)  # little of the board is unused


def test_walls_are_a_matter_of_taste() -> None:
    open_, tight = synthesize(20, walls=0.2), synthesize(20, walls=0.7)
    assert count(open_, WALL).mean() < 55 < 70 < count(tight, WALL).mean()


def test_a_board_depends_on_the_seed_and_its_number_alone() -> None:
    whole = synthesize(20, 8, 8, 2, seed=5)
    assert np.array_equal(synthesize(7, 8, 8, 2, seed=5), whole[:7])
    assert np.array_equal(synthesize(4, 8, 8, 2, seed=5, first=11), whole[11:15])
    assert not (synthesize(20, 8, 8, 2, seed=6) == whole).all((1, 2)).any()
    assert synthesize(0, 8, 8, 2).shape == (0, 8, 8)


def test_the_same_seed_gives_this_very_board_on_every_machine() -> None:
    board = synthesize(1, 7, 9, 2, seed=7, threads=2)[0]
    assert ["".join(SYMBOLS[tile] for tile in row) for row in board] == [
        "#########",
        "#   ..  #",
        "## @$$  #",
        "#####   #",
        "#####   #",
        "#########",
        "#########",
    ]


@pytest.mark.parametrize(
    ("demand", "sentence"),
    [
        (
            {"height": 5, "width": 5, "boxes": 5},
            "a 5x5 board has 9 cells inside its border; with 5 boxes it takes at least 11",
        ),
        (
            {"height": 2, "width": 9, "boxes": 1},
            "a 2x9 board has 0 cells inside its border; with 1 box it takes at least 3",
        ),
        (
            {"height": 4, "width": 4, "boxes": 1},
            "cannot make a 4x4 board with 1 box: no room has space to move one",
        ),
        ({"boxes": 0}, "a board needs at least 1 box, not 0"),
        ({"height": 65}, "a 65x10 board is too large: at most 64 rows and columns"),
        ({"walls": 1.0}, "the share of walls must be at least 0 and below 1, not 1.0"),
        ({"n": -1}, "cannot make -1 boards from number 0: neither may be negative"),
    ],
)
def test_an_impossible_demand_is_one_sentence(demand: dict[str, int], sentence: str) -> None:
    with pytest.raises(MaskobanError) as caught:
        synthesize(**{"n": 1, **demand})
    assert str(caught.value) == sentence
