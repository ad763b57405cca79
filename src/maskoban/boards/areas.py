"""Areas of a board: what lies beside cells, what can be reached from them, and what is outside."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .tiles import FLOOR, WALL, Tokens

Cells: TypeAlias = NDArray[np.bool_]


def beside(cells: Cells) -> Cells:
    """Every cell that has one of these above, below, left or right of it; of one board or of many.

    >>> beside(np.array([[True, False, False]])).tolist()
    [[False, True, False]]
    """
    found = np.zeros_like(cells)
    found[..., 1:, :] |= cells[..., :-1, :]
    found[..., :-1, :] |= cells[..., 1:, :]
    found[..., 1:] |= cells[..., :-1]
    found[..., :-1] |= cells[..., 1:]
    return found


def flood(start: Cells, through: Cells) -> Cells:
    """All cells of ``through`` that are reached by single steps from those of ``start`` in it, of boards (n, h, w).

    >>> row = np.array([[[True, True, False, True]]])
    >>> flood(row & [True, False, False, False], row).tolist()
    [[[True, True, False, False]]]
    """
    reached = start & through
    active = np.arange(len(start))
    while len(active):
        now = reached[active]
        grown = now | (beside(now) & through[active])
        reached[active] = grown
        active = active[(grown != now).any(axis=(1, 2))]
    return reached


def rim(tokens: Tokens) -> Cells:
    """The outermost cells of a board.

    >>> rim(np.zeros((3, 3), np.uint8)).sum()
    np.int64(8)
    """
    found = np.ones(tokens.shape, np.bool_)
    found[1:-1, 1:-1] = False
    return found


def outside(tokens: Tokens) -> Cells:
    """The filler of a board: floor open to the edge of the grid from which there is no way to anything that matters.

    >>> outside(np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 2, 0], [1, 0, 0, 0]], np.uint8)).sum()
    np.int64(7)
    """
    free = tokens != WALL
    at_edge: Cells = free & rim(tokens)
    if not at_edge.any():  # as on every board with a wall around it
        return at_edge
    inside = flood((free & (tokens != FLOOR))[None], free[None])
    found: Cells = flood(at_edge[None], free[None] & ~inside)[0]
    return found
