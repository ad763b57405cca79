"""References by size and number of boxes, and the guided effort by which boards of every size are rated.

Boards of 10x10 with four boxes are rated by the effort of Boxoban's medium levels, all others by the guided effort of
synthetic boards. `maskoban corpus synth` makes these; benchmarks/rating.py writes their quartiles to
size_references.json.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.geometry import group_by_shape, symmetries
from maskoban.boards.tiles import Tokens, object_counts, tile_counts
from maskoban.solving.solver import Limits, Results, solve_many

#: The search for the guided effort stops after so many states in each of the eight symmetries.
GUIDED_STATES = 5_000

#: The verdicts of boards that may be solvable, as numbers.
MAYBE_SOLVABLE = [Results.VERDICTS.index(verdict) for verdict in ("solved", "unknown")]


@dataclass(frozen=True)
class Reference:
    """The quarters by which boards of one size and number of boxes are rated; ``ends`` are of the guided effort."""

    name: str
    measure: Literal["effort", "guided"]
    ends: tuple[float, float, float] | None = None


#: The reference of boards of Boxoban's size: the effort, by the quartiles of `boxoban_quartiles`.
BOXOBAN = Reference("Boxoban medium", "effort")


def reference_of(height: int, width: int, boxes: int) -> Reference:
    """The reference of a size, or the nearest in the table: first by boxes, then by cells inside the border, then by
    the shorter side.

    A board and its quarter turn have one reference.

    >>> reference_of(10, 10, 4).name
    'Boxoban medium'
    >>> reference_of(9, 7, 2).name, reference_of(4, 9, 1).name
    ('7x9 with 2 boxes', '5x7 with 1 box, the nearest')
    """
    if (height, width, boxes) == (10, 10, 4):
        return BOXOBAN
    table, (low, high) = _table(), sorted((height, width))

    def gap(key: tuple[int, int, int]) -> tuple[int, int, int]:
        cells = (key[0] - 2) * (key[1] - 2) - max(low - 2, 0) * max(high - 2, 0)
        return abs(key[2] - boxes), abs(cells), abs(key[0] - low)

    key = min(table, key=gap)
    nearest = "" if key == (low, high, boxes) else ", the nearest"
    count = "1 box" if key[2] == 1 else f"{key[2]} boxes"
    return Reference(f"{key[0]}x{key[1]} with {count}{nearest}", "guided", table[key])


def size_table() -> dict[str, list[float]]:
    """The ends of the quarters of the guided effort by rows, columns and boxes, from size_references.json.

    >>> len(size_table()["8x8x2"])
    3
    """
    text = files("maskoban.solving").joinpath("size_references.json").read_text(encoding="utf-8")
    table: dict[str, list[float]] = json.loads(text)["guided"]
    return table


@cache
def _table() -> dict[tuple[int, int, int], tuple[float, float, float]]:
    table = {}
    for key, (first, second, third) in size_table().items():
        height, width, boxes = map(int, key.split("x"))
        table[height, width, boxes] = (first, second, third)
    return table


def guided_efforts(boards: Tokens | list[Tokens], threads: int | None = None) -> NDArray[np.float64]:
    """The guided effort of every board, -1 where it has none: it is unsolvable or malformed.

    The geometric mean, over the eight symmetries of a board, of the states that mode `any` expands, at most
    `GUIDED_STATES` each.

    >>> guided_efforts(np.array([[[2, 3, 1, 4]]], dtype=np.uint8)).tolist()
    [2.0]
    """
    found = np.full(len(boards), -1.0)
    for where, stack in group_by_shape(boards):
        logs, solvable = np.zeros(len(stack)), np.ones(len(stack), np.bool_)
        for turned in symmetries(stack):
            limits = Limits(states=GUIDED_STATES)
            results = solve_many(np.ascontiguousarray(turned), "any", threads, limits, solutions=False)
            solvable &= np.isin(results.verdicts, MAYBE_SOLVABLE)
            logs += np.log(np.maximum(results.expanded, 1))
        found[where] = np.where(solvable, np.round(np.exp(logs / 8), 2), -1.0)
    return found


def references_of(boards: Tokens | list[Tokens]) -> list[Reference]:
    """The reference of every board."""
    found: list[Reference] = [None] * len(boards)  # type: ignore[list-item]
    for where, stack in group_by_shape(boards):
        boxes, _, _ = object_counts(tile_counts(stack))
        height, width = stack.shape[1:]
        known = {count: reference_of(height, width, count) for count in np.unique(boxes).tolist()}
        for index, count in zip(where, boxes.tolist(), strict=True):
            found[index] = known[count]
    return found
