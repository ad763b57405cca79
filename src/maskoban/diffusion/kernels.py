"""Kernels for CUDA devices, in Triton: attention over one board, and a linear layer with squared ReLU.

Attention runs one program per board and head, everything in registers. Forward reads q, k, v once and writes
the mixed values once. Backward keeps nothing from the forward pass: it recomputes the weights (a few thousand
products) instead of reading them back, which is cheaper at this size. A head's vectors are held as two
halves, because rotary positions turn (first, second) pairs.

Imported only where Triton is; ``attention.py`` and ``feedforward.py`` hold the formulas and the plain versions.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _unit(first, second, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def]
    """1 / rms of every row of (first, second)."""
    square = tl.sum(first * first, 1) + tl.sum(second * second, 1)
    return 1.0 / tl.sqrt(square / WIDTH + 1e-6)


@triton.jit
def _halves(base, rows, inside, stride, HALF: tl.constexpr):  # type: ignore[no-untyped-def]
    """The two halves of one head's vectors, fp32, zero outside the board."""
    pair = tl.arange(0, HALF)
    at = base + rows[:, None] * stride + pair[None, :]
    first = tl.load(at, mask=inside[:, None], other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=inside[:, None], other=0.0).to(tl.float32)
    return first, second


@triton.jit
def _weights(q1, q2, k1, k2, inside, scale):  # type: ignore[no-untyped-def]
    """softmax(q k^T * scale) over the cells inside the board."""
    scores = tl.dot(q1, tl.trans(k1)) + tl.dot(q2, tl.trans(k2))
    scores = tl.where(inside[None, :], scores * scale, float("-inf"))
    scores = tl.exp(scores - tl.max(scores, 1)[:, None])
    return scores / tl.sum(scores, 1)[:, None]


@triton.jit
def _scramble(h):  # type: ignore[no-untyped-def]
    """MurmurHash3's finaliser on uint32; ``dropout.scramble`` is the same in torch."""
    h = (h ^ (h >> 16)) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    return h ^ (h >> 16)


@triton.jit
def _keep(seed, program, rows, P: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """The dropout factor of every weight: 0, or 1 / (1 - P). A function of (seed, program, row, column)."""
    column = tl.arange(0, BLOCK)
    at = program * BLOCK * BLOCK + rows[:, None] * BLOCK + column[None, :]
    bits = _scramble(at.to(tl.uint32) ^ tl.load(seed).to(tl.uint32))
    return tl.where(bits.to(tl.float32) * 2.0**-32 >= P, 1.0 / (1.0 - P), 0.0)


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    qkv, rotary, seed, out, cells, d, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, ROTATE: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    board, head = (program // HEADS).to(tl.int64), program % HEADS
    rows = tl.arange(0, BLOCK)
    inside = rows < cells
    pair = tl.arange(0, HALF)
    start = qkv + board * cells * 3 * d + head * 2 * HALF
    q1, q2 = _halves(start, rows, inside, 3 * d, HALF)
    k1, k2 = _halves(start + d, rows, inside, 3 * d, HALF)
    if ROTATE:
        at = rows[:, None] * HALF + pair[None, :]
        cos = tl.load(rotary + at, mask=inside[:, None], other=0.0)
        sin = tl.load(rotary + cells * HALF + at, mask=inside[:, None], other=0.0)
        qn, kn = _unit(q1, q2, 2 * HALF)[:, None], _unit(k1, k2, 2 * HALF)[:, None]
        q1, q2 = (q1 * cos - q2 * sin) * qn, (q1 * sin + q2 * cos) * qn
        k1, k2 = (k1 * cos - k2 * sin) * kn, (k1 * sin + k2 * cos) * kn
    dtype = qkv.dtype.element_ty
    weights = _weights(q1.to(dtype), q2.to(dtype), k1.to(dtype), k2.to(dtype), inside, scale)
    if P > 0:
        weights = weights * _keep(seed, program, rows, P, BLOCK)
    column = tl.arange(0, 2 * HALF)
    v = tl.load(start + 2 * d + rows[:, None] * 3 * d + column[None, :], mask=inside[:, None], other=0.0)
    mixed = tl.dot(weights.to(dtype), v)
    to = out + board * cells * d + head * 2 * HALF + rows[:, None] * d + column[None, :]
    tl.store(to, mixed.to(dtype), mask=inside[:, None])


@triton.jit
def _turn_back(g1, g2, r1, r2, unit, cos, sin, WIDTH: tl.constexpr):  # type: ignore[no-untyped-def]
    """Gradient before normalising and rotating, from the gradient (g) and the value (r) after both.

    A rotation keeps lengths, so the normaliser's gradient is unit * (g - r * mean(g r)), then turned back.
    """
    along = ((tl.sum(g1 * r1, 1) + tl.sum(g2 * r2, 1)) / WIDTH)[:, None]
    g1, g2 = (g1 - r1 * along) * unit, (g2 - r2 * along) * unit
    return g1 * cos + g2 * sin, g2 * cos - g1 * sin


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    grad, qkv, rotary, seed, dqkv, cells, d, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, ROTATE: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    board, head = (program // HEADS).to(tl.int64), program % HEADS
    rows = tl.arange(0, BLOCK)
    inside = rows < cells
    pair = tl.arange(0, HALF)
    offset = board * cells * 3 * d + head * 2 * HALF
    start = qkv + offset
    dtype = qkv.dtype.element_ty
    q1, q2 = _halves(start, rows, inside, 3 * d, HALF)
    k1, k2 = _halves(start + d, rows, inside, 3 * d, HALF)
    at = rows[:, None] * HALF + pair[None, :]
    if ROTATE:
        cos = tl.load(rotary + at, mask=inside[:, None], other=0.0)
        sin = tl.load(rotary + cells * HALF + at, mask=inside[:, None], other=0.0)
        qn, kn = _unit(q1, q2, 2 * HALF)[:, None], _unit(k1, k2, 2 * HALF)[:, None]
        q1, q2 = (q1 * cos - q2 * sin) * qn, (q1 * sin + q2 * cos) * qn
        k1, k2 = (k1 * cos - k2 * sin) * kn, (k1 * sin + k2 * cos) * kn
    q1h, q2h, k1h, k2h = q1.to(dtype), q2.to(dtype), k1.to(dtype), k2.to(dtype)
    weights = _weights(q1h, q2h, k1h, k2h, inside, scale)
    column = tl.arange(0, 2 * HALF)
    v = tl.load(start + 2 * d + rows[:, None] * 3 * d + column[None, :], mask=inside[:, None], other=0.0)
    from_ = grad + board * cells * d + head * 2 * HALF + rows[:, None] * d + column[None, :]
    g = tl.load(from_, mask=inside[:, None], other=0.0)
    dweights = tl.dot(g, tl.trans(v))
    dropped = weights
    if P > 0:
        keep = _keep(seed, program, rows, P, BLOCK)
        dropped = weights * keep
        dweights = dweights * keep
    dv = tl.dot(tl.trans(dropped.to(dtype)), g)
    dscores = weights * (dweights - tl.sum(weights * dweights, 1)[:, None]) * scale
    ds = dscores.to(dtype)
    dq1, dq2 = tl.dot(ds, k1h), tl.dot(ds, k2h)
    dst = tl.trans(ds)
    dk1, dk2 = tl.dot(dst, q1h), tl.dot(dst, q2h)
    if ROTATE:
        dq1, dq2 = _turn_back(dq1, dq2, q1, q2, qn, cos, sin, 2 * HALF)
        dk1, dk2 = _turn_back(dk1, dk2, k1, k2, kn, cos, sin, 2 * HALF)
    to = dqkv + offset + rows[:, None] * 3 * d + pair[None, :]
    tl.store(to, dq1.to(dtype), mask=inside[:, None])
    tl.store(to + HALF, dq2.to(dtype), mask=inside[:, None])
    tl.store(to + d, dk1.to(dtype), mask=inside[:, None])
    tl.store(to + d + HALF, dk2.to(dtype), mask=inside[:, None])
    tov = dqkv + offset + 2 * d + rows[:, None] * 3 * d + column[None, :]
    tl.store(tov, dv.to(dtype), mask=inside[:, None])


def _launch(qkv: Tensor, heads: int, rotate: bool, dropout: float) -> dict[str, object]:
    cells, d = qkv.shape[1], qkv.shape[2] // 3
    block = max(16, triton.next_power_of_2(cells))
    return {
        "cells": cells,
        "d": d,
        "scale": 1.0 / math.sqrt(d // heads),
        "HEADS": heads,
        "HALF": d // heads // 2,
        "BLOCK": block,
        "ROTATE": rotate,
        "P": dropout,
        "num_warps": 4 if block <= 64 else 8,
    }


def forward(qkv: Tensor, rotary: Tensor, seed: Tensor, heads: int, rotate: bool, dropout: float) -> Tensor:
    qkv = qkv.contiguous()
    out = torch.empty(qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3, dtype=qkv.dtype, device=qkv.device)
    _forward[(qkv.shape[0] * heads,)](qkv, rotary, seed, out, **_launch(qkv, heads, rotate, dropout))
    return out


def backward(
    grad: Tensor, qkv: Tensor, rotary: Tensor, seed: Tensor, heads: int, rotate: bool, dropout: float
) -> Tensor:
    qkv = qkv.contiguous()
    dqkv = torch.empty_like(qkv)
    _backward[(qkv.shape[0] * heads,)](grad, qkv, rotary, seed, dqkv, **_launch(qkv, heads, rotate, dropout))
    return dqkv


@triton.autotune(
    configs=[
        triton.Config({"BM": 128, "BN": 256}, num_warps=8, num_stages=3),
        triton.Config({"BM": 128, "BN": 256}, num_warps=8, num_stages=4),
        triton.Config({"BM": 128, "BN": 128}, num_warps=4, num_stages=3),
        triton.Config({"BM": 128, "BN": 128}, num_warps=8, num_stages=4),
    ],
    key=["N", "K"],
)
@triton.jit
def _relu_squared(  # type: ignore[no-untyped-def]
    x, w, y, M, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr = 64
):
    program = tl.program_id(0)  # neighbours share rows of x, which the cache then serves
    rows = (program // (N // BN)).to(tl.int64) * BM + tl.arange(0, BM)
    columns = (program % (N // BN)) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    inside = rows[:, None] < M
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(x + rows[:, None] * K + k + inner[None, :], mask=inside, other=0.0)
        b = tl.load(w + columns[None, :] * K + k + inner[:, None])
        total = tl.dot(a, b, total)
    total = tl.maximum(total, 0.0)
    tl.store(y + rows[:, None] * N + columns[None, :], (total * total).to(y.dtype.element_ty), mask=inside)


def relu_squared(x: Tensor, weight: Tensor) -> Tensor:
    x = x.contiguous()
    (n, k), m = weight.shape, x.numel() // x.shape[-1]
    y = torch.empty((*x.shape[:-1], n), dtype=x.dtype, device=x.device)
    _relu_squared[lambda c: (triton.cdiv(m, c["BM"]) * (n // c["BN"]),)](x, weight.contiguous(), y, m, n, k)
    return y
