"""What lies around a cell decides how it is drawn: filler outside, wall faces, shadows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.areas import Cells, outside
from maskoban.boards.tiles import WALL, Tokens

#: How a cell is drawn beyond its token: nothing special, a wall above a room or the floor below a wall,
#: a wall with no room on any side, and floor outside the board, which is not drawn at all.
PLAIN, AT_WALL, ROCK, OUTSIDE = range(4)


def looks(tokens: Tokens) -> NDArray[np.uint8]:
    """One of PLAIN, AT_WALL, ROCK and OUTSIDE for every cell.

    >>> import numpy as np
    >>> looks(np.array([[0, 0, 0], [0, 2, 0], [0, 0, 0]], np.uint8)).tolist()
    [[0, 1, 0], [0, 1, 0], [0, 0, 0]]
    """
    wall = tokens == WALL
    filler = outside(tokens)
    room = ~wall & ~filler
    result = np.full(tokens.shape, PLAIN, np.uint8)
    result[:-1][wall[:-1] & room[1:]] = AT_WALL
    result[1:][room[1:] & wall[:-1]] = AT_WALL
    result[wall & ~_around(room)] = ROCK
    result[filler] = OUTSIDE
    return result


def _around(cells: Cells) -> Cells:
    """Every cell that has one of these on any of its eight sides, or is one."""
    across = cells.copy()
    across[:, 1:] |= cells[:, :-1]
    across[:, :-1] |= cells[:, 1:]
    found = across.copy()
    found[1:] |= across[:-1]
    found[:-1] |= across[1:]
    return found
