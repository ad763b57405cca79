"""Kernels for CUDA devices, in Triton: attention over one board, and a norm, linear layer and squared ReLU in one.

Attention runs one program per board and head, everything in registers. Forward reads q, k, v once and writes
the mixed values once. Backward keeps nothing from the forward pass: it recomputes the weights (a few thousand
products) instead of reading them back, which is cheaper at this size. A head's vectors are held as two
halves, because rotary positions turn (first, second) pairs.

Imported only where Triton is; ``attention.py`` and ``feedforward.py`` hold the formulas and the plain versions.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton functions are not typed, and cannot be.
from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from maskoban.diffusion.dropout import least_kept


@triton.jit
def _unit(first, second, WIDTH: tl.constexpr):
    """1 / rms of every row of (first, second)."""
    square = tl.sum(first * first, 1) + tl.sum(second * second, 1)
    return 1.0 / tl.sqrt(square / WIDTH + 1e-6)


@triton.jit
def _halves(base, rows, inside, stride, HALF: tl.constexpr):
    """The two halves of one head's vectors, fp32, zero outside the board."""
    pair = tl.arange(0, HALF)
    at = base + rows[:, None] * stride + pair[None, :]
    first = tl.load(at, mask=inside[:, None], other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=inside[:, None], other=0.0).to(tl.float32)
    return first, second


@triton.jit
def _angles(rotary, rows, inside, cells, HALF: tl.constexpr):
    """Cosines and sines of these cells."""
    at = rotary + rows[:, None] * HALF + tl.arange(0, HALF)[None, :]
    cos = tl.load(at, mask=inside[:, None], other=0.0)
    sin = tl.load(at + cells * HALF, mask=inside[:, None], other=0.0)
    return cos, sin


@triton.jit
def _weights(q1, q2, k1, k2, inside, scale):
    """softmax(q k^T * scale) over the cells inside the board."""
    scores = tl.dot(q1, tl.trans(k1)) + tl.dot(q2, tl.trans(k2))
    scores = tl.where(inside[None, :], scores * scale, float("-inf"))
    scores = tl.exp(scores - tl.max(scores, 1)[:, None])
    return scores / tl.sum(scores, 1)[:, None]


@triton.jit
def _keep(seed, program, rows, P: tl.constexpr, BLOCK: tl.constexpr):
    """The dropout factor of every weight: 0, or 1 / (1 - P). A hash of (seed, program, row, column)."""
    column = tl.arange(0, BLOCK)
    at = program * BLOCK * BLOCK + rows[:, None] * BLOCK + column[None, :]
    h = (at.to(tl.uint32) ^ tl.load(seed).to(tl.uint32)) * 0x9E3779B1
    h = (h ^ (h >> 15)) * 0x85EBCA77
    return tl.where(h.to(tl.float32) * 2.0**-32 >= P, 1.0 / (1.0 - P), 0.0)


_ATTENTION = [
    triton.Config({"ROWS": rows}, num_warps=warps, num_stages=1) for rows in (32, 64, 128) for warps in (4, 8)
]


def _fitting(configs, positional, **named):
    """Blocks of rows no taller than a board."""
    return [c for c in configs if c.kwargs["ROWS"] <= named["BLOCK"]]


@triton.autotune(
    _ATTENTION, key=["boards", "cells", "HALF", "P"], prune_configs_by={"early_config_prune": _fitting}
)
@triton.jit
def _forward(
    qkv, rotary, seed, out, boards, cells, d, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, ROTATE: tl.constexpr, P: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    board, head = (program // HEADS).to(tl.int64), program % HEADS
    start = qkv + board * cells * 3 * d + head * 2 * HALF
    keys = tl.arange(0, BLOCK)
    inside = keys < cells
    column = tl.arange(0, 2 * HALF)
    dtype = qkv.dtype.element_ty
    k1, k2 = _halves(start + d, keys, inside, 3 * d, HALF)
    if ROTATE:
        kcos, ksin = _angles(rotary, keys, inside, cells, HALF)
        kunit = _unit(k1, k2, 2 * HALF)[:, None]
        k1, k2 = (k1 * kcos - k2 * ksin) * kunit, (k1 * ksin + k2 * kcos) * kunit
    k1, k2 = k1.to(dtype), k2.to(dtype)
    v = tl.load(start + 2 * d + keys[:, None] * 3 * d + column[None, :], mask=inside[:, None], other=0.0)
    for first in range(0, BLOCK, ROWS):
        rows = first + tl.arange(0, ROWS)
        here = rows < cells
        q1, q2 = _halves(start, rows, here, 3 * d, HALF)
        if ROTATE:
            cos, sin = _angles(rotary, rows, here, cells, HALF)
            unit = _unit(q1, q2, 2 * HALF)[:, None]
            q1, q2 = (q1 * cos - q2 * sin) * unit, (q1 * sin + q2 * cos) * unit
        weights = _weights(q1.to(dtype), q2.to(dtype), k1, k2, inside, scale)
        if P > 0:
            weights = weights * _keep(seed, program, rows, P, BLOCK)
        mixed = tl.dot(weights.to(dtype), v)
        to = out + board * cells * d + head * 2 * HALF + rows[:, None] * d + column[None, :]
        tl.store(to, mixed.to(dtype), mask=here[:, None])


@triton.jit
def _turn_back(g1, g2, r1, r2, unit, cos, sin, WIDTH: tl.constexpr):
    """Gradient before normalising and rotating, from the gradient (g) and the value (r) after both.

    A rotation keeps lengths, so the normaliser's gradient is unit * (g - r * mean(g r)), then turned back.
    """
    along = ((tl.sum(g1 * r1, 1) + tl.sum(g2 * r2, 1)) / WIDTH)[:, None]
    g1, g2 = (g1 - r1 * along) * unit, (g2 - r2 * along) * unit
    return g1 * cos + g2 * sin, g2 * cos - g1 * sin


@triton.autotune(
    _ATTENTION, key=["boards", "cells", "HALF", "P"], prune_configs_by={"early_config_prune": _fitting}
)
@triton.jit
def _backward(
    grad, qkv, rotary, seed, dqkv, boards, cells, d, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, ROTATE: tl.constexpr, P: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    board, head = (program // HEADS).to(tl.int64), program % HEADS
    offset = board * cells * 3 * d + head * 2 * HALF
    start = qkv + offset
    keys = tl.arange(0, BLOCK)
    inside = keys < cells
    pair = tl.arange(0, HALF)
    column = tl.arange(0, 2 * HALF)
    dtype = qkv.dtype.element_ty
    k1, k2 = _halves(start + d, keys, inside, 3 * d, HALF)
    if ROTATE:
        kcos, ksin = _angles(rotary, keys, inside, cells, HALF)
        kunit = _unit(k1, k2, 2 * HALF)[:, None]
        k1, k2 = (k1 * kcos - k2 * ksin) * kunit, (k1 * ksin + k2 * kcos) * kunit
    k1h, k2h = k1.to(dtype), k2.to(dtype)
    v = tl.load(start + 2 * d + keys[:, None] * 3 * d + column[None, :], mask=inside[:, None], other=0.0)
    dk1 = tl.zeros((BLOCK, HALF), dtype=tl.float32)
    dk2 = tl.zeros((BLOCK, HALF), dtype=tl.float32)
    dv = tl.zeros((BLOCK, 2 * HALF), dtype=tl.float32)
    for first in range(0, BLOCK, ROWS):
        rows = first + tl.arange(0, ROWS)
        here = rows < cells
        q1, q2 = _halves(start, rows, here, 3 * d, HALF)
        if ROTATE:
            cos, sin = _angles(rotary, rows, here, cells, HALF)
            unit = _unit(q1, q2, 2 * HALF)[:, None]
            q1, q2 = (q1 * cos - q2 * sin) * unit, (q1 * sin + q2 * cos) * unit
        q1h, q2h = q1.to(dtype), q2.to(dtype)
        weights = _weights(q1h, q2h, k1h, k2h, inside, scale)
        from_ = grad + board * cells * d + head * 2 * HALF + rows[:, None] * d + column[None, :]
        g = tl.load(from_, mask=here[:, None], other=0.0)
        dweights = tl.dot(g, tl.trans(v))
        dropped = weights
        if P > 0:
            keep = _keep(seed, program, rows, P, BLOCK)
            dropped = weights * keep
            dweights = dweights * keep
        dv += tl.dot(tl.trans(dropped.to(dtype)), g)
        ds = (weights * (dweights - tl.sum(weights * dweights, 1)[:, None]) * scale).to(dtype)
        dst = tl.trans(ds)
        dk1 += tl.dot(dst, q1h)
        dk2 += tl.dot(dst, q2h)
        dq1, dq2 = tl.dot(ds, k1h), tl.dot(ds, k2h)
        if ROTATE:
            dq1, dq2 = _turn_back(dq1, dq2, q1, q2, unit, cos, sin, 2 * HALF)
        to = dqkv + offset + rows[:, None] * 3 * d + pair[None, :]
        tl.store(to, dq1.to(dtype), mask=here[:, None])
        tl.store(to + HALF, dq2.to(dtype), mask=here[:, None])
    if ROTATE:
        dk1, dk2 = _turn_back(dk1, dk2, k1, k2, kunit, kcos, ksin, 2 * HALF)
    to = dqkv + offset + d + keys[:, None] * 3 * d + pair[None, :]
    tl.store(to, dk1.to(dtype), mask=inside[:, None])
    tl.store(to + HALF, dk2.to(dtype), mask=inside[:, None])
    to = dqkv + offset + 2 * d + keys[:, None] * 3 * d + column[None, :]
    tl.store(to, dv.to(dtype), mask=inside[:, None])


def _launch(qkv: Tensor, heads: int, rotate: bool, dropout: float) -> dict[str, object]:
    cells, d = qkv.shape[1], qkv.shape[2] // 3
    return {
        "boards": qkv.shape[0],  # for the tuner: what suits a few boards does not suit thousands
        "cells": cells,
        "d": d,
        "scale": 1.0 / math.sqrt(d // heads),
        "HEADS": heads,
        "HALF": d // heads // 2,
        "BLOCK": max(32, triton.next_power_of_2(cells)),
        "ROTATE": rotate,
        "P": dropout,
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
        triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps, num_stages=stages)
        for bm, bn, bk, warps, stages in (
            (128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (128, 128, 128, 8, 2),
            (64, 256, 64, 4, 3), (128, 64, 64, 4, 4),
        )
    ],
    key=["M", "N", "K"],
)  # fmt: skip
@triton.jit
def _relu_squared(
    x, w, y, M, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """One tile of relu(norm(x) w^T)^2. A row's norm is a factor, gathered on the way and applied at the end."""
    program = tl.program_id(0)  # neighbours share rows of x, which the cache then serves
    rows = (program // (N // BN)).to(tl.int64) * BM + tl.arange(0, BM)
    columns = (program % (N // BN)) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    inside = rows[:, None] < M
    total = tl.zeros((BM, BN), dtype=tl.float32)
    square = tl.zeros((BM,), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(x + rows[:, None] * K + k + inner[None, :], mask=inside, other=0.0)
        b = tl.load(w + columns[None, :] * K + k + inner[:, None])
        total = tl.dot(a, b, total)
        a32 = a.to(tl.float32)
        square += tl.sum(a32 * a32, 1)
    total = tl.maximum(total, 0.0) / tl.sqrt(square / K + 1e-6)[:, None]
    tl.store(y + rows[:, None] * N + columns[None, :], (total * total).to(y.dtype.element_ty), mask=inside)


def relu_squared(x: Tensor, weight: Tensor) -> Tensor:
    x = x.contiguous()
    (n, k), m = weight.shape, x.numel() // x.shape[-1]
    y = torch.empty((*x.shape[:-1], n), dtype=x.dtype, device=x.device)
    _relu_squared[lambda c: (triton.cdiv(m, c["BM"]) * (n // c["BN"]),)](x, weight.contiguous(), y, m, n, k)
    return y


@triton.jit
def _kept(seed, at, LEAST: tl.constexpr):
    """Whether dropout keeps the number at this place: the hash of dropout.py, bit for bit."""
    h = (at.to(tl.uint32) ^ tl.load(seed).to(tl.uint32)) * 0x9E3779B1
    h = (h ^ (h >> 15)) * 0x85EBCA77
    return h.to(tl.int32, bitcast=True) >= LEAST


@triton.jit
def _gelu_dropout(h, seed, y, n, P: tl.constexpr, LEAST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(h + at, mask=inside, other=0.0).to(tl.float32)
    v = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))
    v = tl.where(_kept(seed, at, LEAST), v * (1.0 / (1.0 - P)), 0.0)
    tl.store(y + at, v.to(y.dtype.element_ty), mask=inside)


@triton.jit
def _gelu_dropout_backward(grad, h, seed, dh, n, P: tl.constexpr, LEAST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(h + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
    slope = 0.5 * (1.0 + tl.erf(v * 0.7071067811865476)) + v * 0.3989422804014327 * tl.exp(-0.5 * v * v)
    g = tl.where(_kept(seed, at, LEAST), g * slope * (1.0 / (1.0 - P)), 0.0)
    tl.store(dh + at, g.to(dh.dtype.element_ty), mask=inside)


_SPAN = 2048  # numbers a program of the element-wise kernels handles


def gelu_dropout(h: Tensor, seed: Tensor, p: float) -> Tensor:
    h = h.contiguous()
    y = torch.empty_like(h)
    grid = (triton.cdiv(h.numel(), _SPAN),)
    _gelu_dropout[grid](h, seed, y, h.numel(), P=p, LEAST=least_kept(p), BLOCK=_SPAN)
    return y


def gelu_dropout_backward(grad: Tensor, h: Tensor, seed: Tensor, p: float) -> Tensor:
    grad, h = grad.contiguous(), h.contiguous()
    dh = torch.empty_like(h)
    grid = (triton.cdiv(h.numel(), _SPAN),)
    _gelu_dropout_backward[grid](grad, h, seed, dh, h.numel(), P=p, LEAST=least_kept(p), BLOCK=_SPAN)
    return dh
