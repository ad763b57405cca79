"""A share of boards, with how far chance could have moved it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

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
