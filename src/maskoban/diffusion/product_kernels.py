"""Kernels for CUDA devices, in Triton: products of the paper's feed-forward layer, with GELU and dropout in them.

When a product ends, its numbers are in registers. What a pass of its own would read, change and write again is changed
there. Whether that is faster than the pass depends on the device: both are timed, once, and the faster is used.

Imported only where Triton is; ``paper_layers.py`` holds the formulas and the plain versions.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton functions are not typed, and cannot be.
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from maskoban.diffusion import row_kernels
from maskoban.diffusion.dropout import least_kept
from maskoban.diffusion.kernels import (
    LAUNCHING,
    by_tiles,
    copies_tiles,
    halves,
    kept,
    processors,
    tile_of_product,
)
from maskoban.diffusion.row_kernels import gate, gelu_slope

#: Rows of a tile. Sums over rows are written tile by tile, so it is one number for all.
_ROWS = 128

#: How far two ways of computing the same may lie apart, as a share of its size.
TOLERANCE = 2e-2

#: Milliseconds that each way takes, by what was timed.
timed: dict[Hashable, list[float]] = {}


def _tiles(shapes: Callable[[int, int], dict[str, list[int]]]) -> list[triton.Config]:
    """Sizes to try. ``shapes`` are the blocks of tensors that are copied by tiles, by BN and BK."""

    def tell(named) -> None:
        for name, shape in shapes(named["BN"], named["BK"]).items():
            named[name].block_shape = shape

    return [
        triton.Config(
            {"BN": bn, "BK": bk, "PER_SM": per_sm}, num_warps=warps, num_stages=stages, maxnreg=registers, pre_hook=tell
        )
        for bn, bk, per_sm, warps, stages, registers in (
            (256, 64, 1, 8, 3, None), (128, 64, 1, 8, 4, None), (128, 64, 2, 8, 2, 128), (128, 64, 2, 4, 2, None),
            (128, 128, 1, 8, 2, None), (64, 64, 2, 4, 3, None), (64, 128, 2, 4, 2, None), (64, 64, 3, 4, 2, None),
        )
    ]  # fmt: skip


def _dividing(configs, positional, **named):
    """Tiles of which a row has a whole number."""
    return [c for c in configs if named["N"] % c.kwargs["BN"] == 0]


@triton.jit
def _factor(seed, rows, first, P: tl.constexpr, LEAST: tl.constexpr, N: tl.constexpr, BN: tl.constexpr):
    """What dropout multiplies a tile's numbers by."""
    starts = rows * N + first + tl.load(seed + 1).to(tl.int32)
    return tl.where(kept(seed, starts, LEAST, BN), 1.0 / (1.0 - P), 0.0)


@triton.jit
def _finish_up(
    total, bias, seed, h, y, row, column, P: tl.constexpr, LEAST: tl.constexpr, N: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    h.store([row, column], total.to(h.dtype))  # GELU is of the sum before it is rounded: one conversion less
    v = total + tl.load(bias + column + tl.arange(0, BN))[None, :]
    v *= gate(v) * _factor(seed, row + tl.arange(0, BM), column, P, LEAST, N, BN)
    y.store([row, column], v.to(y.dtype))


@triton.autotune(
    _tiles(lambda bn, bk: {"x": [_ROWS, bk], "w": [bn, bk], "h": [_ROWS, bn // 2], "y": [_ROWS, bn // 2]}),
    key=["M", "N", "K"],
    prune_configs_by={"early_config_prune": _dividing},
)
@triton.jit
def _up(
    x, w, bias, seed, h, y, M, N: tl.constexpr, K: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PER_SM: tl.constexpr,
):  # fmt: skip
    """h = x w^T, and dropout(gelu(h + bias)), for w (N, K). A program takes tile after tile."""
    across: tl.constexpr = N // BN
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=True):
        row, column = (tile // across) * BM, (tile % across) * BN
        total = tile_of_product(x, w, row, column, K, BM, BN, BK)
        left, right = halves(total, BM, BN)
        _finish_up(left, bias, seed, h, y, row, column, P, LEAST, N, BM, BN // 2)
        _finish_up(right, bias, seed, h, y, row, column + BN // 2, P, LEAST, N, BM, BN // 2)


@triton.jit
def _finish_down_back(
    total, h, bias, seed, dh, sums, row, column, P: tl.constexpr, LEAST: tl.constexpr, N: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    columns = column + tl.arange(0, BN)
    slope = gelu_slope(h.load([row, column]).to(tl.float32) + tl.load(bias + columns)[None, :])
    total *= slope * _factor(seed, row + tl.arange(0, BM), column, P, LEAST, N, BN)
    rounded = total.to(dh.dtype)
    dh.store([row, column], rounded)
    # Sums over rows by the matrix units: sixteen equal ones, the least they take.
    ones = tl.full((16, BM), 1.0, dtype=rounded.dtype)
    tl.store(sums + row // BM * N + columns, tl.max(tl.dot(ones, rounded), 0))


@triton.autotune(
    _tiles(
        lambda bn, bk: {"grad": [_ROWS, bk], "w": [bk, bn], "h": [_ROWS, bn // 2], "dh": [_ROWS, bn // 2]}
    ),
    key=["M", "N", "K"],
    prune_configs_by={"early_config_prune": _dividing},
)
@triton.jit
def _down_back(
    grad, w, h, bias, seed, dh, sums, M, N: tl.constexpr, K: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PER_SM: tl.constexpr,
):  # fmt: skip
    """The gradient of h, from that of dropout(gelu(h + bias)) w^T for w (K, N); and its sums over a tile's rows.

    What is beyond the last row is read as zero, and so is its gradient.
    """
    across: tl.constexpr = N // BN
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=True):
        row, column = (tile // across) * BM, (tile % across) * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(grad.load([row, k]), w.load([k, column]), total)
        left, right = halves(total, BM, BN)
        _finish_down_back(left, h, bias, seed, dh, sums, row, column, P, LEAST, N, BM, BN // 2)
        _finish_down_back(right, h, bias, seed, dh, sums, row, column + BN // 2, P, LEAST, N, BM, BN // 2)


def _programs(m: int, n: int, device: torch.device):
    """How many programs there are for a configuration: no more than run side by side, each with several tiles."""
    return lambda c: (min(processors(device) * c["PER_SM"], triton.cdiv(m, _ROWS) * (n // c["BN"])),)


def up(x: Tensor, weight: Tensor, bias: Tensor, seed: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """h and dropout(gelu(h + bias)), for rows x and a weight (hidden, d)."""
    (m, k), n = x.shape, len(weight)

    def together() -> tuple[Tensor, Tensor]:
        h, y = x.new_empty(m, n), x.new_empty(m, n)
        tiled = by_tiles(x, weight, h, y)
        with LAUNCHING:
            _up[_programs(m, n, x.device)](
                *tiled[:2], bias, seed, *tiled[2:], m, N=n, K=k, P=p, LEAST=least_kept(p), BM=_ROWS
            )
        return h, y

    def apart() -> tuple[Tensor, Tensor]:
        h = x @ weight.T
        return h, row_kernels.gelu_dropout(h, bias, seed, p)

    return _fastest(("up", m, n, k, p), x, together, apart)


def down_back(
    grad: Tensor, weight: Tensor, h: Tensor, bias: Tensor, seed: Tensor, p: float
) -> tuple[Tensor, Tensor]:
    """The gradients of h and of the bias, for a weight (d, hidden)."""
    (m, k), n = grad.shape, weight.shape[1]

    def together() -> tuple[Tensor, Tensor]:
        dh = h.new_empty(h.shape)
        sums = torch.empty(triton.cdiv(m, _ROWS), n, dtype=torch.float32, device=h.device)
        tiled = by_tiles(grad, weight, h, dh)
        with LAUNCHING:
            _down_back[_programs(m, n, h.device)](
                *tiled[:3], bias, seed, tiled[3], sums, m, N=n, K=k, P=p, LEAST=least_kept(p), BM=_ROWS
            )
        return dh, sums.sum(0)

    def apart() -> tuple[Tensor, Tensor]:
        return row_kernels.gelu_dropout_backward(grad @ weight, h, bias, seed, p)

    return _fastest(("down_back", m, n, k, p), grad, together, apart)


def _fastest(key: Hashable, x: Tensor, *ways: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """What all ways compute, by the one that takes the least time on x's device: found out the first time.

    One that differs from the last, which is the plainest, or fails, is not used.
    """
    if x.is_cuda and (key := (key, x.device, x.dtype)) not in timed:
        plain, able = ways[-1](), copies_tiles(x.device)
        fused = [_tried(way, plain) if able else math.inf for way in ways[:-1]]
        timed[key] = [*fused, _milliseconds(ways[-1])]
    return ways[best_way(timed.get(key, [0.0]))]()


def best_way(times: Sequence[float]) -> int:
    """The place of the shortest time, the last of equals; infinite for ways that cannot be used.

    >>> best_way([3.0, 2.0]), best_way([1.0, 2.0]), best_way([math.inf, math.inf])
    (1, 0, 1)
    """
    return max(range(len(times)), key=lambda way: (-times[way], way))


def _tried(way: Callable[[], tuple[Tensor, Tensor]], plain: tuple[Tensor, Tensor]) -> float:
    try:
        way()  # tunes; what is compared is written by the way that was chosen
        return _milliseconds(way) if agree(way(), plain) else math.inf
    except Exception as error:  # of a compiler, above all
        warnings.warn(f"a fused product is not used: {error}", stacklevel=2)
        return math.inf


def agree(some: Iterable[Tensor], others: Iterable[Tensor]) -> bool:
    """Whether results are the same but for rounding.

    >>> agree([torch.ones(3)], [1.01 * torch.ones(3)]), agree([torch.ones(3)], [torch.tensor([1, 1, math.nan])])
    (True, False)
    """
    pairs = zip(some, others, strict=True)
    return all(float((a.float() - b.float()).norm() / b.float().norm()) < TOLERANCE for a, b in pairs)


def _milliseconds(way: Callable[[], object]) -> float:
    """The median of some calls, after one that tunes."""
    way()
    times: list[float] = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        way()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[2]
