"""Shortened solutions: replayed, never longer, and the shortest there are where one window holds the whole solution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from maskoban.boards import Level, Tokens, read, write
from maskoban.cli.app import app
from maskoban.errors import MaskobanError
from maskoban.solving import Limits, count, optimize, optimize_many, solve, solve_many, solves
from maskoban.solving.optimize import Measure, length, shortest_given
from maskoban.solving.replay import IllegalStepError, play
from tests.solving.reference import shortest
from tests.solving.test_agreement import made_boards
from tests.solving.test_feature_search import GOAL_ROOM

HALL = Level.parse(
    """
########
#      #
# $ .  #
#  @   #
########
"""
)


def with_detours(board: Tokens, steps: int, seed: int) -> str:
    """A solution that begins with random steps, none of which spoils the board."""
    rng = np.random.default_rng(seed)
    position, done = board, ""
    for letter in rng.choice(list("lurdLURD"), 8 * steps):
        try:
            *_, after = play(position, letter)
        except IllegalStepError:
            continue
        if letter.islower() or solve(after, limits=Limits(states=20_000)).solved:
            position, done = after, done + letter
    return done + solve(position).solution


def long_solutions(boards: Tokens, steps: int) -> tuple[Tokens, list[str]]:
    boards = boards[solve_many(boards, limits=Limits(states=20_000)).solved]
    return boards, [with_detours(board, steps, seed) for seed, board in enumerate(boards)]


@pytest.mark.parametrize("by", ["moves", "pushes"])
@pytest.mark.parametrize(("number", "side", "boxes"), [(80, 6, 2), (40, 6, 3)])
def test_few_boxes_are_solved_the_shortest_way(number: int, side: int, boxes: int, by: Measure) -> None:
    boards, solutions = long_solutions(made_boards(number, side, boxes, 0.3), 12)
    assert len(boards) > number // 3
    results = optimize_many(boards, solutions, by)
    for board, result in zip(boards, results, strict=True):
        assert solves(board, result.solution)
        assert length(result.solution, by) == shortest(board, by == "moves"), f"{Level(board)}\n{result}"


@pytest.mark.parametrize("by", ["moves", "pushes"])
def test_many_boxes_never_get_longer(by: Measure) -> None:
    boards, solutions = long_solutions(made_boards(30, 8, 7, 0.3), 20)
    assert len(boards) > 10
    shorter = 0
    for board, before, result in zip(boards, solutions, optimize_many(boards, solutions, by), strict=True):
        assert solves(board, result.solution)
        assert length(result.solution, by) <= length(before, by)
        assert (result.moves, result.pushes) == length(result.solution, "moves")
        shorter += length(result.solution, by) < length(before, by)
    assert shorter > len(boards) // 2


def test_a_large_level() -> None:
    before = solve(GOAL_ROOM).solution
    after = optimize(GOAL_ROOM, before, "moves", Limits(states=100_000)).solution
    assert solves(GOAL_ROOM, after)
    assert count(after).moves < count(before).moves


def test_a_position_met_twice_is_left_out() -> None:
    assert optimize(HALL, "lluRdrruLulldRR", "pushes").pushes == 2


def test_a_limit_leaves_what_was_found_so_far() -> None:
    before = "uulldRurrdLulldRR"
    assert solves(HALL, before)
    result = optimize(HALL, before, limits=Limits(states=0))
    assert (result.verdict, result.limit_hit) == ("solved", "states")
    assert solves(HALL, result.solution)
    assert result.moves <= len(before)


def test_what_is_already_shortest_stays() -> None:
    best = solve_many([HALL], "pushes")[0].solution
    assert optimize(HALL, best, "pushes").solution == best


def test_solutions_that_do_not_fit_are_refused() -> None:
    with pytest.raises(MaskobanError, match="solution 0 does not solve its board"):
        optimize(HALL, "u")
    with pytest.raises(MaskobanError, match="1 boards but 2 solutions"):
        optimize_many([HALL], ["u", "u"])
    with pytest.raises(MaskobanError, match="unknown measure 'steps'"):
        optimize(HALL, "u", "steps")  # type: ignore[arg-type]


def test_the_shortest_given_solution_is_taken() -> None:
    level = Level(HALL.tokens, solutions=("u", "rrr", "lluRdrruLulldRR", "lluRR"))
    assert [solves(HALL, solution) for solution in level.solutions[2:]] == [True, True]
    assert shortest_given(level, "moves") == "lluRR"


def test_the_command_shortens_given_and_found_solutions(tmp_path: Path) -> None:
    file, out = tmp_path / "levels.sok", tmp_path / "shorter.sok"
    write(file, [Level(HALL.tokens, solutions=("lluRdrruLulldRR",)), GOAL_ROOM])
    told = CliRunner().invoke(app, ["optimize", str(file), "--out", str(out), "--states", "50000"])
    assert told.exit_code == 0, told.output
    assert "10 moves fewer" in told.stdout
    first, second = read(out)
    assert first.solutions == ("lluRR",)
    assert solves(GOAL_ROOM, *second.solutions)
