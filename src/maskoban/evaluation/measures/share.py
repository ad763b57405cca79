"""Shares and means over boards, with their 95 % intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The normal quantile of a two-sided 95 % interval.
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Share:
    """``count`` of ``total``; ``share`` is None where there was nothing to count."""

    count: int
    total: int
    share: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Mean:
    """A mean over boards."""

    mean: float
    low: float
    high: float


def share_of(count: int, total: int) -> Share:
    """A share p = k / n with its Wilson 95 % interval, z = 1.96:

    (p + z² / 2n ± z sqrt(p (1 - p) / n + z² / 4n²)) / (1 + z² / n)

    >>> share = share_of(9, 10)
    >>> share.share, round(share.low, 4), round(share.high, 4)
    (0.9, 0.5958, 0.9821)
    """
    if total == 0:
        return Share(0, 0, None, 0.0, 1.0)
    p, z2 = count / total, Z95 * Z95
    middle = p + z2 / (2 * total)
    reach = Z95 * sqrt(p * (1 - p) / total + z2 / (4 * total * total))
    scale = 1 + z2 / total
    # Where none or all were counted one end is exactly 0 or 1, which rounding may miss.
    low = 0.0 if count == 0 else (middle - reach) / scale
    high = 1.0 if count == total else (middle + reach) / scale
    return Share(count, total, p, low, high)


def mean_of(numbers: NDArray[np.integer[Any]], most: float) -> Mean:
    """The mean of numbers from 0 to ``most``, with the interval mean ± 1.96 s / sqrt(n), s the standard deviation.

    >>> mean_of(np.array([1, 2]), 9).mean
    1.5
    """
    mean = float(numbers.mean())
    # One number says nothing about how much they differ: then any mean is possible.
    reach = Z95 * float(numbers.std(ddof=1)) / sqrt(len(numbers)) if len(numbers) > 1 else most
    return Mean(mean, max(0.0, mean - reach), min(most, mean + reach))
