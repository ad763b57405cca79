"""A forward pass recorded once as a CUDA graph and replayed: no launches to wait for, and boards taken in chunks.

What one layer writes and the next reads stays in a device's cache if it is small enough; all boards of a batch at
once are not. So a batch goes through the whole network a chunk at a time, and one replay does all chunks.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK, TILES
from maskoban.diffusion.network import Network

#: How far logits may lie from those of the same network, not compiled, as a share of their size: both are bf16's.
TOLERANCE = 5e-2


class RecordedForward:
    """``forward(tokens, when, where) -> logits`` of a network, for one batch size and number of cells asked for.

    The result is overwritten by the next call.
    """

    def __init__(
        self, forward: Callable[..., Tensor], network: Network, batch: int, asked: int, chunk: int
    ) -> None:
        device = next(network.parameters()).device
        self._tokens = torch.full((batch, network.cells), MASK, dtype=torch.uint8, device=device)
        self._when = torch.ones(batch, dtype=torch.int64, device=device) if network.timed else None
        self._where = torch.zeros((batch, asked), dtype=torch.int64, device=device)
        self._logits = torch.empty((batch, asked, TILES), device=device)

        def all_chunks() -> None:
            for start in range(0, batch, chunk):
                part = slice(start, min(start + chunk, batch))
                when = None if self._when is None else self._when[part]
                self._logits[part] = forward(self._tokens[part].long(), when, self._where[part])

        all_chunks()  # compiles and tunes: neither can be recorded
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            all_chunks()
        self._prove(network, min(chunk, batch))

    def _prove(self, network: Network, boards: int) -> None:
        """Hold the recording against the same network, not compiled: a compiler can be as wrong as a kernel."""
        random = torch.Generator(self._tokens.device).manual_seed(0)
        self._tokens.random_(MASK + 1, generator=random)
        self._where.random_(network.cells, generator=random)
        self._graph.replay()
        when = None if self._when is None else self._when[:boards]
        exact = network(self._tokens[:boards].long(), when, self._where[:boards])
        off = float((self._logits[:boards] - exact).norm() / exact.norm().clamp_min(1e-6))
        if not off < TOLERANCE:
            raise MaskobanError(
                f"the network compiled for {self._tokens.device} is {off:.0%} off the network itself; "
                "draw on a cpu instead"
            )

    def __call__(self, tokens: Tensor, when: Tensor | None, where: Tensor) -> Tensor:
        self._tokens.copy_(tokens, non_blocking=True)
        if self._when is not None and when is not None:
            self._when.copy_(when, non_blocking=True)
        self._where.copy_(where, non_blocking=True)
        self._graph.replay()
        return self._logits
