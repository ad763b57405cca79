"""The seven tiles of a board, MASK, and their letters.

Inside the program a board is a ``uint8`` array of these numbers, one a cell; text exists only at the edges.
The order is the paper's: wall, floor, player, box, goal, box on goal, player on goal, then MASK, which a
model reads but never draws.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WALL, FLOOR, PLAYER, BOX, GOAL, BOX_ON_GOAL, PLAYER_ON_GOAL, MASK = range(8)

#: How many tiles a finished board can hold (MASK is not one of them).
TILES = 7

#: The letter of each token, at the token's own index: ``SYMBOLS[BOX] == "$"``.
SYMBOLS = "# @$.*+?"

#: What each tile is called, at the tile's own index.
NAMES = ("wall", "floor", "player", "box", "goal", "box on goal", "player on goal")

#: The largest board anything here accepts, in rows and in columns.
MAX_SIDE = 64

Tokens = NDArray[np.uint8]
