"""Hidden units that never answer: which they are, and a network without them.

A unit of a squared ReLU that is shut for every cell of every board has no gradient: its weights no longer change, and
it opens again only if what it reads does. Leaving it out changes nothing for boards like those it was looked at with,
and saves its weights and its products.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from maskoban.bars import Progress
from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK, Tokens
from maskoban.diffusion.critic_network import CriticNetwork
from maskoban.diffusion.network import InteriorNetwork, Network
from maskoban.diffusion.sampler import drawn_cells

#: Boards looked at together.
_AT_ONCE = 250


def leave_out_idle(
    network: Network, boards: Tokens, critic: CriticNetwork | None = None, progress: Progress | None = None
) -> None:
    """Change a network and its critic into ones without the units that are shut for all these boards.

    >>> leave_out_idle(InteriorNetwork(blocks=1), np.zeros((1, 10, 10), np.uint8))
    """
    if not isinstance(network, InteriorNetwork):
        raise MaskobanError("only the interior network has units that can shut; this is the paper's")
    leave_out(network, idle_units(network, boards, critic, progress), critic)


def idle_units(
    network: InteriorNetwork,
    boards: Tokens,
    critic: CriticNetwork | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Which units (blocks, hidden) are shut for all these boards, (n, height, width) tokens.

    The network sees boards with cells hidden at random, every share of them alike, as in training; its critic sees
    whole ones, and a unit that opens there is not idle.

    >>> idle_units(InteriorNetwork(blocks=1), np.zeros((1, 10, 10), np.uint8)).shape
    torch.Size([1, 1024])
    """
    if boards.shape[1:] != (network.height, network.width):
        size = "x".join(map(str, boards.shape[1:]))
        raise MaskobanError(
            f"the levels are {size}, but the network draws {network.height}x{network.width} boards"
        )
    random = torch.Generator().manual_seed(0)
    inside = boards.reshape(len(boards), -1)[:, drawn_cells(network)]
    idle = torch.ones(network.up.shape[:2], dtype=torch.bool)
    for start in range(0, len(inside), _AT_ONCE):
        whole = torch.from_numpy(inside[start : start + _AT_ONCE].astype(np.int64))
        hidden = torch.rand(whole.shape, generator=random) < torch.rand(len(whole), 1, generator=random)
        idle &= ~_open(network, torch.where(hidden, MASK, whole), network.place, network.stacks())
        if critic is not None:
            idle &= ~_open(network, whole, network.place + critic.turns[0], critic.stacks())
        if progress is not None:
            progress(start + len(whole), len(boards))
    return idle


@torch.no_grad()
def _open(network: InteriorNetwork, tokens: Tensor, place: Tensor, stacks: list[Tensor]) -> Tensor:
    """Which units open for any cell of these boards."""
    largest: list[Tensor] = []

    class Watched(InteriorNetwork):
        def add_linear(self, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
            largest.append(y.flatten(0, -2).amax(0))
            return super().add_linear(x, y, weight)

    own = network.__class__
    network.__class__ = Watched
    try:
        network.features(tokens, place, stacks)
    finally:
        network.__class__ = own
    return torch.stack(largest[1::2]) > 0  # a block adds what attention says, then what its hidden units do


@torch.no_grad()
def leave_out(network: InteriorNetwork, idle: Tensor, critic: CriticNetwork | None = None) -> None:
    """Set the weights of these units (blocks, hidden) to zero, and put them behind the others of their block.

    >>> network = InteriorNetwork(blocks=1, hidden=3)
    >>> leave_out(network, torch.tensor([[True, False, False]]))
    >>> network.up[0].any(1)
    tensor([ True,  True, False])
    """
    rows, columns = [network.up], [network.down]
    if critic is not None:
        rows, columns = [*rows, critic.wide["up"]], [*columns, critic.narrow["down"]]
    for i, shut in enumerate(idle):
        order = shut.int().argsort(stable=True)
        left = int((~shut).sum())
        for stack in rows:
            stack[i] = stack[i][order]
            stack[i, left:] = 0
        for stack in columns:
            stack[i] = stack[i][:, order]
            stack[i, :, left:] = 0
