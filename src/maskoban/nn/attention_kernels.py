"""Triton kernels for attention over one board, for CUDA devices.

A program takes one board and head (one board where a single cell asks) and keeps everything in registers. Where it is
faster, a program takes one after the other and loads the next one's values meanwhile. Forward reads q, k, v once and
writes the mixed values once. Backward computes the weights again from one value a row that forward saved; at this size
that is cheaper than reading them back. Where rotary positions rotate (first, second) pairs, a head's vectors are held
as two halves.

Triton's tuner is not thread-safe and sampling uses two threads, so a lock allows one launch at a time.

Imported only where Triton is installed. ``attention.py`` has the formulas and the plain versions.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton functions have no types.
from __future__ import annotations

import math
import os
from threading import Lock

import torch
import triton
import triton.language as tl
from torch import Tensor

from maskoban.nn.dropout import least_kept

if os.environ.get("MASKOBAN_KERNELS") == "0":
    raise ImportError("fused kernels are switched off")

LAUNCHING = Lock()

LOG2E = tl.constexpr(1.4426950408889634)  # powers of two are what a device computes


def processors(device: torch.device) -> int:
    """How many programs run at the same time without sharing a processor."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@triton.jit
def _unit(first, second, WIDTH: tl.constexpr):
    """1 / rms of every row of (first, second)."""
    square = tl.sum(first * first, 1) + tl.sum(second * second, 1)
    return 1.0 / tl.sqrt(square / WIDTH + 1e-6)


@triton.jit
def _vectors(base, rows, inside, stride, WIDTH: tl.constexpr):
    """Some columns of one head's vectors, fp32; rows outside the board are zero."""
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
    """Which of N values a row dropout keeps, for rows that start at these indices: dropout.py's hash, to the bit."""
    once = tl.load(seed).to(tl.uint32) * 0x9E3779B1
    once = (once ^ (once >> 15)) * 0x85EBCA77
    columns = tl.arange(0, N).to(tl.uint32) * 0x9E3779B1
    h = (starts.to(tl.uint32) * 0x9E3779B1 + once)[:, None] + columns[None, :]
    h = (h ^ (h >> 15)) * 0x85EBCA77
    return h.to(tl.int32, bitcast=True) >= LEAST


@triton.jit
def _kept_weights(seed, program, rows, first, LEAST: tl.constexpr, BLOCK: tl.constexpr, KEYS: tl.constexpr):
    """Which weights of these rows dropout keeps, KEYS from the first; an index counts in BLOCK x BLOCK squares."""
    place = program + tl.load(seed + 1).to(tl.int32)
    return kept(seed, (place * BLOCK + rows) * BLOCK + first, LEAST, KEYS)


#: As many programs as there are boards and heads.
_ALL = 1 << 20


def _sizes(name: str, *sizes: tuple[int, int, int, int | None, int]) -> list[triton.Config]:
    """Configurations to try: rows or keys at a time, warps, boards loaded ahead, registers a thread, and programs a
    processor. A few programs that take board after board load the next one while they compute; with _ALL, every
    program has one board.
    """
    tried = []
    for size, warps, stages, registers, per_sm in sizes:
        named = {name: size, "STAGES": stages, "PER_SM": per_sm}
        tried.append(triton.Config(named, num_warps=warps, num_stages=stages, maxnreg=registers))
    return tried


def _fitting(configs, positional, **named):
    """Configurations with blocks no taller than a board, and none of 32 where a board has more cells."""
    sizes = [(c, c.kwargs.get("ROWS", c.kwargs.get("KEYS"))) for c in configs]
    return [c for c, size in sizes if min(64, named["BLOCK"]) <= size <= named["BLOCK"]]


def _programs(qkv: Tensor, heads: int):
    """The number of programs of a configuration."""
    return lambda c: (min(len(qkv) * heads, processors(qkv.device) * c["PER_SM"]),)


@triton.autotune(
    _sizes(
        "ROWS",
        (64, 4, 2, 128, 4), (64, 4, 2, None, 3), (64, 4, 3, 128, 2), (128, 8, 2, 128, 2), (128, 8, 2, None, 1),
        (32, 4, 2, None, 3), (64, 4, 1, None, _ALL), (64, 4, 1, 128, _ALL), (32, 4, 1, None, _ALL),
    ),
    key=["boards", "cells", "HALF", "P", "SCALED"],
    prune_configs_by={"early_config_prune": _fitting},
)  # fmt: skip
@triton.jit
def _forward(
    qkv, unit, rotary, seed, out, logs, boards, cells: tl.constexpr, d: tl.constexpr, scale,
    HEADS: tl.constexpr, HALF: tl.constexpr, FIRST: tl.constexpr, BLOCK: tl.constexpr, FULL: tl.constexpr,
    ROTATE: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr, SCALED: tl.constexpr, LEARNED: tl.constexpr,
    ROWS: tl.constexpr, STAGES: tl.constexpr, PER_SM: tl.constexpr,
):  # fmt: skip
    """``unit`` is a factor of every row of qkv, where rows are SCALED.

    ``logs`` is for the backward pass, where weights are LEARNED: of every row, the logarithm of the softmax's sum.
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
            # One multiplication a weight: a division for each would cost as much as all the rest. The factor is zero
            # for dropped weights: choosing between two results, the compiler would round both first.
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
        (64, 8, 2, 128, 2), (64, 8, 2, None, 1), (64, 4, 2, None, 2), (128, 8, 2, None, 1), (32, 4, 2, None, 2),
        (64, 8, 1, 128, _ALL), (64, 4, 1, None, _ALL), (32, 4, 1, 128, _ALL),
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
    """All rows against some keys at a time: the only sum held over a whole board is the queries' gradient."""
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
        # The output times its gradient is the sum over all weights of each times its gradient.
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
        "boards": qkv.shape[0],  # for the tuner: few boards and thousands need different configurations
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
    """The output, and what :func:`backward` needs of the softmax."""
    qkv = qkv.contiguous()
    boards, cells, d = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    out = torch.empty(boards, cells, d, dtype=qkv.dtype, device=qkv.device)
    logs = torch.empty(boards, heads, cells, dtype=torch.float32, device=qkv.device)
    with LAUNCHING:
        _forward[_programs(qkv, heads)](
            qkv, rotary, rotary, seed, out, logs, SCALED=False, LEARNED=True,
            **_launch(qkv, heads, rotate, dropout),
        )  # fmt: skip
    return out, logs


def forward_normed(qkv: Tensor, unit: Tensor, rotary: Tensor, heads: int) -> Tensor:
    """With a factor for every row, and no gradient."""
    qkv = qkv.contiguous()
    out = torch.empty(qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3, dtype=qkv.dtype, device=qkv.device)
    with LAUNCHING:
        _forward[_programs(qkv, heads)](
            qkv, unit, rotary, rotary, out, rotary, SCALED=True, LEARNED=False,
            **_launch(qkv, heads, True, 0.0),
        )  # fmt: skip
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
    """One cell's query of every head against one board: :func:`attention.mix_reference`.

    x is read twice, a head's width of columns at a time, the second time from the cache: whole, it would fill the
    registers, and too few programs would run at once.
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
