"""The moving average of a network's weights, which is what is measured and shipped."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from maskoban.diffusion.network import Network, load_weights
from maskoban.interrupting import uninterrupted


class Average:
    """The average of a network's ``weights`` by name; of none at all where there is no ``memory``.

    After step s, counted from 0, it is keep average + (1 - keep) weights, keep = min(memory, (1 + s) / (10 + s)).
    """

    def __init__(self, network: Network, memory: float | None) -> None:
        self._network, self._memory = network, memory
        self.weights = self._copied() if memory else {}
        self._in_use = False  # whether it stands in the network's place, and the raw weights in its own

    def _copied(self) -> dict[str, Tensor]:
        return {name: p.detach().clone() for name, p in self._network.named_parameters()}

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Take in the weights as they are after this step."""
        if self._memory:
            # Early on, a shorter memory: the average should not remember the random start.
            keep = min(self._memory, (1 + step) / (10 + step))
            torch._foreach_lerp_(list(self.weights.values()), list(self._network.parameters()), 1 - keep)

    @torch.no_grad()
    def use(self, yes: bool) -> None:
        """Swap the averaged weights in, or out again, if that is not how things stand already."""
        with uninterrupted():
            if not self._memory or yes == self._in_use:
                return
            for name, p in self._network.named_parameters():
                raw = p.clone()
                # By value: a recorded step goes on reading and writing the same memory.
                p.copy_(self.weights[name])
                self.weights[name].copy_(raw)
            self._in_use = yes

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take the average from a checkpoint's tensors. It is left in the network too, whose own are to follow."""
        if self._memory:  # by way of the network, which checks that all are there and fit
            load_weights(self._network, tensors, "ema.")
            self.weights = self._copied()
