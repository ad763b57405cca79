"""How many of each tile a board holds: above all walls, whose number drifts when a sampler is biased."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from maskoban.boards import TILES, WALL, Tokens
from maskoban.boards.tiles import NAMES, tile_counts
from maskoban.errors import MaskobanError
from maskoban.evaluation.shares import Z95


@dataclass(frozen=True)
class Mean:
    """A mean over boards with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class TileCounts:
    """Means a board."""

    walls: Mean
    means: dict[str, float]  # of every tile, by name


def count_tiles(boards: Tokens) -> TileCounts:
    """Mean counts; that of walls with the interval mean ± 1.96 s / sqrt(n), s the sample's deviation.

    >>> import numpy as np
    >>> count_tiles(np.array([[[0, 2, 3]], [[0, 0, 4]]], np.uint8)).walls.mean
    1.5
    """
    if len(boards) == 0:
        raise MaskobanError("there are no boards to measure")
    counts = tile_counts(boards)[:TILES]
    walls = counts[WALL]
    mean = float(walls.mean())
    # One board says nothing about how much boards differ: then any number of walls is possible.
    reach = Z95 * float(walls.std(ddof=1)) / sqrt(len(walls)) if len(walls) > 1 else float(boards[0].size)
    return TileCounts(
        walls=Mean(mean, max(0.0, mean - reach), min(float(boards[0].size), mean + reach)),
        means=dict(zip(NAMES, counts.mean(axis=1).tolist(), strict=True)),
    )
