"""A counter-based rng: numbers depend only on (seed, board, stream, index).

A board must be the same in any batch, so there is no state: every number is a hash (the finaliser of SplitMix64) of its
place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_STRIDE = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, SplitMix64's increment


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniforms(
    seed: int, boards: NDArray[np.int64], stream: int | NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Numbers in [0, 1), one row a board: (boards, count). The stream is one for all boards, or one for each.

    >>> a = uniforms(7, np.array([0, 1, 2]), 0, 4)
    >>> bool((a[2] == uniforms(7, np.array([2]), 0, 4)[0]).all())
    True
    """
    with np.errstate(over="ignore"):
        key = _mix(np.array([int(seed) & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64) + _STRIDE)
        key = _mix(key + _STRIDE * (boards.astype(np.uint64) + np.uint64(1)))
        key = _mix(key + _STRIDE * np.asarray(stream + 1).astype(np.uint64))
        bits = _mix(key[:, None] + _STRIDE * np.arange(1, count + 1, dtype=np.uint64))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
