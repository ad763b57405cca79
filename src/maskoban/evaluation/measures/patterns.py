"""Do boards look like the corpus at close range: how many of each tile they hold, and their 3x3 patterns.

The number of walls drifts when a sampler is biased. Every 3x3 window that lies within the grid counts, border cells
included: 64 on a 10x10 board.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import TILES, WALL, Tokens
from maskoban.boards.tiles import NAMES, tile_counts
from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.share import Mean, mean_of

#: The sample sizes of the paper's figure.
SIZES = (250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000)

#: From this size on the divergence falls as a power of the size; the exponent is fitted there.
FITTED_FROM = 10_000


class Patterns(NamedTuple):
    """How often each pattern occurs; a code has three bits a cell, the last cell lowest. Codes ascend."""

    codes: NDArray[np.uint32]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class TileCounts:
    """Means a board."""

    walls: Mean
    means: dict[str, float]  # of every tile, by name


@dataclass(frozen=True)
class PatternMatch:
    """Divergences by sample size, beside those of as many held-out levels."""

    jsd: dict[int, float]
    held_out: dict[int, float]
    ratio: dict[int, float | None]
    exponent: float | None  # None where the sample is too small to fit it
    held_out_exponent: float | None


def count_tiles(boards: Tokens) -> TileCounts:
    """Mean counts; that of walls with its 95 % interval.

    >>> count_tiles(np.array([[[0, 2, 3]], [[0, 0, 4]]], np.uint8)).walls.mean
    1.5
    """
    if len(boards) == 0:
        raise MaskobanError("there are no boards to measure")
    counts = tile_counts(boards)[:TILES]
    means = dict(zip(NAMES, counts.mean(axis=1).tolist(), strict=True))
    return TileCounts(mean_of(counts[WALL], float(boards[0].size)), means)


def count_patterns(boards: Tokens) -> Patterns:
    """The 3x3 patterns of all windows of all boards.

    >>> count_patterns(np.zeros((1, 4, 5), np.uint8))
    Patterns(codes=array([0], dtype=uint32), counts=array([6]))
    """
    n, height, width = boards.shape
    if n == 0:
        raise MaskobanError("there are no boards to find patterns on")
    _check_windows(boards)
    codes = np.zeros((n, height - 2, width - 2), np.uint32)
    for row in range(3):
        for column in range(3):
            codes <<= 3
            codes |= boards[:, row : row + height - 2, column : column + width - 2]
    return Patterns(*np.unique(codes, return_counts=True))


def has_windows(boards: Tokens) -> bool:
    """Whether boards are large enough for a 3x3 pattern.

    >>> has_windows(np.zeros((1, 2, 4), np.uint8))
    False
    """
    return bool(min(boards.shape[1:]) >= 3)


def divergence(p: Patterns, q: Patterns) -> float:
    """JSD(P || Q) = KL(P || M) / 2 + KL(Q || M) / 2, with M = (P + Q) / 2 and logarithms to base 2.

    >>> wall, floor = np.zeros((1, 3, 3), np.uint8), np.ones((1, 3, 3), np.uint8)
    >>> divergence(count_patterns(wall), count_patterns(floor))
    1.0
    """
    codes = np.union1d(p.codes, q.codes)
    shares = np.zeros((2, len(codes)))
    for row, patterns in zip(shares, (p, q), strict=True):
        row[np.searchsorted(codes, patterns.codes)] = patterns.counts / patterns.counts.sum()
    middle = shares.mean(axis=0)
    kl = [float((s[s > 0] * np.log2(s[s > 0] / middle[s > 0])).sum()) for s in shares]
    return sum(kl) / 2


def pattern_jsd(boards: Tokens, reference: Patterns) -> float:
    """The divergence between the 3x3 patterns of boards and those of a corpus.

    It depends on the number of boards: compare only with that of as many held-out levels.

    >>> boards = np.array([[[0, 0, 0], [0, 1, 0], [0, 0, 0]]], np.uint8)
    >>> pattern_jsd(boards, count_patterns(boards))
    0.0
    """
    return divergence(reference, count_patterns(boards))


def pattern_curve(boards: Tokens, reference: Patterns, sizes: Sequence[int] = SIZES) -> dict[int, float]:
    """`pattern_jsd` of the first K boards, for each size K that there are boards enough for.

    >>> boards = np.zeros((3, 3, 3), np.uint8)
    >>> pattern_curve(boards, count_patterns(boards), sizes=(1, 2, 4))
    {1: 0.0, 2: 0.0}
    """
    return {size: pattern_jsd(boards[:size], reference) for size in sizes if size <= len(boards)}


def fit_exponent(curve: Mapping[int, float]) -> float | None:
    """The a of JSD ~ K^a, by least squares on logarithms, over the sizes from 10,000 on.

    None where fewer than two sizes reach that far.

    >>> round(fit_exponent({1_000: 0.5, 10_000: 0.04, 40_000: 0.02}), 4)
    -0.5
    """
    points = [(size, jsd) for size, jsd in curve.items() if size >= FITTED_FROM and jsd > 0]
    if len(points) < 2:
        return None
    x, y = np.log(np.array(points)).T
    return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())


def measure_patterns(boards: Tokens, reference: Patterns, held_out: Mapping[int, float]) -> PatternMatch:
    """The curve of these boards beside the held-out one: at a ratio of 1 nothing tells them apart.

    >>> boards = np.zeros((250, 3, 3), np.uint8)
    >>> measure_patterns(boards, count_patterns(boards), {250: 0.5}).ratio
    {250: 0.0}
    """
    _check_windows(boards)
    if not held_out:
        raise MaskobanError(
            f"patterns are read against at least {SIZES[0]} held-out levels of at least 3x3, and there are fewer"
        )
    if len(boards) < min(held_out):
        raise MaskobanError(f"patterns need at least {min(held_out)} boards, and there are {len(boards)}")
    jsd = pattern_curve(boards, reference, tuple(held_out))
    return PatternMatch(
        jsd=jsd,
        held_out=dict(held_out),
        # None where held-out levels do not differ from the corpus at all.
        ratio={size: value / held_out[size] if held_out[size] else None for size, value in jsd.items()},
        exponent=fit_exponent(jsd),
        held_out_exponent=fit_exponent(held_out),
    )


def _check_windows(boards: Tokens) -> None:
    if not has_windows(boards):
        size = "x".join(map(str, boards.shape[1:]))
        raise MaskobanError(f"3x3 patterns need boards of at least 3x3, and these are {size}")
