"""Dropout with a mask that is a hash of the position.

torch's generator costs more than the layers it serves at these sizes, and a mask stored for the backward pass costs
memory traffic. This mask is a function of (seed, index): five integer operations, computed again where it is needed. A
process that holds a part of a batch starts its index at that part, so a board loses the same values whichever process
holds it.
"""

from __future__ import annotations

import torch
from torch import Tensor

_FIRST, _SECOND = -0x61C8864F, -0x7A143589  # 0x9E3779B1 and 0x85EBCA77 as signed numbers


def draw_seeds(rows: int, firsts: Tensor) -> Tensor:
    """Fresh (seed, first index) pairs from torch's generator: (rows, len(firsts), 2) int64."""
    seeds = torch.randint(0, 2**31 - 1, (rows, len(firsts)), device=firsts.device)
    return torch.stack([seeds, firsts.expand_as(seeds)], dim=-1)


def scramble(index: Tensor, seed: Tensor) -> Tensor:
    """A hash of int32, wrapping. All masks are windows of one sequence; hashing the seed keeps windows far apart."""
    return _folded(index * _FIRST + _folded(seed * _FIRST) * _SECOND) * _SECOND


def _folded(h: Tensor) -> Tensor:
    """The high bits over the low ones; the shift is masked because torch's keeps the sign."""
    return h ^ ((h >> 15) & 0x1FFFF)


def least_kept(p: float) -> int:
    """The smallest hash that is kept: of the 2^32 values of an int32, a share p lies below it."""
    return int(p * 2**32) - 2**31


def kept(index: Tensor, p: float, seed: Tensor) -> Tensor:
    """Whether the values at these int32 indices stay."""
    return scramble(index, seed) >= least_kept(p)


def dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """x with each value zeroed with probability p and the rest scaled by 1 / (1 - p).

    ``seed`` is a pair: the seed of the mask, and the index of x's first value.

    >>> x = dropout(torch.ones(100_000), 0.25, torch.tensor([5, 0]))
    >>> abs(x.mean().item() - 1) < 0.02
    True
    """
    if p == 0:
        return x
    start, first = seed.to(torch.int32).unbind()
    index = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape) + first
    return torch.where(kept(index, p, start), x * (1 / (1 - p)), 0)
