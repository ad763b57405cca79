"""Dropout whose mask is a hash of the position.

torch's generator costs more than the layers it serves at these sizes, and a mask that must be kept for the
backward pass costs memory traffic. This one is a function of (seed, index): six integer operations, recomputed
wherever it is needed.
"""

from __future__ import annotations

import torch
from torch import Tensor


def draw_seeds(rows: int, columns: int, device: torch.device) -> Tensor:
    """Fresh seeds from torch's generator, (rows, columns, 1) int64: one for every place that drops."""
    return torch.randint(0, 2**31 - 1, (rows, columns, 1), device=device)


def scramble(h: Tensor) -> Tensor:
    """MurmurHash3's finaliser on int32, wrapping; shifts are masked, because torch's keep the sign."""
    h = (h ^ ((h >> 16) & 0xFFFF)) * -0x7A143595  # 0x85EBCA6B as a signed number
    h = (h ^ ((h >> 13) & 0x7FFFF)) * -0x3D4D51CB  # 0xC2B2AE35
    return h ^ ((h >> 16) & 0xFFFF)


def dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """x with each number zeroed with probability p and the rest scaled by 1 / (1 - p).

    >>> x = dropout(torch.ones(100_000), 0.25, torch.tensor([5]))
    >>> abs(x.mean().item() - 1) < 0.02
    True
    """
    if p == 0:
        return x
    index = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    kept = scramble(index ^ seed.to(torch.int32)) >= int(p * 2**32) - 2**31
    return torch.where(kept, x * (1 / (1 - p)), 0)
