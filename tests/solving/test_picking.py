"""Boards are picked by what is true of them, arrays and levels alike."""

from __future__ import annotations

import numpy as np
import pytest

from maskoban.boards import Level, MaskobanError
from maskoban.solving import rate_many, solve_many
from maskoban.solving.picking import Wishes
from maskoban.training.synth import synthesize

EASY = Level.parse("######\n#@$ .#\n######")
STUCK = Level.parse("######\n#$ @.#\n######")
TWO = Level.parse("#######\n#@$.  #\n# $.  #\n#######")
NO_PLAYER = Level.parse("######\n# $ .#\n######")


@pytest.mark.parametrize(
    ("wishes", "met"),
    [
        (Wishes(), [True, True, True, True]),
        (Wishes(only_solvable=True), [True, False, True, False]),
        (Wishes(boxes=1), [True, True, False, False]),
        (Wishes(only_solvable=True, boxes=1), [True, False, False, False]),
        (Wishes(difficulty="easy"), [True, False, True, False]),
        (Wishes(difficulty="expert"), [False] * 4),
        (Wishes(True, "easy", 3), [False] * 4),
    ],
)
def test_levels_of_any_size(wishes: Wishes, met: list[bool]) -> None:
    assert wishes.met([EASY, STUCK, TWO, NO_PLAYER]).tolist() == met


def test_an_array_is_picked_from_as_levels_are() -> None:
    boards = synthesize(60, height=8, width=8, boxes=2, seed=5)
    boards[::7, 4, 4] = 0  # walls that break some
    for wishes in (Wishes(True), Wishes(difficulty="easy"), Wishes(boxes=2), Wishes(True, "medium", 2)):
        assert (wishes.met(boards) == wishes.met([Level(board) for board in boards])).all()
    assert (Wishes(True).met(boards) == solve_many(boards).solved).all()
    easy = [rating.word == "easy" for rating in rate_many(boards)]
    assert Wishes(difficulty="easy").met(boards).tolist() == easy


def test_nothing_is_picked_from_nothing() -> None:
    for wishes in (Wishes(True), Wishes(difficulty="hard"), Wishes(boxes=1)):
        assert wishes.met([]).tolist() == []
        assert wishes.met(np.zeros((0, 5, 5), np.uint8)).tolist() == []


def test_a_difficulty_that_nobody_knows_is_refused() -> None:
    with pytest.raises(MaskobanError, match="difficulty is one of easy, medium, hard, expert, not 'mild'"):
        Wishes(difficulty="mild")
