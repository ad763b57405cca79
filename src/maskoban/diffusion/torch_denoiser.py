"""A network under torch, as a :class:`Denoiser`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskoban.boards.tiles import MASK, TILES, Tokens
from maskoban.diffusion.attention import introduce
from maskoban.diffusion.network import InteriorNetwork, Network
from maskoban.diffusion.proving import prove_kernels
from maskoban.diffusion.recorded_forward import RecordedForward
from maskoban.diffusion.schedule import Schedule


class TorchDenoiser:
    """Runs the network in batches of one fixed size, the last one filled up with blank boards.

    Matrix products round differently at different sizes; at one size a board's logits do not depend on what
    else is in the batch, so boards are reproducible whatever is drawn beside them.
    """

    def __init__(
        self,
        network: Network,
        steps: int,
        batch: int = 256,
        compiled: bool = False,
        chunk: int = 8192,
        schedule: Schedule = "linear",
    ) -> None:
        self.height, self.width, self.margin = network.height, network.width, network.margin
        self.network, self.steps, self.batch, self.chunk = network, steps, batch, min(chunk, batch)
        self.schedule = schedule
        self.device = next(network.parameters()).device
        # Two batches at once on a device: one is drawn here while the other is computed there.
        self.overlap = 2 if self.device.type == "cuda" else 1
        self.forward: Callable[..., Tensor] = torch.compile(network, dynamic=False) if compiled else network
        # Recordings that nobody is using, by the number of cells asked for: one for each batch at once.
        self._idle: dict[int, SimpleQueue[RecordedForward]] | None = None
        self._recording = Lock()
        if self.device.type == "cuda":
            prove_kernels(network, self.chunk if compiled else batch, backward=False)
            if compiled and isinstance(network, InteriorNetwork):
                introduce(self.device)
            self._idle = {} if compiled else None

    @torch.no_grad()
    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        n = len(tokens)
        out = torch.empty((n, cells.shape[1], TILES), pin_memory=self.device.type == "cuda")
        for start in range(0, n, self.batch):
            part = slice(start, min(start + self.batch, n))
            x = self._filled(tokens[part], MASK)
            when = self._filled(t[part], 1) if self.network.timed else None
            where = self._filled(cells[part], 0)
            with self._forward(cells.shape[1]) as forward:
                out[part].copy_(forward(x, when, where)[: part.stop - start], non_blocking=True)
                if self.device.type == "cuda":
                    # Wait for this call's work alone: another thread may have queued more behind it.
                    done = torch.cuda.Event()  # type: ignore[no-untyped-call]
                    done.record()
                    done.synchronize()
        return out.numpy()

    @contextmanager
    def _forward(self, asked: int) -> Iterator[Callable[[Tensor, Tensor | None, Tensor], Tensor]]:
        """The network for input that still lies on this side."""
        if self._idle is None:
            yield self._on_device
            return
        with self._recording:
            if asked not in self._idle:
                self._idle[asked] = SimpleQueue()
                for _ in range(self.overlap):
                    self._idle[asked].put(
                        RecordedForward(self.forward, self.network, self.batch, asked, self.chunk)
                    )
        recorded = self._idle[asked].get()
        try:
            yield recorded
        finally:
            self._idle[asked].put(recorded)

    def _on_device(self, tokens: Tensor, when: Tensor | None, where: Tensor) -> Tensor:
        when = None if when is None else when.to(self.device, non_blocking=True)
        x, where = (each.to(self.device, non_blocking=True) for each in (tokens, where))
        return self.forward(x.long(), when, where)

    def _filled(self, array: NDArray[np.generic], value: int) -> Tensor:
        """The rows, with rows of ``value`` up to the batch size."""
        missing = self.batch - len(array)
        if missing:
            array = np.concatenate([array, np.full((missing, *array.shape[1:]), value, array.dtype)])
        return torch.from_numpy(np.ascontiguousarray(array))
