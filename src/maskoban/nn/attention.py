"""Self-attention over the cells of one board: in plain torch, and fused for CUDA. Two operators are for sampling only.

A board has few cells (64 inside a 10x10 border), so all queries, keys and scores of one head fit into the registers
of one processor. On a CUDA device one Triton kernel does everything between the two matrix products (normalise,
rotate, score, softmax, drop, mix) and reads and writes each value once. :func:`attend_reference` is the same function
in plain torch: it runs on every other device and in the tests.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.nn.dropout import kept
from maskoban.nn.layers import fused_on, fused_operator, rms_norm, row_units

try:
    from maskoban.nn import attention_kernels as kernels
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
    """Which of the (boards, heads, cells, cells) weights stay. As in the kernel, an index counts in square blocks whose
    width is the next power of two."""
    boards, heads, cells, _ = weights.shape
    block = max(32, 1 << (cells - 1).bit_length())
    count = torch.arange(cells, device=weights.device)
    place = seed[1] + torch.arange(boards * heads, device=weights.device).view(boards, heads, 1, 1)
    index = (place * block + count[:, None]) * block + count
    return kept(index.to(torch.int32), dropout, seed[0].to(torch.int32))


def attend(
    qkv: Tensor, heads: int, rotary: Tensor | None = None, dropout: float = 0.0, seed: Tensor | None = None
) -> Tensor:
    """:func:`attend_reference`, by the fused kernel where it supports the shapes.

    ``seed`` is a pair as in :func:`maskoban.nn.dropout.dropout`, but its first index counts heads instead of values.

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


def compile_mix_first(device: torch.device) -> None:
    """Compile the operator of :func:`mix` alone, before a whole network is compiled.

    Where torch 2.11's compiler meets the operator for the first time at the end of a network, it expands everything
    that leads there. The time doubles with every block: minutes for six, no end for twelve.
    """
    q, x = (torch.zeros(shape, dtype=torch.bfloat16, device=device) for shape in ((1, 2, 1, 32), (1, 32, 64)))
    with torch.no_grad():
        torch.compile(mix)(q, x, x, torch.zeros(2, 32, 16, device=device))


def _fits(x: Tensor, head_width: int) -> bool:
    """Whether the kernels support this number of cells, this device and this dtype."""
    small = x.shape[1] <= 128 and head_width in (32, 64)
    return fused_on(x) and small and x.dtype in (torch.bfloat16, torch.float16)


def attend_normed(x: Tensor, weight: Tensor, heads: int, rotary: Tensor) -> Tensor:
    """``attend(norm(x) W^T)`` for a weight (3 * d, d): (boards, cells, d) to (boards, cells, d).

    A row's norm is a factor of its product. Where no gradient is needed the fused kernel applies it there, and the
    normalised x is never written.
    """
    weight = weight.to(x.dtype)
    if torch.is_grad_enabled() or not _fits(x, x.shape[2] // heads):
        return attend(F.linear(rms_norm(x), weight), heads, rotary)
    out: Tensor = _fused_normed(F.linear(x, weight), row_units(x), rotary, heads)
    return out


def mix_reference(q: Tensor, key: Tensor, x: Tensor, rotary: Tensor) -> Tensor:
    """Plain torch. The rows of norm(x), mixed by the attention of some cells' queries.

    q is (boards, heads, k, head width), normalised and rotated; ``key`` is x W^T, (boards, cells, d), neither.
    Returns (boards, heads, k, d). Values are linear in the rows, so the value matrix can follow the mixing.
    """
    boards, heads, k, width = q.shape
    key = (key.float() * row_units(x)).to(x.dtype).view(boards, -1, heads, width).transpose(1, 2)
    scores = (q @ normalise_and_rotate(key, rotary).transpose(-1, -2)).float() / math.sqrt(width)
    weights = torch.softmax(scores, dim=-1).to(x.dtype)
    return (weights.flatten(1, 2) @ rms_norm(x)).view(boards, heads, k, -1)


def mix(q: Tensor, key: Tensor, x: Tensor, rotary: Tensor) -> Tensor:
    """:func:`mix_reference`, by the fused kernel for one query cell a board where no gradient is needed.

    >>> mix(torch.randn(2, 4, 1, 64), torch.randn(2, 64, 256), torch.randn(2, 64, 256), rotary_table(8, 8, 64)).shape
    torch.Size([2, 4, 1, 256])
    """
    d = x.shape[2]
    if torch.is_grad_enabled() or q.shape[2] > 1 or d & (d - 1) or not _fits(x, q.shape[3]):
        return mix_reference(q, key, x, rotary)
    out: Tensor = _fused_mix(q, key, x, rotary)
    return out


if kernels is not None:
    _fused_normed = fused_operator(
        "attend_normed",
        kernels.forward_normed,
        lambda qkv, *_: qkv.new_empty(*qkv.shape[:2], qkv.shape[2] // 3),
    )
    _fused_mix = fused_operator(
        "mix", kernels.mix, lambda q, key, x, _: x.new_empty(x.shape[0], q.shape[1], 1, x.shape[2])
    )
    _fused_backward = fused_operator(
        "attend_backward", kernels.backward, lambda grad, qkv, *_: torch.empty_like(qkv)
    )

    def _shapes(qkv: Tensor, rotary: Tensor, seed: Tensor, heads: int, *_: Any) -> tuple[Tensor, Tensor]:
        boards, cells, width = qkv.shape
        return qkv.new_empty(boards, cells, width // 3), rotary.new_empty(boards, heads, cells)

    def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        qkv, rotary, seed, ctx.heads, ctx.rotate, ctx.dropout = inputs
        ctx.save_for_backward(qkv, *output, rotary, seed)

    def _gradient(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        dqkv = _fused_backward(grad, *ctx.saved_tensors, ctx.heads, ctx.rotate, ctx.dropout)
        return dqkv, None, None, None, None, None

    _fused = fused_operator("attend", kernels.forward, _shapes)
    _fused.register_autograd(_gradient, setup_context=_save)
