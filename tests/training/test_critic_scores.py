"""What is read from a critic's scores: how well they tell boards apart, and the scale on which they do it best."""

from __future__ import annotations

import math

import numpy as np
import pytest

from maskoban.training.critic_scores import auc, calibration, cross_entropy


def test_calibration_recovers_a_slope_and_a_shift() -> None:
    """Of normal distributions half a unit off on either side, x itself is the log of the ratio."""
    rng = np.random.default_rng(0)
    real, fake = rng.normal(0.5, 1, 40_000), rng.normal(-0.5, 1, 30_000)
    assert calibration(real, fake) == pytest.approx((1, 0), abs=0.03)
    slope, shift = calibration(4 * real + 2, 4 * fake + 2)  # four times too sure, and for no reason in favour
    assert (slope, shift) == pytest.approx((0.25, -0.5), abs=0.03)
    raw, better = (
        cross_entropy(a * (4 * real + 2) + b, a * (4 * fake + 2) + b) for a, b in ((1, 0), (slope, shift))
    )
    assert better < raw
    assert better == pytest.approx(cross_entropy(real, fake), abs=1e-3)


def test_scores_that_say_nothing_stay_as_they_are() -> None:
    assert calibration(np.zeros(5), np.zeros(4)) == (1, 0)


def test_scores_that_say_everything_stay_numbers() -> None:
    real, fake = np.linspace(5, 60, 50), np.linspace(-60, -5, 50)
    slope, shift = calibration(real, fake)
    assert cross_entropy(slope * real + shift, slope * fake + shift) <= cross_entropy(real, fake)
    assert 0 < slope < 100


def test_a_coin_has_the_cross_entropy_of_a_coin() -> None:
    assert cross_entropy(np.zeros(3), np.zeros(5)) == pytest.approx(math.log(2))
    assert auc(np.array([0.1, 0.9]), np.array([0.5])) == 0.5
