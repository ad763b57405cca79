"""Optimisation: Muon over stacks of matrices, the learning-rate schedule, and the average of the weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from maskoban._util.signals import defer_interrupt
from maskoban.errors import MaskobanError
from maskoban.nn.networks import Network
from maskoban.nn.weight_files import load_weights
from maskoban.training.checkpoint import Progress
from maskoban.training.config import Preset

# -- optimisers


def orthogonalise(stack: Tensor, steps: int = 5) -> Tensor:
    """About U V^T of each matrix U S V^T, by Newton-Schulz: x <- a x + (b g + c g^2) x, g = x x^T.

    The coefficients are Keller Jordan's: small singular values grow fastest, and all end between about 0.7 and 1.2,
    which is near enough. Computed in the stack's dtype.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = stack
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class StackedMuon(torch.optim.Optimizer):
    """Muon with Nesterov momentum for parameters of shape (..., rows, columns), each matrix on its own.

    ``torch.optim.Muon`` takes one matrix at a time: a hundred small launches a step for a deep network. Our networks
    stack the same matrix of every block, so the same arithmetic runs on whole stacks. In bf16 on CUDA; elsewhere in
    fp32, because a CPU without instructions for bf16 takes many times as long (``benchmarks/muon.py``).
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float | Tensor, momentum: float, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # no closures
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                buffer = state["momentum"]
                buffer.lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(buffer, group["momentum"])
                update = update.bfloat16() if update.is_cuda else update.float()
                update = orthogonalise(update.flatten(0, -3)).view(p.shape)
                rows, columns = p.shape[-2:]
                if group["weight_decay"]:
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(update.to(p.dtype) * (group["lr"] * math.sqrt(max(1, rows / columns))))


def build_optimizers(
    network: Network, preset: Preset, device: torch.device
) -> dict[str, torch.optim.Optimizer]:
    """``muon`` for the network's matrices where the preset has it, and ``adamw`` for all other parameters."""
    on_cuda = device.type == "cuda"

    def rate(value: float) -> float | Tensor:  # on CUDA a tensor, which a recorded step reads each time
        return torch.tensor(value, device=device) if on_cuda else value

    optimizers: dict[str, torch.optim.Optimizer] = {}
    rest = list(network.parameters())
    if preset.optimizer == "muon":
        matrices = network.matrices()
        if not matrices:
            raise MaskobanError(f"network {preset.network!r} has no matrices for Muon; set optimizer=adamw")
        optimizers["muon"] = StackedMuon(
            matrices, rate(preset.muon_learning_rate), preset.muon_momentum, preset.muon_weight_decay
        )
        taken = set(matrices)
        rest = [p for p in rest if p not in taken]
    optimizers["adamw"] = torch.optim.AdamW(
        rest, rate(preset.learning_rate), preset.betas, weight_decay=preset.weight_decay,
        fused=on_cuda, capturable=on_cuda,
    )  # fmt: skip
    return optimizers


def set_rates(optimizers: Mapping[str, torch.optim.Optimizer], preset: Preset, factor: float) -> None:
    """Set every learning rate to the preset's times ``factor``."""
    for key, optimizer in optimizers.items():
        base = preset.muon_learning_rate if key == "muon" else preset.learning_rate
        for group in optimizer.param_groups:
            if torch.is_tensor(group["lr"]):
                group["lr"].fill_(base * factor)
            else:
                group["lr"] = base * factor


# -- the learning-rate schedule


@dataclass(frozen=True)
class Anneal:
    """The last steps of a run that ends before its schedule does: the rate falls linearly to zero from ``rate``."""

    begin: int
    steps: int
    rate: float


def fraction_done(preset: Preset, progress: Progress, minutes: float | None, anneal: Anneal | None) -> float:
    """How much of the budget is used, from 0 to 1: of an anneal's steps, else of ``minutes``, else of the steps.

    >>> from maskoban.training.config import TINY
    >>> fraction_done(TINY, Progress(step=7, seconds=90.0), minutes=2, anneal=None)
    0.75
    """
    if anneal is not None:
        return min((progress.step - anneal.begin) / anneal.steps, 1.0)
    if minutes is not None:
        return min(progress.seconds / (60 * minutes), 1.0)
    return min(progress.step / preset.steps, 1.0)


def rate_factor(preset: Preset, progress: Progress, minutes: float | None, anneal: Anneal | None) -> float:
    """The factor of the learning rates: warm-up, constant, then decay to zero over the last ``decay_share``.

    linear:  left,    cosine:  (1 - cos(pi * left)) / 2,    left = min((1 - fraction done) / decay_share, 1)

    >>> from maskoban.training.config import TINY
    >>> rate_factor(TINY, Progress(step=12), minutes=None, anneal=Anneal(begin=10, steps=4, rate=0.5))
    0.25
    """
    done = fraction_done(preset, progress, minutes, anneal)
    if anneal is not None:
        return anneal.rate * (1.0 - done)
    warm = min((progress.step + 1) / max(preset.warmup, 1), 1.0)
    left = min((1.0 - done) / preset.decay_share, 1.0)
    return warm * (left if preset.decay == "linear" else 0.5 - 0.5 * math.cos(math.pi * left))


# -- the average of the weights


class WeightAverage:
    """The exponential moving average (EMA) of a network's weights, by name; empty where ``memory`` is None.

    After step s, counted from 0: average <- keep average + (1 - keep) weights, keep = min(memory, (1 + s) / (10 + s)).
    The second term forgets the random start early on.
    """

    def __init__(self, network: Network, memory: float | None) -> None:
        self._network, self._memory = network, memory
        self.weights = self._copied() if memory else {}
        self._in_use = False  # whether it is in the network, and the raw weights are in ``weights``

    def _copied(self) -> dict[str, Tensor]:
        return {name: p.detach().clone() for name, p in self._network.named_parameters()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after this step."""
        if self._memory:
            keep = min(self._memory, (1 + step) / (10 + step))
            torch._foreach_lerp_(list(self.weights.values()), list(self._network.parameters()), 1 - keep)

    @torch.no_grad()
    def use(self, yes: bool) -> None:
        """Swap the averaged weights into the network, or out again. A second call changes nothing."""
        with defer_interrupt():
            if not self._memory or yes == self._in_use:
                return
            for name, p in self._network.named_parameters():
                raw = p.clone()
                p.copy_(self.weights[name])  # by value: a recorded step reads and writes the same memory
                self.weights[name].copy_(raw)
            self._in_use = yes

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the average from a checkpoint. It passes through the network, whose own weights must follow."""
        if self._memory:
            load_weights(self._network, tensors, "ema.")
            self.weights = self._copied()
