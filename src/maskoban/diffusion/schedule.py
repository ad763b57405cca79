"""Noise schedules: how much of a board is still visible at time t, and what that makes an example weigh."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Schedule = Literal["linear", "cosine"]


def alpha(schedule: Schedule, t: float, steps: int) -> float:
    """The share of cells still visible at time t of ``steps``: 1 at t = 0, 0 at t = steps.

    linear:  alpha_t = 1 - t / T
    cosine:  alpha_t = cos(pi t / 2T), so that 1 - alpha_t is about pi^2 t^2 / 8T^2 near t = 0

    >>> alpha("linear", 25, 100)
    0.75
    """
    if schedule == "linear":
        return 1.0 - t / steps
    return math.cos(math.pi * t / (2 * steps)) if t < steps else 0.0


def time_at(schedule: Schedule, masked: NDArray[np.int64], cells: int, steps: int) -> NDArray[np.float64]:
    """The time at which so many of the cells are masked on average: 1 - alpha_t = masked / cells solved for t.

    >>> time_at("linear", np.array([50]), 100, 100), time_at("cosine", np.array([50]), 100, 100).round(1)
    (array([50.]), array([66.7]))
    """
    if schedule == "linear":
        return steps * masked / cells
    return np.asarray(2 * steps / math.pi * np.arccos(1 - masked / cells))


def uncapped_weight(schedule: Schedule, t: float, steps: int) -> float:
    """w*(t) = 1 / (1 - alpha_t): T / t on the linear schedule, about 8 T^2 / (pi t)^2 on the cosine one.

    >>> round(uncapped_weight("cosine", 1, 100))
    8106
    """
    return 1.0 / (1.0 - alpha(schedule, t, steps))


def masked_share(schedule: Schedule, steps: int) -> NDArray[np.float32]:
    """1 - alpha_t for t = 0 ... T, as a table to index with t."""
    return np.array([1.0 - alpha(schedule, t, steps) for t in range(steps + 1)], dtype=np.float32)


def weights(schedule: Schedule, steps: int, cap: float) -> NDArray[np.float32]:
    """w(t) = min(1 / (1 - alpha_t), cap) for t = 0 ... T, as a table to index with t.

    The paper's cap is 10. A cap of 1 gives every example the same weight on its *mean* cross-entropy, which
    on the linear schedule is the ELBO: (T/t) times the sum over masked cells, divided by the number of
    cells, is the mean times a constant. t = 0 hides nothing, is never drawn, and gets the cap.

    >>> weights("linear", 100, cap=10.0)[[1, 10, 50, 100]].tolist()
    [10.0, 10.0, 2.0, 1.0]
    """
    table = [cap] + [min(uncapped_weight(schedule, t, steps), cap) for t in range(1, steps + 1)]
    return np.array(table, dtype=np.float32)


def rarity(steps: int, power: float) -> NDArray[np.float32]:
    """1 / (T P(t)) for t = 0 ... T, as a table to index with t, where t = ceil(T u^power) for a uniform u.

    P(t) = (t/T)^(1/power) - ((t-1)/T)^(1/power). Times this, an example weighs in the mean what it did under
    uniform times, whatever the power: only the noise differs. One hidden cell tells much less than thirty, so
    the gradient of a few-mask example is many times noisier, and drawing such examples more often pays.

    >>> rarity(64, power=2.0)[[1, 16, 64]].round(2)
    array([0.12, 0.98, 1.99], dtype=float32)
    """
    t = np.arange(1, steps + 1) / steps
    share = np.diff(t ** (1 / power), prepend=0.0)
    return np.concatenate([[0.0], 1 / (steps * share)]).astype(np.float32)
