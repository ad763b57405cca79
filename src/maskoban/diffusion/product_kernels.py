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
from maskoban.diffusion.kernels import LAUNCHING, kept, product
from maskoban.diffusion.row_kernels import gate, gelu_slope

#: Rows of a tile. Sums over rows are written tile by tile, so it is one number for all.
_ROWS = 128

_TILES = [
    triton.Config({"BN": columns, "BK": inner}, num_warps=warps, num_stages=stages, maxnreg=registers)
    for columns, inner, warps, stages, registers in (
        (128, 64, 8, 3, None), (128, 64, 8, 3, 128), (128, 64, 8, 4, 128), (128, 64, 4, 3, None), (64, 64, 4, 3, None),
        (64, 64, 4, 4, 128), (64, 128, 4, 2, 128), (64, 64, 8, 3, None),
    )
]  # fmt: skip

#: How far two ways of computing the same may lie apart, as a share of its size.
TOLERANCE = 2e-2

#: The way found fastest, by what it was timed for.
_chosen: dict[Hashable, int] = {}


@triton.jit
def _tile(N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The rows and columns of this program's tile; neighbours share rows, which the cache then serves."""
    program = tl.program_id(0)
    return (program // (N // BN)) * BM + tl.arange(0, BM), (program % (N // BN)) * BN + tl.arange(0, BN)


@triton.jit
def _factor(seed, rows, first, P: tl.constexpr, LEAST: tl.constexpr, N: tl.constexpr, BN: tl.constexpr):
    """What dropout multiplies a tile's numbers by."""
    starts = rows * N + first + tl.load(seed + 1).to(tl.int32)
    return tl.where(kept(seed, starts, LEAST, BN), 1.0 / (1.0 - P), 0.0)


@triton.autotune(_TILES, key=["M", "N", "K"])
@triton.jit
def _up(
    x, w, bias, seed, h, y, M, N: tl.constexpr, K: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A tile of h = x w^T, and of dropout(gelu(h + bias)), for w (N, K)."""
    rows, columns = _tile(N, BM, BN)
    inside = rows[:, None] < M
    total = product(x, w, rows, columns, inside, K, BM, BN, BK)
    at = rows[:, None] * N + columns[None, :]
    rounded = total.to(h.dtype.element_ty)  # GELU is that of the number stored, as it will be on the way back
    tl.store(h + at, rounded, mask=inside)
    v = rounded.to(tl.float32) + tl.load(bias + columns)[None, :]
    v *= gate(v) * _factor(seed, rows, (tl.program_id(0) % (N // BN)) * BN, P, LEAST, N, BN)
    tl.store(y + at, v.to(y.dtype.element_ty), mask=inside)


@triton.autotune(_TILES, key=["M", "N", "K"])
@triton.jit
def _down_back(
    grad, w, h, bias, seed, dh, sums, M, N: tl.constexpr, K: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A tile of the gradient of h, from that of dropout(gelu(h + bias)) w^T for w (K, N); and its sums over rows."""
    rows, columns = _tile(N, BM, BN)
    inner = tl.arange(0, BK)
    inside = rows[:, None] < M
    at = rows[:, None] * N + columns[None, :]
    v = tl.load(h + at, mask=inside, other=0.0)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(grad + rows[:, None] * K + k + inner[None, :], mask=inside, other=0.0)
        b = tl.load(w + (k + inner[:, None]) * N + columns[None, :])
        total = tl.dot(a, b, total)
    slope = gelu_slope(v.to(tl.float32) + tl.load(bias + columns)[None, :])
    total *= slope * _factor(seed, rows, (tl.program_id(0) % (N // BN)) * BN, P, LEAST, N, BN)
    rounded = total.to(dh.dtype.element_ty)
    tl.store(dh + at, rounded, mask=inside)
    # Sums over rows by the matrix units: sixteen equal ones, the least they take.
    ones = tl.full((16, BM), 1.0, dtype=rounded.dtype)
    tl.store(sums + tl.program_id(0) // (N // BN) * N + columns, tl.max(tl.dot(ones, rounded), 0))


def up(x: Tensor, weight: Tensor, bias: Tensor, seed: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """h and dropout(gelu(h + bias)), for rows x and a weight (hidden, d)."""
    (m, k), n = x.shape, len(weight)

    def together() -> tuple[Tensor, Tensor]:
        h, y = x.new_empty(m, n), x.new_empty(m, n)
        with LAUNCHING:
            _up[lambda c: (triton.cdiv(m, _ROWS) * (n // c["BN"]),)](
                x, weight, bias, seed, h, y, m, N=n, K=k, P=p, LEAST=least_kept(p), BM=_ROWS
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
        dh = torch.empty_like(h)
        sums = torch.empty(triton.cdiv(m, _ROWS), n, dtype=torch.float32, device=h.device)
        with LAUNCHING:
            _down_back[lambda c: (triton.cdiv(m, _ROWS) * (n // c["BN"]),)](
                grad, weight, h, bias, seed, dh, sums, m, N=n, K=k, P=p, LEAST=least_kept(p), BM=_ROWS
            )
        return dh, sums.sum(0)

    def apart() -> tuple[Tensor, Tensor]:
        return row_kernels.gelu_dropout_backward(grad @ weight, h, bias, seed, p)

    return _fastest(("down_back", m, n, k, p), grad, together, apart)


def _fastest(key: Hashable, x: Tensor, *ways: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """What all ways compute, by the one that takes the least time on x's device: found out the first time.

    One that differs from the last, which is the plainest, or fails, is not used.
    """
    if x.is_cuda and (key := (key, x.device, x.dtype)) not in _chosen:
        plain = ways[-1]()
        _chosen[key] = best_way([*(_tried(way, plain) for way in ways[:-1]), _milliseconds(ways[-1])])
    return ways[_chosen.get(key, 0)]()


def best_way(times: Sequence[float]) -> int:
    """The place of the shortest time, the last of equals; infinite for ways that cannot be used.

    >>> best_way([3.0, 2.0]), best_way([1.0, 2.0]), best_way([math.inf, math.inf])
    (1, 0, 1)
    """
    return max(range(len(times)), key=lambda way: (-times[way], way))


def _tried(way: Callable[[], tuple[Tensor, Tensor]], plain: tuple[Tensor, Tensor]) -> float:
    try:
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
