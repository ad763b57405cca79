"""Idle units: found as a slow, obvious loop finds them, and left out without a trace."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from maskoban.boards.tiles import MASK
from maskoban.nn.critic import CriticNetwork
from maskoban.nn.networks import InteriorNetwork
from maskoban.training.pruning import idle_units, leave_out

BOARDS = np.random.default_rng(1).integers(0, MASK, (40, 6, 6)).astype(np.uint8)


def small() -> InteriorNetwork:
    """A network of which many units are shut for most boards: they look against what all tokens have in common."""
    torch.manual_seed(3)
    network = InteriorNetwork(6, 6, d=32, blocks=2, heads=2, hidden=64)
    with torch.no_grad():
        network.token.weight.add_(1.0)
        network.up.sub_(torch.linspace(0, 0.35, 64)[:, None])
        network.out.normal_(0, 0.02)
        network.down.normal_(0, 0.02)
    return network.eval()


def opened(network: InteriorNetwork, tokens: Tensor) -> Tensor:
    """Units that change the result when their outgoing weights change: one unit at a time."""
    before, found = network(tokens), torch.zeros(network.up.shape[:2], dtype=torch.bool)
    for block in range(len(found)):
        for unit in range(found.shape[1]):
            kept = network.down[block, :, unit].clone()
            network.down[block, :, unit] += 1.0
            found[block, unit] = not torch.equal(network(tokens), before)
            network.down[block, :, unit] = kept
    return found


@torch.no_grad()
def test_idle_units_are_those_whose_outgoing_weights_do_not_matter() -> None:
    network = small()
    network.head.normal_()
    idle = idle_units(network, BOARDS)
    assert 10 < int(idle.sum()) < 118
    generator = torch.Generator().manual_seed(0)
    whole = torch.from_numpy(BOARDS[:, 1:-1, 1:-1].reshape(40, 16).astype(np.int64))
    hidden = torch.rand(whole.shape, generator=generator) < torch.rand(40, 1, generator=generator)
    assert torch.equal(~idle, opened(network, torch.where(hidden, MASK, whole)))


def test_a_unit_that_opens_for_the_critic_alone_is_not_idle() -> None:
    network = small()
    critic = CriticNetwork(network, rank=2)
    alone, both = idle_units(network, BOARDS), idle_units(network, BOARDS, critic)
    assert (both <= alone).all()
    with torch.no_grad():
        critic.wide["up"].normal_(0, 3)
    assert idle_units(network, BOARDS, critic).sum() < both.sum()


@torch.no_grad()
def test_leaving_idle_units_out_changes_neither_the_network_nor_its_critic() -> None:
    network = small()
    network.head.normal_()
    critic = CriticNetwork(network, rank=2)
    for p in (*critic.narrow.values(), *critic.wide.values(), critic.head):
        p.normal_(0, 0.1)
    idle = idle_units(network, BOARDS, critic)
    assert idle.any()
    tokens = torch.from_numpy(BOARDS[:, 1:-1, 1:-1].reshape(40, 16).astype(np.int64))
    before = network(tokens), critic(tokens)
    leave_out(network, idle, critic)
    for block, shut in enumerate(idle):
        left = int((~shut).sum())
        assert network.up[block, :left].any(1).all()
        assert not network.up[block, left:].any()
        assert not network.down[block, :, left:].any()
        assert not critic.wide["up"][block, left:].any()
    torch.testing.assert_close((network(tokens), critic(tokens)), before, atol=1e-5, rtol=1e-4)
