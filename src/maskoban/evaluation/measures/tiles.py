"""How many of each tile a board holds: above all walls, whose number drifts when a sampler is biased."""

from __future__ import annotations

from dataclasses import dataclass

from maskoban.boards import TILES, WALL, Tokens
from maskoban.boards.tiles import NAMES, tile_counts
from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.share import Mean, mean_of


@dataclass(frozen=True)
class TileCounts:
    """Means a board."""

    walls: Mean
    means: dict[str, float]  # of every tile, by name


def count_tiles(boards: Tokens) -> TileCounts:
    """Mean counts; that of walls with its 95 % interval.

    >>> import numpy as np
    >>> count_tiles(np.array([[[0, 2, 3]], [[0, 0, 4]]], np.uint8)).walls.mean
    1.5
    """
    if len(boards) == 0:
        raise MaskobanError("there are no boards to measure")
    counts = tile_counts(boards)[:TILES]
    means = dict(zip(NAMES, counts.mean(axis=1).tolist(), strict=True))
    return TileCounts(mean_of(counts[WALL], float(boards[0].size)), means)
