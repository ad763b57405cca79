"""Hidden units that never open: which they are, and a network without them.

A unit of a squared ReLU that is zero for every cell of every board has no gradient, so its weights no longer change.
Leaving it out changes nothing for boards like those that were examined, and saves its weights and products.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from maskoban._util.progress import OnProgress
from maskoban.boards.tiles import MASK, Tokens
from maskoban.diffusion.denoiser import interior
from maskoban.nn.conditional import ConditionalNetwork
from maskoban.nn.critic import CriticNetwork
from maskoban.nn.networks import InteriorNetwork

#: Boards examined at once.
_AT_ONCE = 250


@torch.no_grad()
def idle_units(
    network: InteriorNetwork,
    boards: Tokens,
    critic: CriticNetwork | None = None,
    on_progress: OnProgress | None = None,
) -> Tensor:
    """Which units (blocks, hidden) are zero for all these boards, (n, height, width) tokens.

    The network sees boards with cells masked at random, all shares alike, as in training. Its critic sees finished
    ones, and a unit that opens there is not idle.

    >>> idle_units(InteriorNetwork(blocks=1), np.zeros((1, 10, 10), np.uint8)).shape
    torch.Size([1, 1024])
    """
    rng = torch.Generator().manual_seed(0)
    inside = interior(boards, network, "the corpus to prune with", "the network")
    idle = torch.ones(network.up.shape[:2], dtype=torch.bool)
    for start in range(0, len(inside), _AT_ONCE):
        whole = torch.from_numpy(inside[start : start + _AT_ONCE].astype(np.int64))
        masked = torch.rand(whole.shape, generator=rng) < torch.rand(len(whole), 1, generator=rng)
        whole, masked = whole.to(network.up.device), masked.to(network.up.device)
        hidden: list[Tensor] = []
        network.features(
            torch.where(masked, MASK, whole), network.places(), network.matrices(), hidden=hidden
        )
        if critic is not None:
            assert critic.turns is not None
            network.features(whole, network.places() + critic.turns[0], critic.stacks(), hidden=hidden)
        opened = torch.stack([h.flatten(0, -2).amax(0) > 0 for h in hidden])
        idle &= ~opened.view(-1, *idle.shape).any(0).cpu()
        if on_progress is not None:
            on_progress(start + len(whole), len(boards))
    return idle


@torch.no_grad()
def leave_out(network: InteriorNetwork, idle: Tensor, critic: CriticNetwork | None = None) -> None:
    """Set the weights of these units (blocks, hidden) to zero, and move them behind the others of their block.

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


def units_kept(network: InteriorNetwork | ConditionalNetwork, critic: CriticNetwork | None) -> list[int]:
    """The number of hidden units to store of each block: up to the last with weights, in multiples of sixteen."""
    used = network.up.ne(0).any(-1)
    if critic is not None:
        used = used | critic.wide["up"].ne(0).any(-1)
    last = (used * torch.arange(1, used.shape[1] + 1)).amax(1)
    return [min(-(-max(n, 1) // 16) * 16, used.shape[1]) for n in last.tolist()]


def cut(tensors: dict[str, Tensor], axes: dict[str, int], units: list[int]) -> dict[str, Tensor]:
    """Stacks block by block, each with so many units along its axis; unchanged where that is all of them."""
    result: dict[str, Tensor] = {}
    for name, stack in tensors.items():
        axis = axes.get(name)
        if axis is None or all(n == stack.shape[1 + axis] for n in units):
            result[name] = stack
        else:
            result |= {f"{name}.{i}": stack[i].narrow(axis, 0, n) for i, n in enumerate(units)}
    return result
