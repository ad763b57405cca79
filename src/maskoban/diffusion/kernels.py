"""Kernels for CUDA devices, in Triton: attention over one board, and a norm, linear layer and squared ReLU in one.

Attention takes a board and a head at a time (a board alone where a single cell asks), everything in registers; where
that is faster, a program takes one after the other, and reads the next one's numbers meanwhile. Forward reads q, k, v
once and writes the mixed values once. Backward computes the weights again (a few thousand products) instead of reading
them back, which is cheaper at this size, from one number a row that forward kept. Where rotary positions turn (first,
second) pairs, a head's vectors are held as two halves.

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

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:  # before Triton 3.4
    TensorDescriptor = None

if os.environ.get("MASKOBAN_KERNELS") == "0":
    raise ImportError("fused kernels are switched off")

LAUNCHING = Lock()

LOG2E = tl.constexpr(1.4426950408889634)  # powers of two are what a device computes


def processors(device: torch.device) -> int:
    """How many programs can run at the same time without sharing anything."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@triton.jit
def _unit(first, second, WIDTH: tl.constexpr):
    """1 / rms of every row of (first, second)."""
    square = tl.sum(first * first, 1) + tl.sum(second * second, 1)
    return 1.0 / tl.sqrt(square / WIDTH + 1e-6)


@triton.jit
def _vectors(base, rows, inside, stride, WIDTH: tl.constexpr):
    """Some columns of one head's vectors, fp32; what stands outside the board takes no part."""
    at = base + rows[:, None] * stride + tl.arange(0, WIDTH)[None, :]
    return tl.load(at, mask=inside[:, None], other=0.0).to(tl.float32)


@triton.jit
def _angles(rotary, rows, inside, cells, HALF: tl.constexpr):
    """Cosines and sines of these cells."""
    at = rotary + rows[:, None] * HALF + tl.arange(0, HALF)[None, :]
    cos = tl.load(at, mask=inside[:, None], other=0.0)
    sin = tl.load(at + cells * HALF, mask=inside[:, None], other=0.0)
    return cos, sin


@triton.jit
def _scores(q1, q2, k1, k2, inside, FULL: tl.constexpr, ROTATE: tl.constexpr):
    """q k^T over the cells inside the board; FULL says that all are."""
    scores = tl.dot(q1, tl.trans(k1))
    if ROTATE:
        scores = tl.dot(q2, tl.trans(k2), scores)
    if not FULL:
        scores = tl.where(inside[None, :], scores, float("-inf"))
    return scores


@triton.jit
def kept(seed, starts, LEAST: tl.constexpr, N: tl.constexpr):
    """Which of N numbers a row dropout keeps, for rows that start at these places: dropout.py's hash, to the bit."""
    once = tl.load(seed).to(tl.uint32) * 0x9E3779B1
    once = (once ^ (once >> 15)) * 0x85EBCA77
    columns = tl.arange(0, N).to(tl.uint32) * 0x9E3779B1
    h = (starts.to(tl.uint32) * 0x9E3779B1 + once)[:, None] + columns[None, :]
    h = (h ^ (h >> 15)) * 0x85EBCA77
    return h.to(tl.int32, bitcast=True) >= LEAST


@triton.jit
def _kept_weights(seed, program, rows, first, LEAST: tl.constexpr, BLOCK: tl.constexpr, KEYS: tl.constexpr):
    """Which weights of these rows, KEYS from the first, dropout keeps: those at their place in BLOCK x BLOCK."""
    place = program + tl.load(seed + 1).to(tl.int32)
    return kept(seed, (place * BLOCK + rows) * BLOCK + first, LEAST, KEYS)


#: As many programs as there are boards and heads.
_ALL = 1 << 20


def _sizes(name: str, *sizes: tuple[int, int, int, int | None, int]) -> list[triton.Config]:
    """Sizes to try: rows or keys at a time, warps, boards on their way at once, the registers a thread may have, and
    how many programs a processor is given. A few that take board after board read the next one's numbers while they
    compute; ALL, with one board each, wait side by side.
    """
    tried = []
    for size, warps, stages, registers, per_sm in sizes:
        named = {name: size, "STAGES": stages, "PER_SM": per_sm}
        tried.append(triton.Config(named, num_warps=warps, num_stages=stages, maxnreg=registers))
    return tried


def _fitting(configs, positional, **named):
    """Blocks of rows, or of keys, no taller than a board, and none of 32 where a board has more."""
    sizes = [(c, c.kwargs.get("ROWS", c.kwargs.get("KEYS"))) for c in configs]
    return [c for c, size in sizes if min(64, named["BLOCK"]) <= size <= named["BLOCK"]]


def _programs(qkv: Tensor, heads: int):
    """How many programs there are for a configuration."""
    return lambda c: (min(len(qkv) * heads, processors(qkv.device) * c["PER_SM"]),)


@triton.autotune(
    _sizes(
        "ROWS",
        *(
            (64, 4, 2, 128, 4),
            (64, 4, 2, None, 3),
            (64, 4, 3, 128, 2),
            (128, 8, 2, 128, 2),
            (128, 8, 2, None, 1),
        ),
        *((32, 4, 2, None, 3), (64, 4, 1, None, _ALL), (64, 4, 1, 128, _ALL), (32, 4, 1, None, _ALL)),
    ),
    key=["boards", "cells", "HALF", "P", "SCALED"],
    prune_configs_by={"early_config_prune": _fitting},
)
@triton.jit
def _forward(
    qkv, unit, rotary, seed, out, logs, boards, cells: tl.constexpr, d: tl.constexpr, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, FIRST: tl.constexpr, BLOCK: tl.constexpr, FULL: tl.constexpr,
    ROTATE: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr, SCALED: tl.constexpr, LEARNED: tl.constexpr,
    ROWS: tl.constexpr, STAGES: tl.constexpr, PER_SM: tl.constexpr,
):  # fmt: skip
    """``unit`` is a factor of every row of qkv, where rows are SCALED.

    ``logs`` is for the way back, where something is LEARNED: of every row, the logarithm of the sum that its weights
    are divided by.
    """
    for program in tl.range(tl.program_id(0), boards * HEADS, tl.num_programs(0), num_stages=STAGES):
        board, head = tl.cast(program // HEADS, tl.int64), program % HEADS
        start = qkv + board * cells * 3 * d + head * 2 * HALF
        keys = tl.arange(0, BLOCK)
        inside = keys < cells
        column = tl.arange(0, 2 * HALF)
        dtype = qkv.dtype.element_ty
        units = unit + board * cells
        k1 = _vectors(start + d, keys, inside, 3 * d, FIRST)
        k2 = k1
        if ROTATE:
            k2 = _vectors(start + d + HALF, keys, inside, 3 * d, HALF)
        v = tl.load(start + 2 * d + keys[:, None] * 3 * d + column[None, :], mask=inside[:, None], other=0.0)
        if SCALED:
            kfactor = tl.load(units + keys, mask=inside, other=0.0)[:, None]
            k1, k2, v = k1 * kfactor, k2 * kfactor, (v * kfactor).to(dtype)
        if ROTATE:
            kcos, ksin = _angles(rotary, keys, inside, cells, HALF)
            kunit = _unit(k1, k2, 2 * HALF)[:, None]
            k1, k2 = (k1 * kcos - k2 * ksin) * kunit, (k1 * ksin + k2 * kcos) * kunit
        k1, k2 = k1.to(dtype), k2.to(dtype)
        for first in tl.static_range(0, cells, ROWS):
            rows = first + tl.arange(0, ROWS)
            here = rows < cells
            q1 = _vectors(start, rows, here, 3 * d, FIRST)
            q2 = q1
            if ROTATE:
                q2 = _vectors(start + HALF, rows, here, 3 * d, HALF)
            if SCALED:
                factor = tl.load(units + rows, mask=here, other=0.0)[:, None]
                q1, q2 = q1 * factor, q2 * factor
            if ROTATE:
                cos, sin = _angles(rotary, rows, here, cells, HALF)
                qunit = _unit(q1, q2, 2 * HALF)[:, None]
                q1, q2 = (q1 * cos - q2 * sin) * qunit, (q1 * sin + q2 * cos) * qunit
            scores = _scores(q1.to(dtype), q2.to(dtype), k1, k2, inside, FULL, ROTATE)
            most = tl.max(scores, 1) * (scale * LOG2E)
            weights = tl.exp2(scores * (scale * LOG2E) - most[:, None])
            total = tl.sum(weights, 1)
            if LEARNED:
                tl.store(logs + program * cells + rows, most + tl.log2(total), mask=here)
            # One multiplication a weight: a division for each would cost as much as all the rest. By a factor that may
            # be zero: of two numbers to choose between, a compiler would round both, and choose between halves of a
            # register.
            factor = (1.0 / ((1.0 - P) * total))[:, None]
            if P > 0:
                factor = tl.where(_kept_weights(seed, program, rows, 0, LEAST, BLOCK, BLOCK), factor, 0.0)
            mixed = tl.dot((weights * factor).to(dtype), v)
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
    _sizes(
        "KEYS",
        *((64, 8, 2, 128, 2), (64, 8, 2, None, 1), (64, 4, 2, None, 2), (128, 8, 2, None, 1), (32, 4, 2, None, 2)),
        *((64, 8, 1, 128, _ALL), (64, 4, 1, None, _ALL), (32, 4, 1, 128, _ALL)),
    ),
    key=["boards", "cells", "HALF", "P"],
    prune_configs_by={"early_config_prune": _fitting},
)  # fmt: skip
@triton.jit
def _backward(
    grad, qkv, out, logs, rotary, seed, dqkv, boards, cells: tl.constexpr, d: tl.constexpr, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, FIRST: tl.constexpr, BLOCK: tl.constexpr, FULL: tl.constexpr,
    ROTATE: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr, KEYS: tl.constexpr,
    STAGES: tl.constexpr, PER_SM: tl.constexpr,
):  # fmt: skip
    """All rows against some keys at a time: of sums over a whole board only the queries' gradient is held."""
    for program in tl.range(tl.program_id(0), boards * HEADS, tl.num_programs(0), num_stages=STAGES):
        board, head = tl.cast(program // HEADS, tl.int64), program % HEADS
        offset = board * cells * 3 * d + head * 2 * HALF
        start = qkv + offset
        rows = tl.arange(0, BLOCK)
        here = rows < cells
        first_column = tl.arange(0, FIRST)
        column = tl.arange(0, 2 * HALF)
        dtype = qkv.dtype.element_ty
        q1 = _vectors(start, rows, here, 3 * d, FIRST)
        q2 = q1
        if ROTATE:
            q2 = _vectors(start + HALF, rows, here, 3 * d, HALF)
            cos, sin = _angles(rotary, rows, here, cells, HALF)
            unit = _unit(q1, q2, 2 * HALF)[:, None]
            q1, q2 = (q1 * cos - q2 * sin) * unit, (q1 * sin + q2 * cos) * unit
        q1h, q2h = q1.to(dtype), q2.to(dtype)
        log = tl.load(logs + program * cells + rows, mask=here, other=0.0)
        at = board * cells * d + head * 2 * HALF + rows[:, None] * d + column[None, :]
        g = tl.load(grad + at, mask=here[:, None], other=0.0)
        # What came out, times its gradient, is the sum over all weights of each times its gradient.
        along = tl.sum(g.to(tl.float32) * tl.load(out + at, mask=here[:, None], other=0.0).to(tl.float32), 1)
        dq1 = tl.zeros((BLOCK, FIRST), dtype=tl.float32)
        dq2 = tl.zeros((BLOCK, FIRST), dtype=tl.float32)
        for first in tl.static_range(0, cells, KEYS):
            keys = first + tl.arange(0, KEYS)
            inside = keys < cells
            k1 = _vectors(start + d, keys, inside, 3 * d, FIRST)
            k2 = k1
            if ROTATE:
                k2 = _vectors(start + d + HALF, keys, inside, 3 * d, HALF)
                kcos, ksin = _angles(rotary, keys, inside, cells, HALF)
                kunit = _unit(k1, k2, 2 * HALF)[:, None]
                k1, k2 = (k1 * kcos - k2 * ksin) * kunit, (k1 * ksin + k2 * kcos) * kunit
            k1h, k2h = k1.to(dtype), k2.to(dtype)
            v = tl.load(
                start + 2 * d + keys[:, None] * 3 * d + column[None, :], mask=inside[:, None], other=0.0
            )
            scores = _scores(q1h, q2h, k1h, k2h, inside, FULL, ROTATE)
            weights = tl.exp2(scores * (scale * LOG2E) - log[:, None])
            dweights = tl.dot(g, tl.trans(v))
            dropped = weights
            if P > 0:
                factor = tl.where(
                    _kept_weights(seed, program, rows, first, LEAST, BLOCK, KEYS), 1.0 / (1.0 - P), 0.0
                )
                dropped, dweights = weights * factor, dweights * factor
            dv = tl.dot(tl.trans(dropped.to(dtype)), g)
            to = dqkv + offset + keys[:, None] * 3 * d
            tl.store(to + 2 * d + column[None, :], dv.to(dtype), mask=inside[:, None])
            ds = (weights * (dweights - along[:, None])).to(dtype)  # times scale, later
            dst = tl.trans(ds)
            dk1 = tl.dot(dst, q1h) * scale
            dq1 = tl.dot(ds, k1h, dq1)
            if ROTATE:
                dk2 = tl.dot(dst, q2h) * scale
                dq2 = tl.dot(ds, k2h, dq2)
                dk1, dk2 = _turn_back(dk1, dk2, k1, k2, kunit, kcos, ksin, 2 * HALF)
                tl.store(to + d + HALF + first_column[None, :], dk2.to(dtype), mask=inside[:, None])
            tl.store(to + d + first_column[None, :], dk1.to(dtype), mask=inside[:, None])
        dq1 *= scale
        to = dqkv + offset + rows[:, None] * 3 * d + first_column[None, :]
        if ROTATE:
            dq1, dq2 = _turn_back(dq1, dq2 * scale, q1, q2, unit, cos, sin, 2 * HALF)
            tl.store(to + HALF, dq2.to(dtype), mask=here[:, None])
        tl.store(to, dq1.to(dtype), mask=here[:, None])


def _launch(qkv: Tensor, heads: int, rotate: bool, dropout: float) -> dict[str, object]:
    cells, d = qkv.shape[1], qkv.shape[2] // 3
    block = max(32, triton.next_power_of_2(cells))
    return {
        "boards": qkv.shape[0],  # for the tuner: what suits a few boards does not suit thousands
        "cells": cells,
        "d": d,
        "scale": 1.0 / math.sqrt(d // heads),
        "HEADS": heads,
        "HALF": d // heads // 2,
        "FIRST": d // heads // (2 if rotate else 1),  # a head's vectors in halves where they are rotated
        "BLOCK": block,
        "FULL": block == cells,
        "ROTATE": rotate,
        "P": dropout,
        "LEAST": least_kept(dropout),
    }


def forward(
    qkv: Tensor, rotary: Tensor, seed: Tensor, heads: int, rotate: bool, dropout: float
) -> tuple[Tensor, Tensor]:
    """What came out, and what :func:`backward` needs to know of the weights."""
    qkv = qkv.contiguous()
    boards, cells, d = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    out = torch.empty(boards, cells, d, dtype=qkv.dtype, device=qkv.device)
    logs = torch.empty(boards, heads, cells, dtype=torch.float32, device=qkv.device)
    with LAUNCHING:
        _forward[_programs(qkv, heads)](
            qkv,
            rotary,
            rotary,
            seed,
            out,
            logs,
            SCALED=False,
            LEARNED=True,
            **_launch(qkv, heads, rotate, dropout),
        )
    return out, logs


def forward_normed(qkv: Tensor, unit: Tensor, rotary: Tensor, heads: int) -> Tensor:
    """With a factor for every row, and nothing to learn."""
    qkv = qkv.contiguous()
    out = torch.empty(qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3, dtype=qkv.dtype, device=qkv.device)
    with LAUNCHING:
        _forward[_programs(qkv, heads)](
            qkv,
            unit,
            rotary,
            rotary,
            out,
            rotary,
            SCALED=True,
            LEARNED=False,
            **_launch(qkv, heads, True, 0.0),
        )
    return out


def backward(
    grad: Tensor, qkv: Tensor, out: Tensor, logs: Tensor, rotary: Tensor, seed: Tensor,
    heads: int, rotate: bool, dropout: float,
) -> Tensor:  # fmt: skip
    grad, qkv = grad.contiguous(), qkv.contiguous()
    dqkv = torch.empty_like(qkv)
    with LAUNCHING:
        _backward[_programs(qkv, heads)](
            grad, qkv, out, logs, rotary, seed, dqkv, **_launch(qkv, heads, rotate, dropout)
        )
    return dqkv


@triton.autotune([triton.Config({}, num_warps=warps) for warps in (2, 4, 8)], key=["boards", "cells", "D"])
@triton.jit
def _mix(
    q, key, x, rotary, mixed, boards, cells: tl.constexpr, scale,
    D: tl.constexpr, HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One cell's query of every head against one board: what :func:`attention.mix_reference` gives.

    x is read twice, a head's width of columns at a time, the second time from the cache: as a whole it would fill the
    registers, and too few programs would run side by side.
    """
    board = tl.program_id(0).to(tl.int64)
    rows, half, columns = tl.arange(0, BLOCK), tl.arange(0, HALF), tl.arange(0, 2 * HALF)
    inside = rows < cells
    start = board * cells * D
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(HEADS):
        v = _vectors(x + start + part * 2 * HALF, rows, inside, D, 2 * HALF)
        squares += tl.sum(v * v, 1)
    unit = 1.0 / tl.sqrt(squares / D + 1e-6)
    cos, sin = _angles(rotary, rows, inside, cells, HALF)
    for head in tl.static_range(HEADS):
        k1 = _vectors(key + start + head * 2 * HALF, rows, inside, D, HALF) * unit[:, None]
        k2 = _vectors(key + start + head * 2 * HALF + HALF, rows, inside, D, HALF) * unit[:, None]
        at = q + (board * HEADS + head) * 2 * HALF + half
        q1, q2 = tl.load(at).to(tl.float32)[None, :], tl.load(at + HALF).to(tl.float32)[None, :]
        products = tl.sum((k1 * cos - k2 * sin) * q1 + (k1 * sin + k2 * cos) * q2, 1)
        scores = tl.where(inside, products * _unit(k1, k2, 2 * HALF) * scale, float("-inf"))
        powers = tl.exp(scores - tl.max(scores, 0))
        weights = powers * unit / tl.sum(powers, 0)
        for part in tl.static_range(HEADS):
            v = _vectors(x + start + part * 2 * HALF, rows, inside, D, 2 * HALF)
            to = mixed + (board * HEADS + head) * D + part * 2 * HALF + columns
            tl.store(to, tl.sum(v * weights[:, None], 0).to(mixed.dtype.element_ty))


def mix(q: Tensor, key: Tensor, x: Tensor, rotary: Tensor) -> Tensor:
    """q (boards, heads, 1, head width), key and x (boards, cells, d)."""
    q, key, x = q.contiguous(), key.contiguous(), x.contiguous()
    (boards, cells, d), heads = x.shape, q.shape[1]
    mixed = torch.empty(boards, heads, 1, d, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(cells)
    with LAUNCHING:
        _mix[(boards,)](
            q, key, x, rotary, mixed, boards, cells, 1.0 / math.sqrt(d // heads),
            D=d, HEADS=heads, HALF=d // heads // 2, BLOCK=block,
        )  # fmt: skip
    return mixed


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
    inside = rows[:, None] < M
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(x + rows[:, None] * K + k + inner[None, :], mask=inside, other=0.0)
        b = tl.load(w + columns[None, :] * K + k + inner[:, None])
        total = tl.dot(a, b, total)
    total = tl.maximum(total, 0.0) * tl.load(unit + rows, mask=rows < M, other=0.0)[:, None]
    tl.store(y + rows[:, None] * N + columns[None, :], (total * total).to(y.dtype.element_ty), mask=inside)


def _shape_blocks(named) -> None:
    """Tell the descriptors the block sizes the tuner is about to try."""
    named["x"].block_shape = [named["BM"], named["BK"]]
    named["w"].block_shape = [named["BN"], named["BK"]]
    named["y"].block_shape = [named["BM"], named["BN"] // 2]


@triton.autotune(
    configs=[
        triton.Config(
            {"BM": bm, "BN": bn, "BK": bk, "PER_SM": per_sm},
            num_warps=warps,
            num_stages=stages,
            pre_hook=_shape_blocks,
        )
        for bm, bn, bk, per_sm, warps, stages in (
            (128, 256, 64, 1, 8, 3), (128, 256, 64, 1, 8, 4), (128, 128, 64, 2, 4, 3), (128, 128, 64, 2, 8, 3),
            (128, 128, 64, 1, 8, 4), (128, 128, 128, 1, 8, 2), (256, 128, 64, 1, 8, 3),
        )
    ],
    key=["M", "N", "K"],
)  # fmt: skip
@triton.jit
def _relu_squared_tiles(
    x, unit, w, y, M, N: tl.constexpr, K: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PER_SM: tl.constexpr,
):  # fmt: skip
    """:func:`_relu_squared` for devices that copy whole tiles by themselves: each program takes tile after tile,
    and the next one's numbers are on their way while this one's are multiplied, squared and stored. Results leave in
    two halves, which take half the room on the way."""
    across: tl.constexpr = N // BN
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=True):
        row, column = (tile // across) * BM, (tile % across) * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(x.load([row, k]), w.load([column, k]).T, total)
        rows = row + tl.arange(0, BM)
        total = tl.maximum(total, 0.0) * tl.load(unit + rows, mask=rows < M, other=0.0)[:, None]
        left, right = tl.split(tl.permute(tl.reshape(total * total, (BM, 2, BN // 2)), (0, 2, 1)))
        y.store([row, column], left.to(y.dtype))
        y.store([row, column + BN // 2], right.to(y.dtype))


def _copies_tiles(device: torch.device) -> bool:
    """Whether the device, and Triton, can copy whole tiles of a matrix at once."""
    return TensorDescriptor is not None and torch.cuda.get_device_capability(device)[0] >= 9


def relu_squared(x: Tensor, unit: Tensor, weight: Tensor) -> Tensor:
    x, weight = x.contiguous(), weight.contiguous()
    (n, k), m = weight.shape, x.numel() // x.shape[-1]
    y = torch.empty((*x.shape[:-1], n), dtype=x.dtype, device=x.device)
    if x.is_cuda and _copies_tiles(x.device):
        relu_squared_by_tiles(x.view(m, k), unit, weight, y.view(m, n))
        return y
    with LAUNCHING:
        _relu_squared[lambda c: (triton.cdiv(m, c["BM"]) * (n // c["BN"]),)](x, unit, weight, y, m, n, k)
    return y


def relu_squared_by_tiles(x: Tensor, unit: Tensor, weight: Tensor, y: Tensor) -> None:
    """Into y."""
    (n, k), m = weight.shape, len(x)
    # In blocks of any size: the tuner shapes them.
    tensors = [TensorDescriptor.from_tensor(tensor, [32, 64]) for tensor in (x, weight, y)]

    def programs(c):
        return (min(processors(x.device) * c["PER_SM"], triton.cdiv(m, c["BM"]) * (n // c["BN"])),)

    with LAUNCHING:
        _relu_squared_tiles[programs](tensors[0], unit, tensors[1], tensors[2], m, n, k)
