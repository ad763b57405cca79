"""How probable the walls that make a board unsolvable were when the model committed them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import WALL, Tokens
from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.repairs import Mending

Probabilities = NDArray[np.float32]

#: Bars of the histograms.
BARS = 25


@dataclass(frozen=True)
class Culprits:
    """Commit probabilities of walls; the medians are None where one wall repairs no board.

    ``last_commit`` marks older reports of boards with Gibbs sweeps: their probabilities are those of the last sweep,
    which sees all other cells, and so not the paper's quantity.
    """

    boards: int
    walls: int
    other_walls: int
    median: float | None
    other_median: float | None
    edges: list[float]
    histogram: list[int]
    other_histogram: list[int]
    last_commit: bool = False


def culprit_probabilities(
    boards: Tokens, probabilities: Probabilities, mending: Mending
) -> tuple[Probabilities, Probabilities]:
    """The commit probabilities of culprit walls, and of the other interior walls of the same boards.

    A culprit is a wall whose removal alone makes a board solvable; a board may have several, and each counts.
    Walls without a probability (NaN: given, or set by a later sweep) count nowhere.

    >>> board = np.array([[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]], np.uint8)
    >>> probability = np.array([[[1, 1, 1, 1], [1, 0.25, 0.75, 1], [1, 1, 1, 1]]], np.float32)
    >>> cures = np.zeros(board.shape, bool)
    >>> cures[0, 1, 1] = True
    >>> culprit_probabilities(board, probability, Mending(np.array([1], np.uint8), cures))
    (array([0.25], dtype=float32), array([0.75], dtype=float32))
    """
    if probabilities.shape != boards.shape:
        raise MaskobanError(
            f"commit probabilities must have the boards' shape {boards.shape}, but have {probabilities.shape}"
        )
    mended = np.flatnonzero(mending.cures.any(axis=(1, 2)))
    inner = (mended, slice(1, -1), slice(1, -1))
    probability, culprit = probabilities[inner], mending.cures[inner]
    wall = (boards[inner] == WALL) & ~np.isnan(probability)
    return probability[wall & culprit], probability[wall & ~culprit]


def measure_culprits(boards: Tokens, probabilities: Probabilities, mending: Mending) -> Culprits:
    """Medians and histograms of `culprit_probabilities`: the paper finds medians of 0.45 and 0.93.

    >>> none = Mending(np.zeros(1, np.uint8), np.zeros((1, 3, 3), bool))
    >>> measure_culprits(np.zeros((1, 3, 3), np.uint8), np.ones((1, 3, 3), np.float32), none).median
    """
    edges = np.linspace(0, 1, BARS + 1)
    culprits, others = culprit_probabilities(boards, probabilities, mending)
    return Culprits(
        boards=int(mending.cures.any(axis=(1, 2)).sum()),
        walls=len(culprits),
        other_walls=len(others),
        median=float(np.median(culprits)) if len(culprits) else None,
        other_median=float(np.median(others)) if len(others) else None,
        edges=edges.tolist(),
        histogram=np.histogram(culprits, edges)[0].tolist(),
        other_histogram=np.histogram(others, edges)[0].tolist(),
    )
