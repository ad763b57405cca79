"""Triton kernels for the layers beside attention, for CUDA devices.

Each reads and writes every value once. The paper's layers take whole rows; in their backward passes a program takes
many rows, block after block, and keeps the sums over rows (the gradients of biases, gains and shifts) in registers
until its end: a pass of their own would read everything again.

Imported only where Triton is installed. ``layers.py`` has the formulas and the plain versions.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton functions have no types.
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from maskoban.nn.attention_kernels import LAUNCHING, kept, processors
from maskoban.nn.dropout import least_kept

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:  # before Triton 3.4
    TensorDescriptor = None

#: Programs a processor where each takes many rows. All of them, or half of them, must fit at once: with four warps
#: each, programs may have 64 registers or 128.
_PROGRAMS = 8


def _forward(*sizes: tuple[int, int]) -> list[triton.Config]:
    return [triton.Config({"ROWS": rows}, num_warps=warps) for rows, warps in sizes]


def _backward(*sizes: tuple[int, int, int, int]) -> list[triton.Config]:
    """STAGES: how many blocks of rows are loaded ahead."""
    return [
        triton.Config({"ROWS": rows, "STAGES": stages}, num_warps=warps, maxnreg=registers)
        for rows, warps, stages, registers in sizes
    ]


@triton.jit
def _dropped(v, seed, row, P: tl.constexpr, LEAST: tl.constexpr, N: tl.constexpr):
    """Dropout of these whole rows, by a factor, as in attention."""
    if P > 0:
        v *= tl.where(kept(seed, row * N + tl.load(seed + 1).to(tl.int32), LEAST, N), 1.0 / (1.0 - P), 0.0)
    return v


@triton.jit
def _whitened(x, N: tl.constexpr):
    """Rows less their mean over their deviation, and one over the deviation."""
    x = x - (tl.sum(x, 1) / N)[:, None]
    unit = 1.0 / tl.sqrt(tl.sum(x * x, 1) / N + 1e-5)
    return x * unit[:, None], unit


@triton.autotune(_forward((4, 4), (8, 4), (8, 8)), key=["rows", "N"])
@triton.jit
def _add_norm(
    x, y, bias, gain, shift, seed, out, normed, rows,
    N: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, N)
    at = row[:, None] * N + column[None, :]
    inside = row[:, None] < rows
    v = tl.load(y + at, mask=inside, other=0.0).to(tl.float32) + tl.load(bias + column)[None, :]
    total = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) + _dropped(v, seed, row, P, LEAST, N)
    total = total.to(out.dtype.element_ty)
    tl.store(out + at, total, mask=inside)
    white, _ = _whitened(total.to(tl.float32), N)
    white = white * tl.load(gain + column)[None, :] + tl.load(shift + column)[None, :]
    tl.store(normed + at, white.to(normed.dtype.element_ty), mask=inside)


@triton.autotune(
    _backward((4, 4, 1, 64), (4, 4, 3, 64), (8, 4, 1, 128), (8, 4, 3, 128), (8, 8, 1, 64), (8, 8, 3, 64)),
    key=["rows", "N"],
)
@triton.jit
def _add_norm_backward(
    dout, dnormed, out, gain, seed, dx, dy, sums, rows,
    N: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, N)
    g = tl.load(gain + column)[None, :]
    dgain = tl.zeros((ROWS, N), dtype=tl.float32)
    dshift = tl.zeros((ROWS, N), dtype=tl.float32)
    dbias = tl.zeros((ROWS, N), dtype=tl.float32)
    for block in tl.range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0), num_stages=STAGES):
        row = block * ROWS + tl.arange(0, ROWS)
        at = row[:, None] * N + column[None, :]
        inside = row[:, None] < rows
        white, unit = _whitened(tl.load(out + at, mask=inside, other=0.0).to(tl.float32), N)
        d = tl.load(dnormed + at, mask=inside, other=0.0).to(tl.float32)
        dgain += d * white
        dshift += d
        d *= g
        along = tl.sum(d * white, 1) / N
        d = (d - (tl.sum(d, 1) / N)[:, None] - white * along[:, None]) * unit[:, None]
        d += tl.load(dout + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(dx + at, d.to(dx.dtype.element_ty), mask=inside)
        d = _dropped(d, seed, row, P, LEAST, N)
        tl.store(dy + at, d.to(dy.dtype.element_ty), mask=inside)
        dbias += d
    to = sums + tl.program_id(0) * 3 * N + column
    tl.store(to, tl.sum(dgain, 0))
    tl.store(to + N, tl.sum(dshift, 0))
    tl.store(to + 2 * N, tl.sum(dbias, 0))


def _programs(x: Tensor) -> int:
    return processors(x.device) * _PROGRAMS


def add_norm(
    x: Tensor, y: Tensor, bias: Tensor, gain: Tensor, shift: Tensor, seed: Tensor, p: float
) -> tuple[Tensor, Tensor]:
    x, y, n = x.contiguous(), y.contiguous(), x.shape[-1]
    out, normed, rows = torch.empty_like(x), torch.empty_like(x), x.numel() // n
    with LAUNCHING:
        _add_norm[lambda c: (triton.cdiv(rows, c["ROWS"]),)](
            x, y, bias, gain, shift, seed, out, normed, rows, N=n, P=p, LEAST=least_kept(p)
        )
    return out, normed


def add_norm_backward(
    dout: Tensor, dnormed: Tensor, out: Tensor, gain: Tensor, seed: Tensor, p: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x and y, and those of gain, shift and bias as three rows."""
    dout, dnormed, n = dout.contiguous(), dnormed.contiguous(), out.shape[-1]
    dx, dy, rows = torch.empty_like(out), torch.empty_like(out), out.numel() // n
    sums = torch.empty(_programs(out), 3, n, dtype=torch.float32, device=out.device)
    with LAUNCHING:
        _add_norm_backward[(len(sums),)](
            dout, dnormed, out, gain, seed, dx, dy, sums, rows, N=n, P=p, LEAST=least_kept(p)
        )
    return dx, dy, sums.sum(0)


@triton.jit
def gate(v):
    """gelu(v) = v gate(v) in its tanh form; (1 + tanh(u)) / 2 is the logistic function of 2u.

    1 / x is rsqrt(x)^2: a division takes several instructions, rsqrt one.
    """
    # The constants are -2 log2(e) sqrt(2/pi) (1, 0.044715).
    root = tl.rsqrt(1.0 + tl.exp2(v * (-2.302208198 - 0.1029432397 * v * v)))
    return root * root


@triton.jit
def gelu_slope(v):
    """The derivative of gelu(v)."""
    g = gate(v)
    return g + g * (1.0 - g) * v * (1.5957691216 + 0.2140644488 * v * v)


@triton.autotune(_forward((1, 4), (2, 4), (2, 8), (4, 8)), key=["rows", "N"])
@triton.jit
def _gelu_dropout(
    h, bias, seed, y, rows, N: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr, ROWS: tl.constexpr
):
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, N)
    at = row[:, None] * N + column[None, :]
    inside = row[:, None] < rows
    v = tl.load(h + at, mask=inside, other=0.0).to(tl.float32) + tl.load(bias + column)[None, :]
    tl.store(y + at, _dropped(v * gate(v), seed, row, P, LEAST, N).to(y.dtype.element_ty), mask=inside)


@triton.autotune(
    _backward((1, 4, 1, 64), (1, 4, 3, 64), (2, 4, 1, 64), (2, 4, 3, 64), (4, 8, 1, 64), (4, 8, 3, 64)),
    key=["rows", "N"],
)
@triton.jit
def _gelu_dropout_backward(
    grad, h, bias, seed, dh, sums, rows,
    N: tl.constexpr, P: tl.constexpr, LEAST: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, N)
    b = tl.load(bias + column)[None, :]
    dbias = tl.zeros((ROWS, N), dtype=tl.float32)
    for block in tl.range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0), num_stages=STAGES):
        row = block * ROWS + tl.arange(0, ROWS)
        at = row[:, None] * N + column[None, :]
        inside = row[:, None] < rows
        v = tl.load(h + at, mask=inside, other=0.0).to(tl.float32) + b
        g = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
        g = _dropped(g * gelu_slope(v), seed, row, P, LEAST, N)
        tl.store(dh + at, g.to(dh.dtype.element_ty), mask=inside)
        dbias += g
    tl.store(sums + tl.program_id(0) * N + column, tl.sum(dbias, 0))


def gelu_dropout(h: Tensor, bias: Tensor, seed: Tensor, p: float) -> Tensor:
    h, n = h.contiguous(), h.shape[-1]
    y, rows = torch.empty_like(h), h.numel() // n
    with LAUNCHING:
        _gelu_dropout[lambda c: (triton.cdiv(rows, c["ROWS"]),)](
            h, bias, seed, y, rows, N=n, P=p, LEAST=least_kept(p)
        )
    return y


def gelu_dropout_backward(
    grad: Tensor, h: Tensor, bias: Tensor, seed: Tensor, p: float
) -> tuple[Tensor, Tensor]:
    """The gradients of h and of the bias."""
    grad, h, n = grad.contiguous(), h.contiguous(), h.shape[-1]
    dh, rows = torch.empty_like(h), h.numel() // n
    sums = torch.empty(_programs(h), n, dtype=torch.float32, device=h.device)
    with LAUNCHING:
        _gelu_dropout_backward[(len(sums),)](
            grad, h, bias, seed, dh, sums, rows, N=n, P=p, LEAST=least_kept(p)
        )
    return dh, sums.sum(0)


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

    (Computed here from the tiles of x as they pass, it was wrong on an H200 under Triton 3.6: results 10 % off.)
    """
    program = tl.program_id(0)  # neighbours share rows of x, which then come from the cache
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
    """Give the descriptors the block sizes of the configuration that the tuner tries."""
    named["x"].block_shape = [named["BM"], named["BK"]]
    named["w"].block_shape = [named["BN"], named["BK"]]
    named["y"].block_shape = [named["BM"], named["BN"] // 2]


@triton.autotune(
    configs=[
        triton.Config({"BM": bm, "BN": bn, "BK": bk, "PER_SM": per_sm}, num_warps=warps, num_stages=stages,
                      pre_hook=_shape_blocks)
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
    """:func:`_relu_squared` for devices that copy whole tiles asynchronously: each program takes tile after tile and
    loads the next while it multiplies, squares and stores this one. Results are stored in two halves, which need half
    the shared memory."""
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
    """Whether the device and Triton can copy whole tiles of a matrix at once."""
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
    """The same into y, for devices that copy whole tiles."""
    (n, k), m = weight.shape, len(x)
    # The tuner sets the block sizes.
    tensors = [TensorDescriptor.from_tensor(tensor, [32, 64]) for tensor in (x, weight, y)]

    def programs(c):
        return (min(processors(x.device) * c["PER_SM"], triton.cdiv(m, c["BM"]) * (n // c["BN"])),)

    with LAUNCHING:
        _relu_squared_tiles[programs](tensors[0], unit, tensors[1], tensors[2], m, n, k)
