"""Networks under torch as a :class:`Denoiser` and a :class:`Critic`, and loading them from a folder.

Both run in batches of one fixed size and fill the last one up. Matrix products round differently at different sizes; at
one size a board's result does not depend on the rest of its batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskoban.boards.tiles import MASK, TILES, WALL, Tokens
from maskoban.diffusion.card import Card
from maskoban.diffusion.conditions import Conditioned, Conditions
from maskoban.diffusion.schedule import Schedule
from maskoban.errors import MaskobanError
from maskoban.nn.attention import compile_mix_first
from maskoban.nn.conditional import ConditionalNetwork, TorchConditional, compile_block, in_batches
from maskoban.nn.critic import CriticNetwork, load_critic
from maskoban.nn.networks import InteriorNetwork, Network, build_network
from maskoban.nn.self_test import kernel_self_test
from maskoban.nn.weight_files import load_folder, restore_network

#: How far the logits of a compiled network may lie from those of the network itself, as a share of their norm, in bf16.
TOLERANCE = 5e-2


def default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def load_torch(folder: Path, device: str) -> tuple[TorchDenoiser | Conditioned, dict[str, Any]]:
    """A denoiser on ``device``, in bf16 on CUDA and fp32 elsewhere, and the metadata of its model."""
    network, card, facts = _load_network(folder, device)
    on_cuda, conditional = device.startswith("cuda"), isinstance(network, ConditionalNetwork)
    batch = (1024 if on_cuda else 16) if conditional else (2048 if on_cuda else 64)
    return make_denoiser(network, card.diffusion_steps, batch, card.schedule, compiled=on_cuda), facts


def make_denoiser(
    network: Network, steps: int, batch: int, schedule: Schedule, compiled: bool = False
) -> TorchDenoiser | Conditioned:
    """The network as a denoiser; a conditional one of boards of the size it has most often seen."""
    if isinstance(network, ConditionalNetwork):
        net = TorchConditional(network, steps, batch, schedule)
        return Conditioned(net, Conditions(network.height, network.width))
    return TorchDenoiser(network, steps, batch, compiled, schedule)


def load_torch_critic(folder: Path, device: str) -> TorchCritic | TorchConditionalCritic:
    """The critic beside the model in ``folder``, on ``device`` and in the precision of :func:`load_torch`."""
    base, *_ = _load_network(folder, device)
    critic, _ = load_critic(base, folder / "critic.safetensors")
    on_cuda = device.startswith("cuda")
    if isinstance(base, ConditionalNetwork):
        return TorchConditionalCritic(critic, 1024 if on_cuda else 16, compiled=on_cuda)
    return TorchCritic(critic, 512 if on_cuda else 64, compiled=on_cuda)


def _load_network(folder: Path, device: str) -> tuple[Network, Card, dict[str, Any]]:
    """The network of a model or a run, its card, and the metadata the card comes from."""
    tensors, metadata = load_folder(folder)
    try:
        settings = json.loads(metadata["preset"])
        network = build_network(settings)
        facts = json.loads(metadata["facts"]) if "facts" in metadata else {"name": settings["name"]}
        if not isinstance(facts, dict):
            raise ValueError(f"facts: expected an object, got {facts!r:.60}")
        built = {name: getattr(network, name) for name in ("height", "width", "margin", "timed")}
        built |= {
            "schedule": settings.get("schedule", "linear"),
            "diffusion_steps": settings["diffusion_steps"],
            "corpora": settings.get("corpora") or None,
        }
        card = Card.from_facts(built | facts)
        if any(getattr(card, name) != value for name, value in built.items()):
            raise ValueError("its facts and the settings of its run differ")
        restore_network(network, tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # RuntimeError: too large, too deep
        raise MaskobanError(f"{folder}: not a maskoban model: {error}") from error
    try:
        network = network.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        raise MaskobanError(f"device {device!r}: torch cannot use it here") from error
    if device.startswith("cuda"):
        network.compute_in(torch.bfloat16)
    return network, card, facts


class TorchDenoiser:
    """A network as a :class:`Denoiser`; on CUDA ``compiled``, and replayed as a CUDA graph."""

    def __init__(self, network: Network, steps: int, batch: int = 256, compiled: bool = False,
                 schedule: Schedule = "linear") -> None:  # fmt: skip
        self.height, self.width, self.margin = network.height, network.width, network.margin
        self.network, self.steps, self.batch, self.schedule = network, steps, batch, schedule
        self.device = next(network.parameters()).device
        # Two batches at once on a CUDA device: the host samples from one while the device computes the other.
        self.overlap = 2 if self.device.type == "cuda" else 1
        self.forward: Callable[..., Tensor] = torch.compile(network, dynamic=False) if compiled else network
        # CUDA graphs that no thread is using, by the number of cells k: one for each batch at once.
        self._idle: dict[int, SimpleQueue[CudaGraphForward]] | None = None
        self._recording = Lock()
        if self.device.type == "cuda":
            kernel_self_test(network, batch, backward=False)
            if compiled and isinstance(network, InteriorNetwork):
                compile_mix_first(self.device)
            self._idle = {} if compiled else None

    @torch.no_grad()
    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        n, on_cuda = len(tokens), self.device.type == "cuda"
        out = torch.empty((n, cells.shape[1], TILES), pin_memory=on_cuda)
        for start in range(0, n, self.batch):
            part = slice(start, min(start + self.batch, n))
            x = self._filled(tokens[part], MASK)
            times = self._filled(t[part], 1) if self.network.timed else None
            where = self._filled(cells[part], 0)
            with self._forward(cells.shape[1]) as forward:
                out[part].copy_(forward(x, times, where)[: part.stop - start], non_blocking=True)
                if on_cuda:
                    # Wait for this call's work alone: another thread may have queued more behind it.
                    done = torch.cuda.Event()  # type: ignore[no-untyped-call]
                    done.record()
                    done.synchronize()
        return out.numpy()

    @contextmanager
    def _forward(self, k: int) -> Iterator[Callable[[Tensor, Tensor | None, Tensor], Tensor]]:
        """The network as a function of tensors on the host."""
        if self._idle is None:
            yield self._on_device
            return
        with self._recording:
            if k not in self._idle:
                self._idle[k] = SimpleQueue()
                for _ in range(self.overlap):
                    self._idle[k].put(CudaGraphForward(self.forward, self.network, self.batch, k))
        graph = self._idle[k].get()
        try:
            yield graph
        finally:
            self._idle[k].put(graph)

    def _on_device(self, tokens: Tensor, t: Tensor | None, cells: Tensor) -> Tensor:
        t = None if t is None else t.to(self.device, non_blocking=True)
        x, cells = (each.to(self.device, non_blocking=True) for each in (tokens, cells))
        return self.forward(x.long(), t, cells)

    def _filled(self, array: NDArray[np.generic], value: int) -> Tensor:
        """The rows, with rows of ``value`` up to the batch size."""
        missing = self.batch - len(array)
        if missing:
            array = np.concatenate([array, np.full((missing, *array.shape[1:]), value, array.dtype)])
        return torch.from_numpy(np.ascontiguousarray(array))


class CudaGraphForward:
    """``forward(tokens, t, cells) -> logits`` of a network for one batch size and number of cells k, as a CUDA graph.

    A replay costs no kernel launches. The result is overwritten by the next call.
    """

    def __init__(self, forward: Callable[..., Tensor], network: Network, batch: int, k: int) -> None:
        device = next(network.parameters()).device
        self._tokens = torch.full((batch, network.cells), MASK, dtype=torch.uint8, device=device)
        self._t = torch.ones(batch, dtype=torch.int64, device=device) if network.timed else None
        self._cells = torch.zeros((batch, k), dtype=torch.int64, device=device)
        self._logits = torch.empty((batch, k, TILES), device=device)

        def run() -> None:
            self._logits[:] = forward(self._tokens.long(), self._t, self._cells)

        run()  # compiles and tunes, which cannot be captured
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            run()
        self._check(network)

    def _check(self, network: Network) -> None:
        """Compare the graph with the same network, not compiled: a compiler can be as wrong as a kernel."""
        random = torch.Generator(self._tokens.device).manual_seed(0)
        self._tokens.random_(MASK + 1, generator=random)
        self._cells.random_(network.cells, generator=random)
        self._graph.replay()
        exact = network(self._tokens.long(), self._t, self._cells)
        off = float((self._logits - exact).norm() / exact.norm().clamp_min(1e-6))
        if not off < TOLERANCE:
            raise MaskobanError(
                f"the network compiled for {self._tokens.device} differs from the network itself by {off:.0%}; "
                "use the device cpu"
            )

    def __call__(self, tokens: Tensor, t: Tensor | None, cells: Tensor) -> Tensor:
        self._tokens.copy_(tokens, non_blocking=True)
        if self._t is not None and t is not None:
            self._t.copy_(t, non_blocking=True)
        self._cells.copy_(cells, non_blocking=True)
        self._graph.replay()
        return self._logits


class TorchCritic:
    """A :class:`CriticNetwork` as a :class:`Critic`. The LoRA matrices are merged into the weights once, here."""

    @torch.no_grad()
    def __init__(self, critic: CriticNetwork, batch: int = 64, compiled: bool = False) -> None:
        assert isinstance(critic.base, InteriorNetwork)
        assert critic.turns is not None
        self.batch, self.device = batch, critic.bias.device
        self._base = critic.base
        self._stacks = [stack.to(critic.base.dtype) for stack in critic.stacks()]
        self._place = critic.base.places() + critic.turns[0]
        self._head, self._bias = critic.head.detach().clone(), critic.bias.detach().clone()
        self._forward: Callable[[Tensor], Tensor] = (
            torch.compile(self._scores, dynamic=False) if compiled else self._scores
        )
        kernel_self_test(self._base, batch, backward=False)

    def _scores(self, tokens: Tensor) -> Tensor:
        x = self._base.features(tokens, self._place, self._stacks)
        return (x.float().mean(1) @ self._head.T + self._bias).squeeze(1)

    @torch.no_grad()
    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        """Scores of finished boards, (n, cells) to (n,)."""
        result = np.empty(len(tokens), np.float32)
        for start in range(0, len(tokens), self.batch):
            part = tokens[start : start + self.batch]
            x = np.full((self.batch, tokens.shape[1]), WALL, np.int64)
            x[: len(part)] = part
            scored = self._forward(torch.from_numpy(x).to(self.device))[: len(part)]
            result[start : start + len(part)] = scored.cpu().numpy()
        return result


class TorchConditionalCritic:
    """The critic of a conditional network as a ``ConditionalCritic``, in batches of one size."""

    @torch.no_grad()
    def __init__(self, critic: CriticNetwork, batch: int = 16, compiled: bool = False) -> None:
        assert isinstance(critic.base, ConditionalNetwork)
        self.batch, self.device, self._critic = batch, critic.bias.device, critic
        self._stacks = [stack.to(critic.base.dtype) for stack in critic.stacks()]
        self._fill = self.device.type == "cuda"
        self._block = compile_block(critic.base) if compiled else None

    @torch.no_grad()
    def evaluate(self, feed: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        """Scores of finished boards, from the network's inputs by name."""
        result = np.empty(len(feed["tokens"]), np.float32)
        for rows, given in in_batches(feed, self.batch, self.device, self._fill):
            found = self._critic(**given, block=self._block, stacks=self._stacks)
            result[rows] = found[: len(result[rows])].cpu().numpy()
        return result
