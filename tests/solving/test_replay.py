"""The rules of the game, one board each."""

from __future__ import annotations

import numpy as np
import pytest

from maskoban.boards import Level
from maskoban.errors import MaskobanError
from maskoban.solving.replay import Counts, IllegalStepError, count, play, solves

CORRIDOR = """
########
#.@ $ .#
########
"""


def board(text: str) -> Level:
    return Level.parse(text.strip("\n"))


def last(level: Level, lurd: str) -> Level:
    *_, position = play(level, lurd)
    return Level(position)


@pytest.mark.parametrize(
    ("lurd", "after"),
    [
        ("", "#.@ $ .#"),
        ("r", "#. @$ .#"),
        ("l", "#+  $ .#"),
        ("lr", "#.@ $ .#"),
        ("rR", "#.  @$.#"),
        ("rRR", "#.   @*#"),
        ("rRRl", "#.  @ *#"),
    ],
)
def test_what_steps_do(lurd: str, after: str) -> None:
    assert last(board(CORRIDOR), lurd) == board(f"########\n{after}\n########")


def test_all_four_directions_push() -> None:
    start = board("#######\n#  .  #\n#  $  #\n#.$@$.#\n#  $  #\n#  .  #\n#######")
    solved = board("#######\n#  *  #\n#     #\n#* @ *#\n#     #\n#  *  #\n#######")
    assert last(start, "UdLrRlDu") == solved
    assert solves(start, "UdLrRlDu")


def test_a_box_may_leave_a_goal_and_the_player_may_stand_on_one() -> None:
    assert last(board("#######\n#+*. .#\n#######"), "R") == board("#######\n#.+* .#\n#######")
    assert last(board("#######\n#+*. .#\n#######"), "RR") == board("#######\n#..+$.#\n#######")


@pytest.mark.parametrize(
    ("lurd", "index", "problem"),
    [
        ("u", 0, "the player cannot walk onto '#'"),
        ("ll", 1, "the player cannot walk onto '#'"),
        ("R", 0, "there is no box to push"),
        ("L", 0, "there is no box to push"),
        ("U", 0, "there is no box to push"),
        ("rr", 1, "this pushes a box, written 'R'"),
        ("rRRR", 3, "the box cannot move onto '#'"),
        ("rRx", 2, "expected one of l, u, r, d, L, U, R, D"),
        ("r R", 1, "expected one of l, u, r, d, L, U, R, D"),
    ],
)
def test_what_the_rules_forbid(lurd: str, index: int, problem: str) -> None:
    for judge in (solves, last):
        with pytest.raises(IllegalStepError) as error:
            judge(board(CORRIDOR), lurd)
        assert error.value.index == index
        assert str(error.value) == f"step {index} ({lurd[index]!r}): {problem}"


@pytest.mark.parametrize("second", ["$", "*"])
def test_two_boxes_cannot_be_pushed_at_once(second: str) -> None:
    with pytest.raises(IllegalStepError) as error:
        solves(board(f"#######\n#@${second}..#\n#######"), "R")
    assert str(error.value) == f"step 0 ('R'): the box cannot move onto {second!r}"


def test_the_edge_of_the_grid_is_a_wall() -> None:
    assert not solves(board("@$ ."), "R")
    assert solves(board("@$ ."), "RR")
    for lurd in ("l", "u", "d", "RRR"):
        with pytest.raises(IllegalStepError, match="'#'"):
            solves(board("@$ ."), lurd)


def test_positions_before_an_illegal_step_are_given() -> None:
    positions = play(board(CORRIDOR), "rRu")
    assert len([next(positions) for _ in range(3)]) == 3
    with pytest.raises(IllegalStepError):
        next(positions)


def test_a_masked_cell_stops_player_and_box() -> None:
    for lurd, text in (("l", "?@$."), ("R", "@$?.")):
        with pytest.raises(IllegalStepError, match=r"onto '\?'"):
            solves(board(text), lurd)


@pytest.mark.parametrize(("text", "players"), [("# $.#", 0), ("#@$+#", 2)])
def test_a_game_needs_one_player(text: str, players: int) -> None:
    with pytest.raises(MaskobanError, match=f"exactly one player, got {players}"):
        solves(board(text), "")


def test_only_all_boxes_on_goals_is_solved() -> None:
    assert solves(board("#@*#"), "")
    assert not solves(board("#@*$.#"), "")
    assert not solves(board("#.@$#"), "l")


def test_the_level_stays_unchanged() -> None:
    tokens = board(CORRIDOR).tokens.copy()
    before = tokens.copy()
    positions = list(play(tokens, "rRR"))
    positions[0][1, 1] = 0
    assert np.array_equal(tokens, before)
    assert positions[1][1, 1] != 0


@pytest.mark.parametrize(
    ("lurd", "counts"),
    [
        ("", Counts(moves=0, pushes=0, box_changes=0, box_lines=0)),
        ("lurd", Counts(moves=4, pushes=0, box_changes=0, box_lines=0)),
        ("RRR", Counts(moves=3, pushes=3, box_changes=1, box_lines=1)),
        # The same box, round its corner: one change, two lines.
        ("RdrUU", Counts(moves=5, pushes=3, box_changes=1, box_lines=2)),
        # Two boxes side by side, pushed up one after the other: no third turn for the first.
        ("UdrU", Counts(moves=4, pushes=2, box_changes=2, box_lines=2)),
        # One box, another, and the first again.
        ("UdrUdlUU", Counts(moves=8, pushes=4, box_changes=3, box_lines=3)),
        # Another box with no walk between.
        ("RU", Counts(moves=2, pushes=2, box_changes=2, box_lines=2)),
        # Stepping back and pushing on is a new line of the same box.
        ("RlrR", Counts(moves=4, pushes=2, box_changes=1, box_lines=2)),
    ],
)
def test_counts(lurd: str, counts: Counts) -> None:
    assert count(lurd) == counts


def test_counting_refuses_other_letters() -> None:
    with pytest.raises(IllegalStepError, match="step 1"):
        count("R3R")
