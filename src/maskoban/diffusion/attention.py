"""Self-attention over the cells of one board, as operators with two bodies; two of them are for drawing only.

A board has few cells (64 inside a 10x10), so all queries, keys and scores of one head fit into one
processor's registers. On a CUDA device a Triton kernel therefore does everything between the two matrix
products in one pass (normalise, rotate, score, softmax, drop, mix) and reads and writes each number once;
:func:`attend_reference` is the same function in plain torch, used on every other device and by the tests.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.diffusion import fusing
from maskoban.diffusion.dropout import kept
from maskoban.diffusion.feedforward import rms_norm, row_units

try:  # Triton is there wherever torch has CUDA; nothing else needs it
    from maskoban.diffusion import kernels
except ImportError:
    kernels = None  # type: ignore[assignment]


def rotary_table(height: int, width: int, head_width: int) -> Tensor:
    """Cosines and sines that turn row and column into rotations: shape (2, cells, head_width / 2).

    The first half of a head's pairs turns with the row, the second with the column; pair j of a half turns
    by position * 100^(-j / pairs) radians, so that neighbours differ by up to one radian.

    >>> rotary_table(8, 8, 64).shape
    torch.Size([2, 64, 32])
    """
    pairs = head_width // 4  # for the rows, and as many for the columns
    frequency = 100.0 ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
    rows = torch.arange(height, dtype=torch.float64).repeat_interleave(width)
    columns = torch.arange(width, dtype=torch.float64).repeat(height)
    angle = torch.cat([rows[:, None] * frequency, columns[:, None] * frequency], dim=1)
    return torch.stack([angle.cos(), angle.sin()]).float()


def normalise_and_rotate(x: Tensor, rotary: Tensor | None) -> Tensor:
    """QK-norm and rotary positions of (..., cells, head_width), computed in fp32; None changes nothing."""
    if rotary is None:
        return x
    x32 = x.float()
    x32 = x32 * torch.rsqrt((x32 * x32).mean(-1, keepdim=True) + 1e-6)
    first, second = x32.chunk(2, dim=-1)
    cos, sin = rotary[0], rotary[1]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1).to(x.dtype)


def attend_reference(
    qkv: Tensor, heads: int, rotary: Tensor | None = None, dropout: float = 0.0, seed: Tensor | None = None
) -> Tensor:
    """Plain torch. qkv is (boards, cells, 3 * d), queries first; returns (boards, cells, d).

    softmax(q k^T / sqrt(head width)) v for every head, where q and k are normalised and rotated if a rotary
    table is given, and each attention weight is dropped with probability ``dropout``.
    """
    boards, cells, _ = qkv.shape
    q, k, v = qkv.view(boards, cells, 3, heads, -1).permute(2, 0, 3, 1, 4)
    q, k = normalise_and_rotate(q, rotary), normalise_and_rotate(k, rotary)
    scores = (q @ k.transpose(-1, -2)).float() / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    if dropout > 0:
        assert seed is not None, "dropout needs a seed"
        weights = torch.where(kept_weights(weights, dropout, seed), weights * (1 / (1 - dropout)), 0)
    mixed = weights.to(v.dtype) @ v
    joined: Tensor = mixed.transpose(1, 2).reshape(boards, cells, -1)
    return joined


def kept_weights(weights: Tensor, dropout: float, seed: Tensor) -> Tensor:
    """Which of the (boards, heads, cells, cells) weights stay: those at their place in square blocks, as the kernel has
    them, the next power of two wide."""
    boards, heads, cells, _ = weights.shape
    block = max(32, 1 << (cells - 1).bit_length())
    count = torch.arange(cells, device=weights.device)
    place = seed[1] + torch.arange(boards * heads, device=weights.device).view(boards, heads, 1, 1)
    index = (place * block + count[:, None]) * block + count
    return kept(index.to(torch.int32), dropout, seed[0].to(torch.int32))


def attend(
    qkv: Tensor, heads: int, rotary: Tensor | None = None, dropout: float = 0.0, seed: Tensor | None = None
) -> Tensor:
    """:func:`attend_reference`, by the fused kernel where there is one for these shapes.

    ``seed`` makes the dropout: a pair as :func:`maskoban.diffusion.dropout.dropout` takes it, but for counting in
    heads, boards times heads a board, rather than in numbers.

    >>> attend(torch.randn(2, 64, 3 * 256), heads=4, rotary=rotary_table(8, 8, 64)).shape
    torch.Size([2, 64, 256])
    """
    if not _fits(qkv, qkv.shape[2] // (3 * heads)):
        return attend_reference(qkv, heads, rotary, dropout, seed)
    table = rotary if rotary is not None else qkv.new_zeros((2, 1, 1), dtype=torch.float32)
    if seed is None:
        seed = torch.zeros(2, dtype=torch.int64, device=qkv.device)
    out: Tensor = _fused(qkv, table, seed, heads, rotary is not None, dropout)[0]
    return out


def introduce(device: torch.device) -> None:
    """Let torch's compiler meet the operator of :func:`mix` alone, before it does at the end of a network.

    Where it meets one for the first time, torch 2.11 writes out everything that leads there, which takes twice as long
    with every block: minutes for six, and no end for twelve.
    """
    q, x = (torch.zeros(shape, dtype=torch.bfloat16, device=device) for shape in ((1, 2, 1, 32), (1, 32, 64)))
    with torch.no_grad():
        torch.compile(mix)(q, x, x, torch.zeros(2, 32, 16, device=device))


def _fits(x: Tensor, head_width: int) -> bool:
    """Whether there are kernels for boards of this many cells, on this device and in this dtype."""
    small = x.shape[1] <= 128 and head_width in (32, 64)
    fused = kernels is not None and x.is_cuda and fusing.allowed()
    return fused and small and x.dtype in (torch.bfloat16, torch.float16)


def attend_normed(x: Tensor, weight: Tensor, heads: int, rotary: Tensor) -> Tensor:
    """``attend(norm(x) W^T)`` for a weight (3 * d, d): (boards, cells, d) to (boards, cells, d).

    A row's norm is a factor of its product. Where no gradient is wanted the fused kernel applies it there, and no
    normalised x is ever written.
    """
    weight = weight.to(x.dtype)
    if torch.is_grad_enabled() or not _fits(x, x.shape[2] // heads):
        return attend(F.linear(rms_norm(x), weight), heads, rotary)
    out: Tensor = _fused_normed(F.linear(x, weight), row_units(x), rotary, heads)
    return out


def mix_reference(q: Tensor, key: Tensor, x: Tensor, rotary: Tensor) -> Tensor:
    """Plain torch. What some cells' queries find on their board: the rows of norm(x), mixed by their attention.

    q is (boards, heads, k, head width), normalised and rotated; ``key`` is x W^T, (boards, cells, d), neither.
    Returns (boards, heads, k, d). Values are linear in the rows, so that they may be taken of the mixture.
    """
    boards, heads, k, width = q.shape
    key = (key.float() * row_units(x)).to(x.dtype).view(boards, -1, heads, width).transpose(1, 2)
    scores = (q @ normalise_and_rotate(key, rotary).transpose(-1, -2)).float() / math.sqrt(width)
    weights = torch.softmax(scores, dim=-1).to(x.dtype)
    return (weights.flatten(1, 2) @ rms_norm(x)).view(boards, heads, k, -1)


def mix(q: Tensor, key: Tensor, x: Tensor, rotary: Tensor) -> Tensor:
    """:func:`mix_reference`, by the fused kernel where one cell a board asks, and no gradient is wanted.

    >>> mix(torch.randn(2, 4, 1, 64), torch.randn(2, 64, 256), torch.randn(2, 64, 256), rotary_table(8, 8, 64)).shape
    torch.Size([2, 4, 1, 256])
    """
    d = x.shape[2]
    if torch.is_grad_enabled() or q.shape[2] > 1 or d & (d - 1) or not _fits(x, q.shape[3]):
        return mix_reference(q, key, x, rotary)
    out: Tensor = _fused_mix(q, key, x, rotary)
    return out


if kernels is not None:

    @torch.library.custom_op("maskoban::attend_normed", mutates_args=())
    def _fused_normed(qkv: Tensor, unit: Tensor, rotary: Tensor, heads: int) -> Tensor:
        return kernels.forward_normed(qkv, unit, rotary, heads)

    @_fused_normed.register_fake
    def _(qkv: Tensor, unit: Tensor, rotary: Tensor, heads: int) -> Tensor:
        return qkv.new_empty(qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3)

    @torch.library.custom_op("maskoban::mix", mutates_args=())
    def _fused_mix(q: Tensor, key: Tensor, x: Tensor, rotary: Tensor) -> Tensor:
        return kernels.mix(q, key, x, rotary)

    @_fused_mix.register_fake
    def _(q: Tensor, key: Tensor, x: Tensor, rotary: Tensor) -> Tensor:
        return x.new_empty(x.shape[0], q.shape[1], 1, x.shape[2])

    @torch.library.custom_op("maskoban::attend", mutates_args=())
    def _fused(
        qkv: Tensor, rotary: Tensor, seed: Tensor, heads: int, rotate: bool, dropout: float
    ) -> tuple[Tensor, Tensor]:
        return kernels.forward(qkv, rotary, seed, heads, rotate, dropout)

    @_fused.register_fake
    def _(
        qkv: Tensor, rotary: Tensor, seed: Tensor, heads: int, rotate: bool, dropout: float
    ) -> tuple[Tensor, Tensor]:
        boards, cells, width = qkv.shape
        return qkv.new_empty(boards, cells, width // 3), rotary.new_empty(boards, heads, cells)

    @torch.library.custom_op("maskoban::attend_backward", mutates_args=())
    def _fused_backward(
        grad: Tensor, qkv: Tensor, out: Tensor, logs: Tensor, rotary: Tensor, seed: Tensor,
        heads: int, rotate: bool, dropout: float,
    ) -> Tensor:  # fmt: skip
        return kernels.backward(grad, qkv, out, logs, rotary, seed, heads, rotate, dropout)

    @_fused_backward.register_fake
    def _(
        grad: Tensor, qkv: Tensor, out: Tensor, logs: Tensor, rotary: Tensor, seed: Tensor,
        heads: int, rotate: bool, dropout: float,
    ) -> Tensor:  # fmt: skip
        return torch.empty_like(qkv)

    def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        qkv, rotary, seed, ctx.heads, ctx.rotate, ctx.dropout = inputs
        ctx.save_for_backward(qkv, *output, rotary, seed)

    def _differentiate(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dqkv = _fused_backward(grad, *ctx.saved_tensors, ctx.heads, ctx.rotate, ctx.dropout)
        return dqkv, None, None, None, None, None

    _fused.register_autograd(_differentiate, setup_context=_remember)
