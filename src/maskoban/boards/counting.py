"""How many cells hold which tile, and how many boxes, goals and players that makes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tiles import BOX, BOX_ON_GOAL, GOAL, MASK, PLAYER, PLAYER_ON_GOAL, Tokens

Numbers = NDArray[np.int64]


class Things(NamedTuple):
    """Boxes, goals and players of each board, whatever they stand on, (n,) each."""

    boxes: Numbers
    goals: Numbers
    players: Numbers


def tile_counts(boards: Tokens) -> Numbers:
    """How many cells of each board hold each tile or MASK, ``(8, n)``.

    >>> tile_counts(np.array([[[0, 0, 7]]], np.uint8)).T.tolist()
    [[2, 0, 0, 0, 0, 0, 0, 1]]
    """
    return np.stack([np.count_nonzero(boards == tile, axis=(1, 2)) for tile in range(MASK + 1)])


def things(counts: Numbers) -> Things:
    """What so many tiles of each kind amount to.

    >>> things(tile_counts(np.array([[[6, 3, 5]]], np.uint8)))
    Things(boxes=array([2]), goals=array([2]), players=array([1]))
    """
    on_goal = counts[BOX_ON_GOAL]
    return Things(
        boxes=counts[BOX] + on_goal,
        goals=counts[GOAL] + on_goal + counts[PLAYER_ON_GOAL],
        players=counts[PLAYER] + counts[PLAYER_ON_GOAL],
    )
