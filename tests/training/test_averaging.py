"""The average of the weights: it follows them, takes their place and gives it back, to the bit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from maskoban.boards import MaskobanError
from maskoban.diffusion.network import InteriorNetwork
from maskoban.training.averaging import Average


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
    average, expected = Average(network, memory=0.2), weights(network)
    for step, keep in enumerate((1 / 10, 2 / 11, 0.2, 0.2)):
        stir(network)
        average.follow(step)
        for name, p in network.named_parameters():
            expected[name] = keep * expected[name] + (1 - keep) * p.detach()
            torch.testing.assert_close(average.weights[name], expected[name])


def test_it_takes_the_place_of_the_weights_and_gives_it_back() -> None:
    network = small()
    average = Average(network, memory=0.9)
    stir(network)
    average.follow(0)
    raw, mean = weights(network), {name: value.clone() for name, value in average.weights.items()}
    places = [p.data_ptr() for p in network.parameters()]
    for _ in range(2):  # asked twice, it stays
        average.use(True)
        assert same(weights(network), mean)
    for _ in range(2):
        average.use(False)
        assert same(weights(network), raw)
        assert same(average.weights, mean)
    assert [p.data_ptr() for p in network.parameters()] == places  # where a recorded step looks for them


def test_without_a_memory_there_is_none() -> None:
    network = small()
    average, raw = Average(network, memory=None), weights(network)
    average.follow(0)
    average.use(True)
    average.restore({})
    assert average.weights == {}
    assert same(weights(network), raw)


def test_it_is_restored_from_a_checkpoint_that_has_all_of_it() -> None:
    network = small()
    average = Average(network, memory=0.9)
    kept = {f"ema.{name}": torch.full_like(p, 3.0) for name, p in network.named_parameters()}
    average.restore(kept)
    assert all((value == 3).all() for value in average.weights.values())
    del kept["ema.up"]
    with pytest.raises(MaskobanError, match="the checkpoint does not fit the network: up is missing"):
        average.restore(kept)
