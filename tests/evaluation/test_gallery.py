"""The boards that are shown are the first that fit, at evenly spaced points."""

from __future__ import annotations

import numpy as np

from maskoban.boards import Level
from maskoban.boards.tiles import parse_rows
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.evaluation import gallery
from maskoban.evaluation.measures.repairs import mend
from maskoban.evaluation.report import RepairedBoard
from maskoban.evaluation.sample import Sample
from maskoban.solving import Limits, solve_many

from .boards import NO_PLAYER, ONE_WALL, SOLVABLE, TWO_WALLS, drawn
from .recall import recalling_model


def test_boards_survive_being_text() -> None:
    boards = drawn(SOLVABLE, ONE_WALL)
    np.testing.assert_array_equal(parse_rows(gallery.rows(boards[1])), boards[1])


def test_the_first_that_can_be_solved_are_shown() -> None:
    results = solve_many(drawn(NO_PLAYER, *[SOLVABLE] * 11, ONE_WALL))
    assert gallery.first_solved(results) == list(range(1, 10))


def test_a_board_is_drawn_from_nothing_to_the_end() -> None:
    model = recalling_model()
    boards = model.sample(4, 2)
    shown = gallery.denoising(model, [3, 1], 2, SamplerConfig(critic=True), Limits())
    grid = shown.denoising
    assert grid is not None
    assert shown.strip is not None
    assert (grid.columns, len(grid.boards), len(grid.captions)) == (6, 12, 12)
    assert grid.captions[:5] == ["0 of 25", "5 of 25", "10 of 25", "15 of 25", "20 of 25"]
    assert grid.boards[0][1] == "#?????#"
    for last, number in ((5, 3), (11, 1)):
        assert grid.boards[last] == gallery.rows(boards[number])
    assert len(shown.strip.boards) == 8
    assert shown.strip.boards[-1] == gallery.rows(boards[3])


def test_what_polish_does_is_told_from_drawing() -> None:
    grid = gallery.denoising(
        recalling_model(), [0], 2, SamplerConfig(sweeps=1, critic=True), Limits()
    ).denoising
    assert grid is not None
    assert grid.captions[:5] == ["0 of 25", "10 of 25", "20 of 25", "swept 5 of 25", "swept 15 of 25"]


def test_a_solution_is_played_from_the_board_to_the_end() -> None:
    shown = gallery.solutions(drawn(SOLVABLE), Limits())
    assert shown.boards[0] == SOLVABLE.splitlines()
    assert shown.captions[0] == "as sampled"
    assert shown.captions[-1] == "move 2 of 2"
    assert "*" in "".join(shown.boards[-1])


def test_the_least_probable_cure_is_outlined() -> None:
    boards = drawn(TWO_WALLS, SOLVABLE, ONE_WALL)
    mending = mend(boards, solve_many(boards))
    chances = np.full(boards.shape, 0.5, np.float32)
    chances[2, 1, 3] = 0.25
    (shown,) = gallery.repaired(Sample(boards, chances), mending)
    assert shown == RepairedBoard(gallery.rows(boards[2]), 1, 3, 0.25)
    (shown,) = gallery.repaired(Sample(boards), mending)
    assert shown.probability is None


def test_of_several_walls_the_least_probable_is_shown() -> None:
    boards = Level.parse(ONE_WALL).tokens[None]
    mending = mend(boards, solve_many(boards))
    mending.cures[0, 2, 2] = True  # as if this wall would do as well
    chances = np.full(boards.shape, 0.75, np.float32)
    chances[0, 2, 2] = 0.5
    (shown,) = gallery.repaired(Sample(boards, chances), mending)
    assert (shown.row, shown.column, shown.probability) == (2, 2, 0.5)
