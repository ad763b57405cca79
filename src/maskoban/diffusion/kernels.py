"""Kernels for CUDA devices, in Triton: attention over one board, and a norm, linear layer and squared ReLU in one.

Attention runs one program per board and head, everything in registers. Forward reads q, k, v once and writes
the mixed values once. Backward keeps nothing from the forward pass: it recomputes the weights (a few thousand
products) instead of reading them back, which is cheaper at this size. A head's vectors are held as two
halves, because rotary positions turn (first, second) pairs.

Triton's tuner is not made for threads, and drawing uses two: one launch at a time.

Imported only where Triton is; ``attention.py`` and ``feedforward.py`` hold the formulas and the plain versions.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton functions are not typed, and cannot be.
from __future__ import annotations

import math
import os
from threading import Lock

import torch
import triton
import triton.language as tl
from torch import Tensor

from maskoban.diffusion.dropout import least_kept

if os.environ.get("MASKOBAN_KERNELS") == "0":
    raise ImportError("fused kernels are switched off")

_LAUNCHING = Lock()


@triton.jit
def _unit(first, second, WIDTH: tl.constexpr):
    """1 / rms of every row of (first, second)."""
    square = tl.sum(first * first, 1) + tl.sum(second * second, 1)
    return 1.0 / tl.sqrt(square / WIDTH + 1e-6)


@triton.jit
def _halves(base, bias, rows, inside, stride, HALF: tl.constexpr, BIAS: tl.constexpr):
    """The two halves of one head's vectors, fp32; what stands outside the board takes no part."""
    pair = tl.arange(0, HALF)
    at = base + rows[:, None] * stride + pair[None, :]
    first = tl.load(at, mask=inside[:, None], other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=inside[:, None], other=0.0).to(tl.float32)
    if BIAS:
        first += tl.load(bias + pair).to(tl.float32)[None, :]
        second += tl.load(bias + HALF + pair).to(tl.float32)[None, :]
    return first, second


@triton.jit
def _values(base, bias, rows, inside, stride, WIDTH: tl.constexpr, BIAS: tl.constexpr):
    """One head's values, in the precision they are kept in."""
    column = tl.arange(0, WIDTH)
    v = tl.load(base + rows[:, None] * stride + column[None, :], mask=inside[:, None], other=0.0)
    if BIAS:
        v = (v.to(tl.float32) + tl.load(bias + column).to(tl.float32)[None, :]).to(v.dtype)
    return v


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
    """The dropout factor of every weight: 0, or 1 / (1 - P). A hash of (seed, place, row, column)."""
    column = tl.arange(0, BLOCK)
    place = program + tl.load(seed + 1).to(tl.int32)
    at = place * BLOCK * BLOCK + rows[:, None] * BLOCK + column[None, :]
    h = (at.to(tl.uint32) ^ tl.load(seed).to(tl.uint32)) * 0x9E3779B1
    h = (h ^ (h >> 15)) * 0x85EBCA77
    return tl.where(h.to(tl.float32) * 2.0**-32 >= P, 1.0 / (1.0 - P), 0.0)


_ATTENTION = [
    triton.Config({"ROWS": rows}, num_warps=warps, num_stages=stages)
    for rows, warps, stages in (
        (32, 4, 1), (32, 4, 3), (32, 8, 3), (64, 4, 1), (64, 4, 2), (64, 8, 1), (64, 8, 2), (128, 8, 1),
    )
]  # fmt: skip


def _fitting(configs, positional, **named):
    """Blocks of rows no taller than a board."""
    return [c for c in configs if c.kwargs["ROWS"] <= named["BLOCK"]]


@triton.autotune(
    _ATTENTION, key=["boards", "cells", "HALF", "P"], prune_configs_by={"early_config_prune": _fitting}
)
@triton.jit
def _forward(
    qkv, bias, rotary, seed, out, boards, cells, d, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, BIAS: tl.constexpr, ROTATE: tl.constexpr,
    P: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    board, head = (program // HEADS).to(tl.int64), program % HEADS
    start = qkv + board * cells * 3 * d + head * 2 * HALF
    shift = bias + head * 2 * HALF
    keys = tl.arange(0, BLOCK)
    inside = keys < cells
    column = tl.arange(0, 2 * HALF)
    dtype = qkv.dtype.element_ty
    k1, k2 = _halves(start + d, shift + d, keys, inside, 3 * d, HALF, BIAS)
    if ROTATE:
        kcos, ksin = _angles(rotary, keys, inside, cells, HALF)
        kunit = _unit(k1, k2, 2 * HALF)[:, None]
        k1, k2 = (k1 * kcos - k2 * ksin) * kunit, (k1 * ksin + k2 * kcos) * kunit
    k1, k2 = k1.to(dtype), k2.to(dtype)
    v = _values(start + 2 * d, shift + 2 * d, keys, inside, 3 * d, 2 * HALF, BIAS)
    for first in range(0, BLOCK, ROWS):
        rows = first + tl.arange(0, ROWS)
        here = rows < cells
        q1, q2 = _halves(start, shift, rows, here, 3 * d, HALF, BIAS)
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
    grad, qkv, bias, rotary, seed, dqkv, dbias, boards, cells, d, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, BIAS: tl.constexpr, ROTATE: tl.constexpr,
    P: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    board, head = (program // HEADS).to(tl.int64), program % HEADS
    offset = board * cells * 3 * d + head * 2 * HALF
    start = qkv + offset
    shift = bias + head * 2 * HALF
    keys = tl.arange(0, BLOCK)
    inside = keys < cells
    pair = tl.arange(0, HALF)
    column = tl.arange(0, 2 * HALF)
    dtype = qkv.dtype.element_ty
    k1, k2 = _halves(start + d, shift + d, keys, inside, 3 * d, HALF, BIAS)
    if ROTATE:
        kcos, ksin = _angles(rotary, keys, inside, cells, HALF)
        kunit = _unit(k1, k2, 2 * HALF)[:, None]
        k1, k2 = (k1 * kcos - k2 * ksin) * kunit, (k1 * ksin + k2 * kcos) * kunit
    k1h, k2h = k1.to(dtype), k2.to(dtype)
    v = _values(start + 2 * d, shift + 2 * d, keys, inside, 3 * d, 2 * HALF, BIAS)
    dk1 = tl.zeros((BLOCK, HALF), dtype=tl.float32)
    dk2 = tl.zeros((BLOCK, HALF), dtype=tl.float32)
    dv = tl.zeros((BLOCK, 2 * HALF), dtype=tl.float32)
    dshift1 = tl.zeros((HALF,), dtype=tl.float32)
    dshift2 = tl.zeros((HALF,), dtype=tl.float32)
    for first in range(0, BLOCK, ROWS):
        rows = first + tl.arange(0, ROWS)
        here = rows < cells
        q1, q2 = _halves(start, shift, rows, here, 3 * d, HALF, BIAS)
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
        if BIAS:
            dshift1 += tl.sum(dq1, 0)
            dshift2 += tl.sum(dq2, 0)
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
    if BIAS:  # this board's share
        to = dbias + board * 3 * d + head * 2 * HALF
        tl.store(to + pair, dshift1)
        tl.store(to + HALF + pair, dshift2)
        tl.store(to + d + pair, tl.sum(dk1, 0))
        tl.store(to + d + HALF + pair, tl.sum(dk2, 0))
        tl.store(to + 2 * d + column, tl.sum(dv, 0))


def _launch(qkv: Tensor, bias: Tensor | None, heads: int, rotate: bool, dropout: float) -> dict[str, object]:
    cells, d = qkv.shape[1], qkv.shape[2] // 3
    return {
        "boards": qkv.shape[0],  # for the tuner: what suits a few boards does not suit thousands
        "cells": cells,
        "d": d,
        "scale": 1.0 / math.sqrt(d // heads),
        "HEADS": heads,
        "HALF": d // heads // 2,
        "BLOCK": max(32, triton.next_power_of_2(cells)),
        "BIAS": bias is not None,
        "ROTATE": rotate,
        "P": dropout,
    }


def forward(
    qkv: Tensor, bias: Tensor | None, rotary: Tensor, seed: Tensor, heads: int, rotate: bool, dropout: float
) -> Tensor:
    qkv = qkv.contiguous()
    out = torch.empty(qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3, dtype=qkv.dtype, device=qkv.device)
    shift = rotary if bias is None else bias.contiguous()  # something to point to
    how = _launch(qkv, bias, heads, rotate, dropout)
    with _LAUNCHING:
        _forward[(qkv.shape[0] * heads,)](qkv, shift, rotary, seed, out, **how)
    return out


def backward(
    grad: Tensor, qkv: Tensor, bias: Tensor | None, rotary: Tensor, seed: Tensor, heads: int, rotate: bool,
    dropout: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradients of qkv and of the bias; the latter is empty where there is none."""
    qkv = qkv.contiguous()
    dqkv = torch.empty_like(qkv)
    shift = rotary if bias is None else bias.contiguous()
    parts = qkv.new_empty((0 if bias is None else qkv.shape[0], qkv.shape[2]), dtype=torch.float32)
    how = _launch(qkv, bias, heads, rotate, dropout)
    with _LAUNCHING:
        _backward[(qkv.shape[0] * heads,)](grad, qkv, shift, rotary, seed, dqkv, parts, **how)
    return dqkv, parts.sum(0)


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
    x, unit, w, y, M, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """One tile of relu(norm(x) w^T)^2. A row's norm is a factor, applied at the end.

    (Gathered here from the tiles of x as they pass, it came out wrong on an H200 under Triton 3.6, results 10 % off.)
    """
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
    total = tl.maximum(total, 0.0) * tl.load(unit + rows, mask=rows < M, other=0.0)[:, None]
    tl.store(y + rows[:, None] * N + columns[None, :], (total * total).to(y.dtype.element_ty), mask=inside)


def relu_squared(x: Tensor, unit: Tensor, weight: Tensor) -> Tensor:
    x, weight = x.contiguous(), weight.contiguous()
    (n, k), m = weight.shape, x.numel() // x.shape[-1]
    y = torch.empty((*x.shape[:-1], n), dtype=x.dtype, device=x.device)
    with _LAUNCHING:
        _relu_squared[lambda c: (triton.cdiv(m, c["BM"]) * (n // c["BN"]),)](x, unit, weight, y, m, n, k)
    return y


@triton.jit
def _kept(seed, at, LEAST: tl.constexpr):
    """Whether dropout keeps the number at this place: the hash of dropout.py, bit for bit."""
    at = at.to(tl.uint32) + tl.load(seed + 1).to(tl.uint32)
    h = (at ^ tl.load(seed).to(tl.uint32)) * 0x9E3779B1
    h = (h ^ (h >> 15)) * 0x85EBCA77
    return h.to(tl.int32, bitcast=True) >= LEAST


@triton.jit
def _normal(v):
    """The normal distribution's Phi(v) and phi(v), to 1e-7 (Abramowitz and Stegun 7.1.26): half the price of erf."""
    density = tl.exp(-0.5 * v * v)
    t = 1.0 / (1.0 + 0.2316418882663604 * tl.abs(v))
    tail = 1.061405429
    tail = t * tail - 1.453152027
    tail = t * tail + 1.421413741
    tail = t * tail - 0.284496736
    tail = t * tail + 0.254829592
    tail = 0.5 * t * tail * density
    return tl.where(v >= 0, 1.0 - tail, tail), 0.3989422804014327 * density


@triton.jit
def _tile(m, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Columns, places and what of it is there, for this program's tile of (m, N) numbers."""
    program = tl.program_id(0)
    rows = (program // (N // BN)) * BM + tl.arange(0, BM)
    columns = (program % (N // BN)) * BN + tl.arange(0, BN)
    return columns, rows[:, None] * N + columns[None, :], rows[:, None] < m


@triton.jit
def _gelu_dropout(
    h,
    bias,
    seed,
    y,
    m,
    N: tl.constexpr,
    P: tl.constexpr,
    LEAST: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    columns, at, inside = _tile(m, N, BM, BN)
    v = tl.load(h + at, mask=inside, other=0.0).to(tl.float32) + tl.load(bias + columns)[None, :]
    below, _density = _normal(v)
    v = tl.where(_kept(seed, at, LEAST), v * below * (1.0 / (1.0 - P)), 0.0)
    tl.store(y + at, v.to(y.dtype.element_ty), mask=inside)


@triton.jit
def _gelu_dropout_backward(
    grad, h, bias, seed, dh, dbias, m,
    N: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    columns, at, inside = _tile(m, N, BM, BN)
    v = tl.load(h + at, mask=inside, other=0.0).to(tl.float32) + tl.load(bias + columns)[None, :]
    g = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
    below, density = _normal(v)
    g = tl.where(_kept(seed, at, LEAST), g * (below + v * density) * (1.0 / (1.0 - P)), 0.0)
    tl.store(dh + at, g.to(dh.dtype.element_ty), mask=inside)
    tl.store(dbias + (tl.program_id(0) // (N // BN)) * N + columns, tl.sum(g, 0))  # these rows' share


_TILE = {"BM": 32, "BN": 256, "num_warps": 8}  # of the element-wise kernels


def gelu_dropout(h: Tensor, bias: Tensor, seed: Tensor, p: float) -> Tensor:
    h, n = h.contiguous(), h.shape[-1]
    y, m = torch.empty_like(h), h.numel() // n
    grid = (triton.cdiv(m, _TILE["BM"]) * (n // _TILE["BN"]),)
    with _LAUNCHING:
        _gelu_dropout[grid](h, bias, seed, y, m, n, P=p, LEAST=least_kept(p), **_TILE)
    return y


def gelu_dropout_backward(
    grad: Tensor, h: Tensor, bias: Tensor, seed: Tensor, p: float
) -> tuple[Tensor, Tensor]:
    """Gradients of h and of the bias."""
    grad, h, n = grad.contiguous(), h.contiguous(), h.shape[-1]
    dh, m = torch.empty_like(h), h.numel() // n
    blocks = triton.cdiv(m, _TILE["BM"])
    parts = h.new_empty((blocks, n), dtype=torch.float32)
    with _LAUNCHING:
        _gelu_dropout_backward[(blocks * (n // _TILE["BN"]),)](
            grad, h, bias, seed, dh, parts, m, n, P=p, LEAST=least_kept(p), **_TILE
        )
    return dh, parts.sum(0)
