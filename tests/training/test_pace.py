"""The pace of a run: how much of its budget is used, and the learning rates that follow."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from maskoban.training.checkpoint import Progress
from maskoban.training.pace import Ending, rate_factor, share_done
from maskoban.training.presets import TINY


def test_rates_warm_up_hold_and_fall() -> None:
    linear = replace(TINY, warmup=4, steps=20, decay="linear", decay_share=0.5)
    cosine = replace(TINY, warmup=4, steps=20, decay="cosine", decay_share=1.0)
    factors = {
        step: tuple(rate_factor(preset, Progress(step), None, None) for preset in (linear, cosine))
        for step in (0, 3, 10, 15, 20)
    }
    assert factors[0] == pytest.approx((0.25, 0.25))
    assert factors[3][0] == 1
    assert factors[10] == pytest.approx((1, 0.5))
    assert factors[15] == pytest.approx((0.5, 0.5 - 0.5 * math.cos(math.pi / 4)))
    assert factors[20] == pytest.approx((0, 0))


def test_without_a_warm_up_the_first_step_has_the_whole_rate() -> None:
    assert rate_factor(replace(TINY, warmup=0), Progress(), None, None) == 1


def test_the_schedule_follows_a_budget_of_minutes_and_not_the_steps() -> None:
    preset = replace(TINY, warmup=0, decay="linear", decay_share=1.0)
    late = Progress(step=1_000_000, seconds=90.0)
    assert share_done(preset, late, 2, None) == 0.75
    assert rate_factor(preset, late, 2, None) == pytest.approx(0.25)
    assert share_done(preset, late, None, None) == 1


def test_no_more_than_the_whole_budget_is_used() -> None:
    late = Progress(step=TINY.steps + 1, seconds=61.0)
    for minutes, ending in ((None, None), (1, None), (None, Ending(begin=0, steps=9, rate=0.5))):
        assert share_done(TINY, late, minutes, ending) == 1
        assert rate_factor(TINY, late, minutes, ending) == 0


@pytest.mark.parametrize("minutes", [None, 1.0])
def test_a_run_that_ends_early_goes_from_the_rate_it_had_to_zero(minutes: float | None) -> None:
    """Whatever its budget was, and however much of that is left."""
    ending = Ending(begin=40, steps=4, rate=0.8)
    reached = [Progress(step, seconds=50.0) for step in range(40, 45)]
    assert [share_done(TINY, there, minutes, ending) for there in reached] == [0, 0.25, 0.5, 0.75, 1]
    assert [rate_factor(TINY, there, minutes, ending) for there in reached] == pytest.approx(
        [0.8, 0.6, 0.4, 0.2, 0]
    )
