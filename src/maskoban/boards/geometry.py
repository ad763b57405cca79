"""Regions of boards, their symmetries, and batches of boards with one shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.tiles import FLOOR, WALL, Tokens

Cells: TypeAlias = NDArray[np.bool_]


def neighbours(cells: Cells) -> Cells:
    """Cells with one of these directly above, below, left or right; for one board or a batch.

    >>> neighbours(np.array([[True, False, False]])).tolist()
    [[False, True, False]]
    """
    found = np.zeros_like(cells)
    found[..., 1:, :] |= cells[..., :-1, :]
    found[..., :-1, :] |= cells[..., 1:, :]
    found[..., 1:] |= cells[..., :-1]
    found[..., :-1] |= cells[..., 1:]
    return found


def flood_fill(start: Cells, through: Cells) -> Cells:
    """Cells of ``through`` connected to those of ``start`` in it, for a batch ``(n, h, w)``.

    >>> row = np.array([[[True, True, False, True]]])
    >>> flood_fill(row & [True, False, False, False], row).tolist()
    [[[True, True, False, False]]]
    """
    reached = start & through
    active = np.arange(len(start))
    while len(active):
        now = reached[active]
        grown = now | (neighbours(now) & through[active])
        reached[active] = grown
        active = active[(grown != now).any(axis=(1, 2))]
    return reached


def border(tokens: Tokens) -> Cells:
    """The outermost cells of a board.

    >>> int(border(np.zeros((3, 3), np.uint8)).sum())
    8
    """
    found = np.ones(tokens.shape, np.bool_)
    found[1:-1, 1:-1] = False
    return found


def exterior(tokens: Tokens) -> Cells:
    """Floor connected to the edge of the grid and not connected to a player, box or goal: filler.

    >>> int(exterior(np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 2, 0], [1, 0, 0, 0]], np.uint8)).sum())
    7
    """
    free = tokens != WALL
    at_edge: Cells = free & border(tokens)
    if not at_edge.any():  # true of every board with a border of wall
        return at_edge
    interior = flood_fill((free & (tokens != FLOOR))[None], free[None])
    found: Cells = flood_fill(at_edge[None], free[None] & ~interior)[0]
    return found


def symmetries(tokens: Tokens) -> list[Tokens]:
    """The board, its three quarter turns (anticlockwise), then the mirrored board and its three.

    Takes one board ``(h, w)`` or a batch ``(n, h, w)``; odd quarter turns exchange height and width.

    >>> [s.tolist() for s in symmetries(np.array([[2, 3, 4]], np.uint8))[:3]]
    [[[2, 3, 4]], [[4], [3], [2]], [[4, 3, 2]]]
    """
    mirrored = np.flip(tokens, axis=-1)
    return [np.rot90(t, k, axes=(-2, -1)) for t in (tokens, mirrored) for k in range(4)]


def turning_tables(rows: int, columns: int) -> NDArray[np.int64]:
    """For each of the eight symmetries, the cell that each cell of the turned board shows: (8, cells).

    Where a quarter turn would change the shape, its row is -1.

    >>> turning_tables(2, 2).tolist()[:2]
    [[0, 1, 2, 3], [1, 3, 0, 2]]
    """
    grid = np.arange(rows * columns).reshape(rows, columns)
    turned = symmetries(grid)  # type: ignore[arg-type]
    return np.stack([t.ravel() if t.shape == grid.shape else np.full(grid.size, -1) for t in turned])


def group_by_shape(boards: Tokens | Sequence[Tokens]) -> Iterator[tuple[NDArray[np.int64], Tokens]]:
    """Batches of equal shape, each with the indices of its boards.

    >>> mixed = [np.zeros(shape, np.uint8) for shape in ((2, 3), (4, 5), (2, 3))]
    >>> [(indices.tolist(), batch.shape) for indices, batch in group_by_shape(mixed)]
    [([0, 2], (2, 2, 3)), ([1], (1, 4, 5))]
    """
    if isinstance(boards, np.ndarray):
        if len(boards):
            yield np.arange(len(boards)), boards
        return
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, board in enumerate(boards):
        groups[board.shape].append(i)
    for indices in groups.values():
        yield np.array(indices), np.stack([boards[i] for i in indices])
