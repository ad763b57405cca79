"""Noise schedules: the share of a board that is visible at time t, and the weight that follows for an example.

A schedule is a function alpha(u) of u = t / T: 1 at u = 0, 0 at u = 1, falling in between.
:func:`register_schedule` adds one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from maskoban._util.registry import Registry
from maskoban.errors import MaskobanError

#: The name of a registered schedule.
Schedule: TypeAlias = str

SCHEDULES = Registry[Callable[[float], float]](
    "schedule", {"linear": lambda u: 1.0 - u, "cosine": lambda u: math.cos(math.pi * u / 2) if u < 1 else 0.0}
)


def register_schedule(name: str, alpha: Callable[[float], float]) -> None:
    """Add a noise schedule under a name, for presets and the models trained with it.

    >>> register_schedule("rising", lambda u: u)
    Traceback (most recent call last):
        ...
    maskoban.errors.MaskobanError: schedule 'rising': expected alpha to fall from 1 at u = 0 to 0 at u = 1
    """
    values = [alpha(i / 64) for i in range(65)]
    if abs(values[0] - 1) > 1e-6 or abs(values[-1]) > 1e-6 or not all(np.diff(values) < 0):
        raise MaskobanError(f"schedule {name!r}: expected alpha to fall from 1 at u = 0 to 0 at u = 1")
    SCHEDULES.register(name, alpha)


def alpha(schedule: Schedule, t: float, steps: int) -> float:
    """The share of cells still visible at time t of ``steps``: 1 at t = 0, 0 at t = steps.

    linear:  alpha_t = 1 - t / T
    cosine:  alpha_t = cos(pi t / 2T), so that 1 - alpha_t is about pi^2 t^2 / 8T^2 near t = 0

    >>> alpha("linear", 25, 100)
    0.75
    """
    return SCHEDULES[schedule](t / steps)


def time_at(schedule: Schedule, masked: NDArray[np.int64], cells: int, steps: int) -> NDArray[np.float64]:
    """The time at which so many of the cells are masked on average: 1 - alpha_t = masked / cells solved for t.

    >>> time_at("linear", np.array([50]), 100, 100), time_at("cosine", np.array([50]), 100, 100).round(1)
    (array([50.]), array([66.7]))
    """
    if schedule == "linear":
        return steps * masked / cells
    counts, place = np.unique(masked, return_inverse=True)
    return steps * np.array([_inverse(schedule, 1 - count / cells) for count in counts.tolist()])[place]


@cache
def _inverse(schedule: Schedule, visible: float) -> float:
    """The u with alpha(u) = visible, by bisection."""
    low, high, alpha = 0.0, 1.0, SCHEDULES[schedule]
    for _ in range(53):
        middle = (low + high) / 2
        low, high = (middle, high) if alpha(middle) > visible else (low, middle)
    return (low + high) / 2


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
    cells, is the mean times a constant. t = 0 masks nothing, never occurs, and gets the cap.

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
