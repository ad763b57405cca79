"""Tiles are distinct by form and, for colour-blind eyes too, by colour; neighbours decide how a cell looks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import ImageColor

from maskoban.boards import Level
from maskoban.boards.geometry import exterior
from maskoban.boards.tiles import BOX, BOX_ON_GOAL, SYMBOLS, WALL
from maskoban.pictures import palette
from maskoban.pictures.tileset import AT_WALL, PLAIN, ROCK, looks, sprite

PAIRS = list(combinations(range(len(SYMBOLS)), 2))

# How two kinds of colour-blind eyes see red, green and blue (linear light; Viénot, Brettel and Mollon, 1999).
SEEN = {
    "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}


def grey(token: int, cell: int = 32) -> NDArray[np.float64]:
    return np.asarray(sprite(token, PLAIN, cell).convert("L"), np.float64)


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[SYMBOLS[a] + SYMBOLS[b] for a, b in PAIRS])
@pytest.mark.parametrize("cell", [12, 32])
def test_any_two_tiles_differ_in_grey(one: int, other: int, cell: int) -> None:
    assert np.abs(grey(one, cell) - grey(other, cell)).max() > 40


def test_a_crate_that_has_arrived_carries_another_sign_and_not_only_another_colour() -> None:
    # Dark braces on a light lid became a light tick on a dark one.
    crate, arrived = grey(BOX)[8:24, 8:24], grey(BOX_ON_GOAL)[8:24, 8:24]
    assert np.corrcoef(crate.ravel(), arrived.ravel())[0, 1] < 0.2


@pytest.mark.parametrize("eyes", SEEN)
def test_what_must_not_be_mixed_up_differs_in_colour_for_colour_blind_eyes(eyes: str) -> None:
    def seen(colour: str) -> NDArray[np.float64]:
        linear = (np.array(ImageColor.getrgb(colour)[:3]) / 255) ** 2.2
        return (np.clip(np.array(SEEN[eyes]) @ linear, 0, 1)) ** (1 / 2.2) * 255

    apart = [palette.CRATE_PLANK, palette.DONE_PLANK, palette.COAT, palette.WALL_TOP, palette.FLOOR_TILE]
    for one, other in combinations(apart, 2):
        assert np.linalg.norm(seen(one) - seen(other)) > 40, (one, other)


@pytest.mark.parametrize("cell", [8, 13, 32, 100])
def test_sprites_have_the_given_size_and_leave_no_hole(cell: int) -> None:
    for token in range(len(SYMBOLS)):
        for look in (PLAIN, AT_WALL, ROCK):
            picture = sprite(token, look, cell)
            assert picture.size == (cell, cell)
            assert picture.getextrema()[3] == (255, 255)


def test_edges_are_smooth() -> None:
    colours = sprite(BOX, PLAIN, 32).getcolors(1 << 16)
    assert colours is not None
    assert len(colours) > 30


def test_sprites_are_drawn_once() -> None:
    assert sprite(WALL, PLAIN, 32) is sprite(WALL, PLAIN, 32)


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
    assert exterior(Level.parse(board).tokens).sum() == 2


def test_a_closed_room_in_the_middle_is_not_outside() -> None:
    board = """
#########
#@$.## ##
#########
"""
    assert not exterior(Level.parse(board).tokens).any()


@pytest.mark.parametrize("gap", ["@  ", "$@.", "?  ", ". @"])
def test_a_board_with_a_gap_in_its_border_is_still_drawn(gap: str) -> None:
    assert not exterior(Level.parse(f"#####\n#{gap} \n#####").tokens).any()


def test_walls_show_a_face_to_the_room_below_and_shade_it() -> None:
    board = """
######
######
###@ #
###$.#
######
"""
    assert looked(board) == ["rrrrrr", "rr.ww.", "rr.ww.", "rr....", "rr...."]
