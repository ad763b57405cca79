"""Board filters give the same answer for arrays and for levels."""

from __future__ import annotations

import numpy as np
import pytest

from maskoban.boards import Level
from maskoban.boards.synth import synthesize
from maskoban.errors import MaskobanError
from maskoban.solving import rate_many, solve_many
from maskoban.solving.filters import BoardFilter
from maskoban.solving.rating import boxoban_quartiles, quartiles_of, summarise

EASY = Level.parse("######\n#@$ .#\n######")
STUCK = Level.parse("######\n#$ @.#\n######")
TWO = Level.parse("#######\n#@$.  #\n# $.  #\n#######")
NO_PLAYER = Level.parse("######\n# $ .#\n######")


@pytest.mark.parametrize(
    ("board_filter", "expected"),
    [
        (BoardFilter(), [True, True, True, True]),
        (BoardFilter(only_solvable=True), [True, False, True, False]),
        (BoardFilter(boxes=1), [True, True, False, False]),
        (BoardFilter(only_solvable=True, boxes=1), [True, False, False, False]),
        (BoardFilter(difficulty="easy", quartiles=boxoban_quartiles()), [True, False, True, False]),
        (BoardFilter(difficulty="easy", difficulty_by="decomposed"), [True, False, True, False]),
        (BoardFilter(difficulty="expert"), [False] * 4),
        (BoardFilter(True, "easy", 3), [False] * 4),
    ],
)
def test_levels_of_any_size(board_filter: BoardFilter, expected: list[bool]) -> None:
    assert board_filter.matches([EASY, STUCK, TWO, NO_PLAYER]).tolist() == expected


def test_an_array_and_its_levels_match_alike() -> None:
    boards = synthesize(60, height=8, width=8, boxes=2, seed=5)
    boards[::7, 4, 4] = 0  # walls that break some
    for board_filter in (
        BoardFilter(True),
        BoardFilter(difficulty="easy"),
        BoardFilter(boxes=2),
        BoardFilter(True, "medium", 2),
    ):
        assert (
            board_filter.matches(boards) == board_filter.matches([Level(board) for board in boards])
        ).all()
    assert (BoardFilter(True).matches(boards) == solve_many(boards).solved).all()
    easy = [rating.difficulty == "easy" for rating in rate_many(boards)]
    assert BoardFilter(difficulty="easy").matches(boards).tolist() == easy


def test_the_measure_and_the_reference_of_a_difficulty() -> None:
    boards = synthesize(100, height=7, width=7, boxes=2, seed=5)
    quartiles = quartiles_of(summarise(boards))
    ratings = rate_many(boards, quartiles=quartiles)
    hard = BoardFilter(difficulty="hard", quartiles=quartiles).matches(boards)
    assert hard.tolist() == [rating.difficulty == "hard" for rating in ratings]
    decomposed = BoardFilter(difficulty="hard", difficulty_by="decomposed", quartiles=quartiles)
    assert decomposed.matches(boards).tolist() == [
        rating.decomposed_difficulty == "hard" for rating in ratings
    ]
    assert str(decomposed) == "hard by decomposed effort"
    assert not BoardFilter(difficulty_by="decomposed")


def test_an_empty_batch_matches_nothing() -> None:
    for board_filter in (BoardFilter(True), BoardFilter(difficulty="hard"), BoardFilter(boxes=1)):
        assert board_filter.matches([]).tolist() == []
        assert board_filter.matches(np.zeros((0, 5, 5), np.uint8)).tolist() == []


def test_an_unknown_difficulty_is_refused() -> None:
    with pytest.raises(
        MaskobanError, match="difficulty: expected one of easy, medium, hard, expert, got 'mild'"
    ):
        BoardFilter(difficulty="mild")
    with pytest.raises(
        MaskobanError, match="difficulty_by: expected one of effort, decomposed, got 'pushes'"
    ):
        BoardFilter(difficulty="easy", difficulty_by="pushes")  # type: ignore[arg-type]
