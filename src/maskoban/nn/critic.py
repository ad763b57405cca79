"""The critic: a discriminator between boards of the corpus and boards of the model, for rejection sampling.

It learns from both kinds of boards only; no solver is involved. The optimal discriminator is the log density ratio

    score(x) = log p(x) / q(x),    p the corpus, q the model.

A sampled board is kept with probability min(1, exp(score) / c). For c as large as the largest ratio, the kept boards
follow p exactly; a smaller c moves q part of the way to p and rejects fewer boards.

The critic is the denoiser with a LoRA (low-rank adaptation) of each matrix, W + B A, and a head that reads the mean
over all cells. It adds few weights to those of the model. That of a conditional network is given the same conditions:
its score is log p(x | conditions) / q(x | conditions).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor, nn

from maskoban.diffusion.conditions import NOWHERE
from maskoban.errors import MaskobanError
from maskoban.nn.conditional import Block, ConditionalNetwork
from maskoban.nn.networks import InteriorNetwork, Network
from maskoban.nn.weight_files import dequantize, load_tensors, load_weights

#: The stacks of matrices with a LoRA, in the order of :meth:`InteriorNetwork.matrices`.
STACKS = ("qkv", "out", "up", "down")


class CriticNetwork(nn.Module):
    """Scores of finished boards: forward(tokens (boards, cells) int64, turn (boards,) or None) -> (boards,).

    ``turn`` is the number of the symmetry that was applied to a board. The corpus is not symmetric, so the critic must
    know it; telling apart turned boards of both kinds is the same task with eight times the data. The critic of a
    conditional network takes ``where`` and ``conditions`` instead, as the network does.

    >>> CriticNetwork(InteriorNetwork(blocks=1), rank=2)(torch.zeros(3, 64, dtype=torch.int64))
    tensor([0., 0., 0.], grad_fn=<SqueezeBackward1>)
    """

    def __init__(self, base: InteriorNetwork | ConditionalNetwork, rank: int) -> None:
        super().__init__()
        self.base: InteriorNetwork | ConditionalNetwork = base.requires_grad_(False).eval()
        self.narrow, self.wide = nn.ParameterDict(), nn.ParameterDict()
        for name, stack in zip(STACKS, base.matrices(), strict=True):
            blocks, width = len(stack), stack.shape[-1]
            self.narrow[name] = nn.Parameter(torch.empty(blocks, rank, width).uniform_(-1, 1) / width**0.5)
            self.wide[name] = nn.Parameter(torch.zeros(blocks, stack[0].numel() // width, rank))
        self.turns = nn.Parameter(torch.zeros(8, base.d)) if isinstance(base, InteriorNetwork) else None
        self.head = nn.Parameter(torch.zeros(1, base.d))
        self.bias = nn.Parameter(torch.zeros(1))

    def train(self, mode: bool = True) -> CriticNetwork:
        super().train(mode)
        self.base.eval()  # its weights are frozen
        return self

    def stacks(self) -> list[Tensor]:
        """The denoiser's matrices with the LoRA: W + B A."""
        return [
            stack + (self.wide[name] @ self.narrow[name]).view_as(stack)
            for name, stack in zip(STACKS, self.base.matrices(), strict=True)
        ]

    def forward(
        self, tokens: Tensor, turn: Tensor | None = None, where: Tensor | None = None,
        conditions: Tensor | None = None, block: Block | None = None, stacks: Sequence[Tensor] | None = None,
    ) -> Tensor:  # fmt: skip
        """``stacks`` are :meth:`stacks`, made before; ``block`` is a conditional network's own, compiled."""
        stacks = stacks or self.stacks()
        if isinstance(self.base, ConditionalNetwork):
            assert where is not None, "the critic of a conditional network needs the places of the cells"
            assert conditions is not None, "the critic of a conditional network needs conditions"
            x = self.base.features(tokens, where, conditions, stacks, block=block).float()
            there = (where != NOWHERE)[..., None]
            mean = (x * there).sum(1) / there.sum(1)
        else:
            assert self.turns is not None
            shift = self.turns[:1] if turn is None else self.turns[turn]
            x = self.base.features(tokens, self.base.places(turn) + shift[:, None], stacks)
            mean = x.float().mean(1)
        return (mean @ self.head.T + self.bias).squeeze(1)

    def added(self) -> dict[str, Tensor]:
        """The tensors that the critic adds to the denoiser, by name."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("base.")}


@torch.no_grad()
def cut_rank(critic: CriticNetwork, rank: int) -> None:
    """Replace the LoRA of each matrix by the nearest one of this rank, where it has a higher one.

    >>> critic = CriticNetwork(InteriorNetwork(blocks=1), rank=8)
    >>> cut_rank(critic, 2)
    >>> critic.narrow["out"].shape
    torch.Size([1, 2, 256])
    """
    for name, narrow in critic.narrow.items():
        wide = critic.wide[name]
        if narrow.shape[1] <= rank:
            continue
        u, s, v = torch.linalg.svd((wide @ narrow).double(), full_matrices=False)
        root = s[:, :rank].sqrt()
        new_wide, new_narrow = u[:, :, :rank] * root[:, None], v[:, :rank] * root[:, :, None]
        new_wide *= wide.ne(0).any(2, keepdim=True)  # exactly zero where it was: units without weights
        new_narrow *= narrow.ne(0).any(1, keepdim=True)
        critic.wide[name] = nn.Parameter(new_wide.to(wide.dtype))
        critic.narrow[name] = nn.Parameter(new_narrow.to(narrow.dtype))


def fingerprint(network: Network) -> str:
    """A hash of a network's weights in fp16, the precision of exported models."""
    digest = sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(name.encode() + value.half().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def load_critic(base: Network, file: Path) -> tuple[CriticNetwork, dict[str, str]]:
    """The critic in a file, for this model and on its device, and the file's metadata."""
    if not isinstance(base, InteriorNetwork | ConditionalNetwork):
        raise MaskobanError(
            f"{file}: expected an interior or a conditional network for a critic, got {type(base).__name__}"
        )
    tensors, metadata = load_tensors(file)
    if "narrow.qkv" not in tensors or tensors["narrow.qkv"].ndim != 3:
        raise MaskobanError(f"{file}: not a maskoban critic: expected LoRA matrices narrow.qkv of three axes")
    if metadata.get("model", model := fingerprint(base)) != model:
        raise MaskobanError(f"{file}: not a critic of this model: it was trained on the boards of another")
    critic = CriticNetwork(base, rank=tensors["narrow.qkv"].shape[1]).to(base.head.device)
    here = {f"base.{name}": value for name, value in base.state_dict().items()}
    try:
        load_weights(critic, dequantize(tensors) | here, "")
    except MaskobanError as error:
        raise MaskobanError(f"{file}: not a critic of this model: {error}") from None
    return critic.eval(), metadata
