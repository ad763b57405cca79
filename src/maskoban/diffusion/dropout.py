"""Dropout whose mask is a hash of the position.

torch's generator costs more than the layers it serves at these sizes, and a mask that must be kept for the
backward pass costs memory traffic. This one is a function of (seed, index): five integer operations, recomputed
wherever it is needed. A process that holds a part of a batch counts from where its part begins, so a board loses
the same numbers whichever process holds it.
"""

from __future__ import annotations

import torch
from torch import Tensor


def draw_seeds(rows: int, firsts: Tensor) -> Tensor:
    """Fresh seeds from torch's generator, one for every place that drops, each with the index its place starts at.

    The places are ``rows`` times as many as there are ``firsts``: (rows, firsts, 2) int64.
    """
    seeds = torch.randint(0, 2**31 - 1, (rows, len(firsts)), device=firsts.device)
    return torch.stack([seeds, firsts.expand_as(seeds)], dim=-1)


def scramble(index: Tensor, start: Tensor) -> Tensor:
    """A hash of int32 whose high bits are fit to compare, wrapping.

    All masks are windows of one long sequence; where one begins is hashed, so that near starts lie far apart.
    """
    return _folded(index * _FIRST + _folded(start * _FIRST) * _SECOND) * _SECOND


_FIRST, _SECOND = -0x61C8864F, -0x7A143589  # 0x9E3779B1 and 0x85EBCA77 as signed numbers


def _folded(h: Tensor) -> Tensor:
    """The high bits over the low ones; the shift is masked, as torch's keeps the sign."""
    return h ^ ((h >> 15) & 0x1FFFF)


def least_kept(p: float) -> int:
    """The smallest hash that is kept: of the 2^32 values of an int32, a share p lies below it."""
    return int(p * 2**32) - 2**31


def kept(index: Tensor, p: float, start: Tensor) -> Tensor:
    """Whether the numbers at these int32 indices stay, for what the mask follows from."""
    return scramble(index, start) >= least_kept(p)


def dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """x with each number zeroed with probability p and the rest scaled by 1 / (1 - p).

    ``seed`` is a pair: what the mask follows from, and the index of x's first number.

    >>> x = dropout(torch.ones(100_000), 0.25, torch.tensor([5, 0]))
    >>> abs(x.mean().item() - 1) < 0.02
    True
    """
    if p == 0:
        return x
    start, first = seed.to(torch.int32).unbind()
    index = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape) + first
    return torch.where(kept(index, p, start), x * (1 / (1 - p)), 0)
