"""The paper's schedules and weights, number by number."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from maskoban.diffusion.schedule import (
    alpha,
    masked_share,
    register_schedule,
    time_at,
    uncapped_weight,
    weights,
)
from maskoban.errors import MaskobanError


def test_both_schedules_start_whole_and_end_masked() -> None:
    for schedule in ("linear", "cosine"):
        assert alpha(schedule, 0, 100) == 1.0
        assert alpha(schedule, 100, 100) == 0.0
        share = masked_share(schedule, 100)
        assert share.shape == (101,)
        assert (np.diff(share) > 0).all()


def test_values_on_the_way() -> None:
    assert [alpha("linear", t, 100) for t in (1, 25, 50)] == [0.99, 0.75, 0.5]
    assert alpha("cosine", 50, 100) == pytest.approx(math.sqrt(0.5))
    assert masked_share("linear", 64)[16] == 0.25


def test_an_uncapped_first_step_weighs_t_on_the_linear_schedule_and_8106_on_the_cosine() -> None:
    assert uncapped_weight("linear", 1, 100) == pytest.approx(100)
    assert round(uncapped_weight("cosine", 1, 100)) == 8106
    assert uncapped_weight("cosine", 1, 100) == pytest.approx(8 * 100**2 / math.pi**2, rel=1e-3)
    assert weights("linear", 100, cap=math.inf)[1] == pytest.approx(100)


def test_the_papers_cap_of_ten_holds_up_to_t_equal_ten() -> None:
    table = weights("linear", 100, cap=10.0)
    assert table[1] == table[10] == 10
    assert table[11] == pytest.approx(100 / 11)
    assert table[100] == 1


def test_a_cap_of_one_is_the_elbo_on_the_linear_schedule() -> None:
    """(T/t) * (sum over masked) / L, where t L / T cells are masked, is the mean over masked cells."""
    steps = cells = 64
    elbo = [(steps / t) * t / cells for t in range(1, steps + 1)]
    assert weights("linear", steps, cap=1.0)[1:].tolist() == pytest.approx(elbo)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_time_at_is_the_inverse_of_the_masked_share(schedule: str) -> None:
    masked = np.array([0, 1, 17, 50, 99, 100, 17])
    t = time_at(schedule, masked, 100, 64)
    assert [100 * (1 - alpha(schedule, each, 64)) for each in t] == pytest.approx(masked.tolist())
    assert time_at("cosine", masked, 100, 64) == pytest.approx(2 * 64 / math.pi * np.arccos(1 - masked / 100))


@pytest.mark.parametrize("alpha", [lambda u: 1 - u / 2, lambda u: 0.9 - 0.9 * u, lambda u: max(1 - 2 * u, 0)])
def test_a_schedule_falls_from_one_to_zero(alpha: Callable[[float], float]) -> None:
    with pytest.raises(
        MaskobanError, match="schedule 'mine': expected alpha to fall from 1 at u = 0 to 0 at u = 1"
    ):
        register_schedule("mine", alpha)
    with pytest.raises(MaskobanError, match="schedule: expected one of linear, cosine, got 'mine'"):
        masked_share("mine", 10)
