"""A training step recorded once as a CUDA graph and replayed: the same kernels without the cost of launching them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


class RecordedStep:
    """``step(boards) -> loss``, recorded on the current weights and moments, which it updates in place.

    Recording runs nothing. Everything in the step must have been compiled and allocated by earlier calls, and
    must not wait for the device. Noise follows torch's generator as it stands when the recording is replayed.
    """

    def __init__(self, step: Callable[[Tensor], Tensor], boards: Tensor) -> None:
        self._boards = boards.clone()
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(self._graph):
            self._loss = step(self._boards)

    def __call__(self, boards: Tensor) -> Tensor:
        self._boards.copy_(boards)
        self._graph.replay()
        return self._loss.clone()
