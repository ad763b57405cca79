"""What lies around a cell decides how it is drawn: filler outside, wall faces, shadows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.tiles import FLOOR, WALL, Tokens

#: How a cell is drawn beyond its token: nothing special, a wall above a room or the floor below a wall,
#: a wall with no room on any side, and floor outside the board, which is not drawn at all.
PLAIN, AT_WALL, ROCK, OUTSIDE = range(4)


def _neighbours(mask: NDArray[np.bool_], diagonal: bool) -> NDArray[np.bool_]:
    """Cells with a neighbour in the mask."""
    padded = np.pad(mask, 1)
    height, width = mask.shape
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    if diagonal:
        steps += [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    found = np.zeros_like(mask)
    for down, right in steps:
        found |= padded[1 + down : 1 + down + height, 1 + right : 1 + right + width]
    return found


def _flood(start: NDArray[np.bool_], through: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Everything reached from ``start`` in steps of one cell inside ``through``."""
    reached = start & through
    while True:
        grown = reached | (_neighbours(reached, diagonal=False) & through)
        if (grown == reached).all():
            return reached
        reached = grown


def outside(tokens: Tokens) -> NDArray[np.bool_]:
    """The filler: floor open to the edge of the grid and cut off from everything that matters in the game.

    >>> import numpy as np
    >>> outside(np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 2, 0], [1, 0, 0, 0]], np.uint8)).sum()
    np.int64(7)
    """
    passable = tokens != WALL
    inside = _flood(passable & (tokens != FLOOR), passable)
    edge = np.ones_like(passable)
    edge[1:-1, 1:-1] = False
    return _flood(edge & ~inside, passable & ~inside)


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
    result[wall & ~_neighbours(room, diagonal=True)] = ROCK
    result[filler] = OUTSIDE
    return result
