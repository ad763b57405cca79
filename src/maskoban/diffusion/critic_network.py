"""A critic: how much likelier a finished board is in the corpus than among the model's own drawings.

It learns from real and drawn boards only, to tell one from the other; no solver is asked. At its best it says

    score(x) = log p(x) / q(x),    p the corpus, q what the model draws,

so keeping a drawn board with probability min(1, exp(score) / c) moves what is drawn towards the corpus: exactly onto it
where c is as large as the ratio ever gets, part of the way for a smaller c, which throws fewer boards away.

The critic is the denoiser once more with a low-rank change to each matrix, W + B A, and a head that reads the
mean over all cells. What it adds to the weights that are there already is small.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor, nn

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.eight_bits import widened
from maskoban.diffusion.network import InteriorNetwork, Network, load_weights
from maskoban.diffusion.tensorfile import load_tensors

#: The stacks of matrices that are changed, as :meth:`InteriorNetwork.stacks` gives them.
STACKS = ("qkv", "out", "up", "down")


class CriticNetwork(nn.Module):
    """Scores of finished boards: forward(tokens (boards, cells) int64, turn (boards,) or None) -> (boards,).

    ``turn`` says which of the eight symmetries a board was turned by. The corpus is not symmetric, so a turned board
    is no board of the corpus, but whether it can be told from a drawn one is the same question, and there are eight
    times as many.

    >>> CriticNetwork(InteriorNetwork(blocks=1), rank=2)(torch.zeros(3, 64, dtype=torch.int64))
    tensor([0., 0., 0.], grad_fn=<SqueezeBackward1>)
    """

    def __init__(self, base: InteriorNetwork, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False).eval()
        self.narrow, self.wide = nn.ParameterDict(), nn.ParameterDict()
        for name, stack in zip(STACKS, base.stacks(), strict=True):
            blocks, width = len(stack), stack.shape[-1]
            self.narrow[name] = nn.Parameter(torch.empty(blocks, rank, width).uniform_(-1, 1) / width**0.5)
            self.wide[name] = nn.Parameter(torch.zeros(blocks, stack[0].numel() // width, rank))
        self.turns = nn.Parameter(torch.zeros(8, base.d))
        self.head = nn.Parameter(torch.zeros(1, base.d))
        self.bias = nn.Parameter(torch.zeros(1))

    def train(self, mode: bool = True) -> CriticNetwork:
        super().train(mode)
        self.base.eval()  # its embeddings are looked up, not learned
        return self

    def stacks(self) -> list[Tensor]:
        """The denoiser's matrices, changed."""
        return [
            stack + (self.wide[name] @ self.narrow[name]).view_as(stack)
            for name, stack in zip(STACKS, self.base.stacks(), strict=True)
        ]

    def forward(self, tokens: Tensor, turn: Tensor | None = None) -> Tensor:
        shift = self.turns[:1] if turn is None else self.turns[turn]
        x = self.base.features(tokens, self.base.place + shift[:, None], self.stacks())
        return (x.float().mean(1) @ self.head.T + self.bias).squeeze(1)

    def added(self) -> dict[str, Tensor]:
        """What the critic adds to the denoiser, by name."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("base.")}


def fingerprint(network: Network) -> str:
    """A hash of a network's weights in half precision, as models are exported.

    >>> fingerprint(InteriorNetwork(blocks=1)) == fingerprint(InteriorNetwork(blocks=1))  # both start at random
    False
    """
    digest = sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(name.encode() + value.half().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def load_critic(base: Network, file: Path) -> tuple[CriticNetwork, dict[str, str]]:
    """The critic of this model that a file holds, on the model's device, and the file's metadata.

    >>> load_critic(InteriorNetwork(), Path("critic.safetensors"))  # doctest: +SKIP
    """
    if not isinstance(base, InteriorNetwork):
        raise MaskobanError(f"{file}: a critic belongs to an interior network, and this is the paper's")
    tensors, metadata = load_tensors(file)
    if "narrow.qkv" not in tensors or tensors["narrow.qkv"].ndim != 3:
        raise MaskobanError(f"{file}: not a critic of maskoban's: no low-rank matrices narrow.qkv in it")
    if metadata.get("model", model := fingerprint(base)) != model:
        raise MaskobanError(f"{file}: not a critic of this model: it learned from the drawings of another")
    critic = CriticNetwork(base, rank=tensors["narrow.qkv"].shape[1]).to(base.place.device)
    here = {f"base.{name}": value for name, value in base.state_dict().items()}
    try:
        load_weights(critic, widened(tensors) | here, "")
    except MaskobanError as error:
        raise MaskobanError(f"{file}: not a critic of this model: {error}") from None
    return critic.eval(), metadata
