"""Small boards that several measures are tried on."""

from __future__ import annotations

import numpy as np

from maskoban.boards import Level, Tokens

SOLVABLE = """\
#######
#@$ . #
#     #
#######"""

# The wall before the goal stops the box; taking it away is the only cure.
ONE_WALL = """\
#######
#@$#.##
#######
#######"""

# The same with two walls.
TWO_WALLS = """\
#######
#@$##.#
#######
#######"""

# A box in a corner of the rim stays there, whatever is taken away inside.
HOPELESS = """\
#######
#@    #
###   #
#.#  $#"""

# Any solution is found in 14 states, but a plain search expands 4,857, more than the last quarter begins with.
EXPERT = """\
########
#     .#
# $ $ .#
#@$ $ .#
#     .#
########"""

# As large, and done with one push.
EASY = """\
########
#@$.   #
#      #
#      #
#      #
########"""

NO_PLAYER = SOLVABLE.replace("@", " ")
TWO_GOALS = SOLVABLE.replace(". ", "..")


def drawn(*drawings: str) -> Tokens:
    """The drawings as one batch."""
    return np.stack([Level.parse(drawing).tokens for drawing in drawings])


def scribbles(n: int, height: int, width: int, tiles: int = 7, seed: int = 0) -> Tokens:
    """Boards of random tiles: no puzzles, but every tile everywhere."""
    return np.random.default_rng(seed).integers(0, tiles, (n, height, width), dtype=np.uint8)
