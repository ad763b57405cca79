"""What lies around a cell decides how it is drawn."""

from __future__ import annotations

import pytest

from maskoban.boards import Level
from maskoban.boards.areas import outside
from maskoban.pictures.surroundings import looks

# One letter a look: "." plain, "w" at a wall, "r" rock, "x" outside.
LETTERS = ".wrx"


def looked(board: str) -> list[str]:
    return ["".join(LETTERS[look] for look in row) for row in looks(Level.parse(board).tokens).tolist()]


def test_floor_that_no_one_can_reach_from_inside_is_outside() -> None:
    board = """
  #####
###   #
#@ $. #
#######
"""
    assert looked(board)[0] == "xx.www."
    assert outside(Level.parse(board).tokens).sum() == 2


def test_a_closed_room_in_the_middle_is_not_filler() -> None:
    board = """
#########
#@$.## ##
#########
"""
    assert not outside(Level.parse(board).tokens).any()


@pytest.mark.parametrize("gap", ["@  ", "$@.", "?  ", ". @"])
def test_a_board_with_a_gap_in_its_border_is_still_drawn(gap: str) -> None:
    assert not outside(Level.parse(f"#####\n#{gap} \n#####").tokens).any()


def test_walls_show_a_face_to_the_room_below_and_shade_it() -> None:
    board = """
######
######
###@ #
###$.#
######
"""
    assert looked(board) == ["rrrrrr", "rr.ww.", "rr.ww.", "rr....", "rr...."]
