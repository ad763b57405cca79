"""A critic under torch, as a :class:`Critic`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskoban.boards.tiles import WALL, Tokens
from maskoban.diffusion.critic_network import CriticNetwork
from maskoban.diffusion.proving import prove_kernels


class TorchCritic:
    """Scores boards in batches of one fixed size, the last one filled up with walls: as a denoiser draws them.

    The critic's changes go into the matrices here, once and for all, in the dtype they are used in.
    """

    @torch.no_grad()
    def __init__(self, critic: CriticNetwork, batch: int = 64, compiled: bool = False) -> None:
        self.batch, self.device = batch, critic.bias.device
        self._base = critic.base
        self._stacks = [stack.to(critic.base.dtype) for stack in critic.stacks()]
        self._place = critic.base.place + critic.turns[0]
        self._head, self._bias = critic.head.detach().clone(), critic.bias.detach().clone()
        self._forward: Callable[[Tensor], Tensor] = (
            torch.compile(self._scores, dynamic=False) if compiled else self._scores
        )
        prove_kernels(self._base, batch, backward=False)

    def _scores(self, tokens: Tensor) -> Tensor:
        x = self._base.features(tokens, self._place, self._stacks)
        return (x.float().mean(1) @ self._head.T + self._bias).squeeze(1)

    @torch.no_grad()
    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        """Scores of finished boards, (n, drawn cells) to (n,)."""
        result = np.empty(len(tokens), np.float32)
        for start in range(0, len(tokens), self.batch):
            part = tokens[start : start + self.batch]
            x = np.full((self.batch, tokens.shape[1]), WALL, np.int64)
            x[: len(part)] = part
            scored = self._forward(torch.from_numpy(x).to(self.device))[: len(part)]
            result[start : start + len(part)] = scored.cpu().numpy()
        return result
