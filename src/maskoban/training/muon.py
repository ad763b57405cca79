"""Muon over stacks of matrices.

torch has this optimiser (``torch.optim.Muon``), one matrix at a time: a hundred small launches a step for a
deep network. Our networks keep the same matrix of every block in one stacked parameter, so the same
arithmetic runs on whole stacks. The tests hold it against torch's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor


def orthogonalise(stack: Tensor, steps: int = 5) -> Tensor:
    """Roughly U V^T of each matrix U S V^T, by Newton-Schulz in bf16: x <- a x + (b g + c g^2) x, g = x x^T.

    The coefficients are Keller Jordan's: fastest growth of small singular values at the price of ending
    anywhere between about 0.7 and 1.2, which does no harm.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = stack.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class StackedMuon(torch.optim.Optimizer):
    """Muon with Nesterov momentum for parameters of shape (..., rows, columns), each matrix on its own."""

    def __init__(self, params: Iterable[Tensor], lr: float | Tensor, momentum: float) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # nobody gives a closure
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
                update = orthogonalise(update.flatten(0, -3)).view(p.shape)
                rows, columns = p.shape[-2:]
                p.sub_(update.to(p.dtype) * (group["lr"] * math.sqrt(max(1, rows / columns))))
