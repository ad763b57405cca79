"""A network under torch, as a :class:`Denoiser`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskoban.boards.tiles import MASK, TILES, Tokens
from maskoban.diffusion.network import Network
from maskoban.diffusion.proving import prove_kernels


class TorchDenoiser:
    """Runs the network in batches of one fixed size, the last one filled up with blank boards.

    Matrix products round differently at different sizes; at one size a board's logits do not depend on what
    else is in the batch, so boards are reproducible whatever is drawn beside them.
    """

    def __init__(self, network: Network, steps: int, batch: int = 256, compiled: bool = False) -> None:
        self.height, self.width, self.margin = network.height, network.width, network.margin
        self.network, self.steps, self.batch = network, steps, batch
        # Two batches at once on a device: one is drawn here while the other is computed there.
        self.overlap = 2 if next(network.parameters()).is_cuda else 1
        self.forward: Callable[..., Tensor] = network
        prove_kernels(network, batch, backward=False)
        if compiled:
            self.forward = torch.compile(network, dynamic=False)

    @torch.no_grad()
    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        n, device = len(tokens), next(self.network.parameters()).device
        out = torch.empty((n, cells.shape[1], TILES), pin_memory=device.type == "cuda")
        for start in range(0, n, self.batch):
            part = slice(start, min(start + self.batch, n))
            x = self._filled(tokens[part], MASK).to(device, non_blocking=True).long()
            where = self._filled(cells[part], 0).to(device, non_blocking=True)
            when = self._filled(t[part], 1).to(device, non_blocking=True) if self.network.timed else None
            logits = self.forward(x, when, where)
            out[part].copy_(logits[: part.stop - start], non_blocking=True)
        if device.type == "cuda":
            # Wait for this call's work alone: another thread may have queued more behind it.
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record()
            done.synchronize()
        return out.numpy()

    def _filled(self, array: NDArray[np.generic], value: int) -> Tensor:
        """The rows, with rows of ``value`` up to the batch size."""
        missing = self.batch - len(array)
        if missing:
            array = np.concatenate([array, np.full((missing, *array.shape[1:]), value, array.dtype)])
        return torch.from_numpy(np.ascontiguousarray(array))
