"""Muon against torch's own, the learning-rate schedule, and the average of the weights."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from maskoban.errors import MaskobanError
from maskoban.nn.networks import InteriorNetwork
from maskoban.training.checkpoint import Progress
from maskoban.training.config import TINY
from maskoban.training.optim import (
    Anneal,
    StackedMuon,
    WeightAverage,
    fraction_done,
    orthogonalise,
    rate_factor,
)


def test_singular_values_become_about_one_and_directions_stay() -> None:
    torch.manual_seed(0)
    for rows, columns in ((16, 16), (32, 8), (8, 32)):
        stack = torch.randn(3, rows, columns)
        after = orthogonalise(stack).float()
        assert after.shape == stack.shape
        values = torch.linalg.svdvals(after)
        assert values.min() > 0.3
        assert values.max() < 1.3
        u, _, v = torch.linalg.svd(stack, full_matrices=False)
        assert ((u @ v) * after).sum((1, 2)).min() > 0.6 * min(rows, columns)


def test_on_a_cpu_it_is_exact_to_fp32() -> None:
    """bf16 is for CUDA: on many CPUs it takes many times as long."""
    torch.manual_seed(4)
    stack = torch.randn(3, 12, 20)
    x = stack.double() / stack.double().norm(dim=(-2, -1), keepdim=True)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    matrices = torch.nn.Parameter(torch.zeros(3, 12, 20))
    matrices.grad = stack
    StackedMuon([matrices], lr=1.0, momentum=0.0).step()
    torch.testing.assert_close(-matrices.detach().double(), x, rtol=1e-4, atol=1e-5)


def test_a_matrix_of_zeros_stays_zero() -> None:
    assert not orthogonalise(torch.zeros(2, 4, 6)).any()


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch is older than torch.optim.Muon")
@pytest.mark.parametrize("shape", [(2, 8, 8), (3, 16, 8), (2, 3, 8, 16)])
def test_stacks_move_as_torchs_muon_moves_each_matrix(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    ours = torch.nn.Parameter(torch.randn(shape))
    theirs = [torch.nn.Parameter(m.clone()) for m in ours.detach().flatten(0, -3)]
    stacked = StackedMuon([ours], lr=0.02, momentum=0.95)
    single = torch.optim.Muon(theirs, lr=0.02, momentum=0.95, weight_decay=0.0, nesterov=True)
    start = ours.detach().clone()
    for _ in range(4):
        grad = torch.randn(shape)
        ours.grad = grad.clone()
        for p, g in zip(theirs, grad.flatten(0, -3), strict=True):
            p.grad = g.clone()
        stacked.step()
        single.step()
    moved = (ours - start).norm()
    apart = (ours.detach().flatten(0, -3) - torch.stack([p.detach() for p in theirs])).norm()
    assert apart < 0.03 * moved  # torch's is in bf16, which keeps two to three digits


def test_a_parameter_without_gradient_stays() -> None:
    p = torch.nn.Parameter(torch.ones(1, 2, 2))
    StackedMuon([p], lr=1.0, momentum=0.9).step()
    assert torch.equal(p, torch.ones(1, 2, 2))


# -- the learning-rate schedule


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
    assert fraction_done(preset, late, 2, None) == 0.75
    assert rate_factor(preset, late, 2, None) == pytest.approx(0.25)
    assert fraction_done(preset, late, None, None) == 1


def test_no_more_than_the_whole_budget_is_used() -> None:
    late = Progress(step=TINY.steps + 1, seconds=61.0)
    for minutes, anneal in ((None, None), (1, None), (None, Anneal(begin=0, steps=9, rate=0.5))):
        assert fraction_done(TINY, late, minutes, anneal) == 1
        assert rate_factor(TINY, late, minutes, anneal) == 0


@pytest.mark.parametrize("minutes", [None, 1.0])
def test_a_run_that_ends_early_goes_from_the_rate_it_had_to_zero(minutes: float | None) -> None:
    """Whatever its budget was, and however much of that is left."""
    anneal = Anneal(begin=40, steps=4, rate=0.8)
    reached = [Progress(step, seconds=50.0) for step in range(40, 45)]
    assert [fraction_done(TINY, there, minutes, anneal) for there in reached] == [0, 0.25, 0.5, 0.75, 1]
    assert [rate_factor(TINY, there, minutes, anneal) for there in reached] == pytest.approx(
        [0.8, 0.6, 0.4, 0.2, 0]
    )


# -- the average of the weights


def small() -> InteriorNetwork:
    torch.manual_seed(0)
    return InteriorNetwork(height=5, width=5, d=8, blocks=1, heads=1, hidden=16)


def stir(network: InteriorNetwork) -> None:
    """What a step does, as far as an average can tell."""
    with torch.no_grad():
        for p in network.parameters():
            p.add_(torch.randn_like(p))


def weights(network: InteriorNetwork) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in network.named_parameters()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_the_average_follows_the_weights() -> None:
    """keep = min(memory, (1 + step) / (10 + step)): 0.1, then 2/11, then the memory."""
    network = small()
    average, expected = WeightAverage(network, memory=0.2), weights(network)
    for step, keep in enumerate((1 / 10, 2 / 11, 0.2, 0.2)):
        stir(network)
        average.update(step)
        for name, p in network.named_parameters():
            expected[name] = keep * expected[name] + (1 - keep) * p.detach()
            torch.testing.assert_close(average.weights[name], expected[name])


def test_it_takes_the_place_of_the_weights_and_gives_it_back() -> None:
    network = small()
    average = WeightAverage(network, memory=0.9)
    stir(network)
    average.update(0)
    raw, mean = weights(network), {name: value.clone() for name, value in average.weights.items()}
    places = [p.data_ptr() for p in network.parameters()]
    for _ in range(2):  # a second time changes nothing
        average.use(True)
        assert same(weights(network), mean)
    for _ in range(2):
        average.use(False)
        assert same(weights(network), raw)
        assert same(average.weights, mean)
    assert [p.data_ptr() for p in network.parameters()] == places  # where a recorded step looks for them


def test_without_a_memory_there_is_none() -> None:
    network = small()
    average, raw = WeightAverage(network, memory=None), weights(network)
    average.update(0)
    average.use(True)
    average.restore({})
    assert average.weights == {}
    assert same(weights(network), raw)


def test_it_is_restored_from_a_checkpoint_that_has_all_of_it() -> None:
    network = small()
    average = WeightAverage(network, memory=0.9)
    kept = {f"ema.{name}": torch.full_like(p, 3.0) for name, p in network.named_parameters()}
    average.restore(kept)
    assert all((value == 3).all() for value in average.weights.values())
    del kept["ema.up"]
    with pytest.raises(MaskobanError, match=r"tensor 'ema.up' is missing"):
        average.restore(kept)
