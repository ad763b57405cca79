"""Run with TRITON_INTERPRET=1: the fused kernels' relative errors against fp32 references, as JSON lines.

The interpreter has no device to tune on, so a kernel is taken out of its autotuner and given its block sizes.
"""

from __future__ import annotations

import json
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.diffusion import kernels
from maskoban.diffusion.attention import attend_reference, normalise_and_rotate, rotary_table
from maskoban.diffusion.dropout import dropout
from maskoban.diffusion.feedforward import row_units, squared_relu_linear


class Untuned:
    """A kernel with fixed block sizes in place of tuned ones."""

    def __init__(self, kernel: Any, **sizes: int) -> None:
        self.kernel, self.sizes = kernel, sizes

    def __getitem__(self, grid: Any) -> Any:
        shape = grid(self.sizes) if callable(grid) else grid
        return lambda *args, **named: self.kernel[shape](*args, **named, **self.sizes)


def kept(seed: int, places: range, cells: int, block: int, p: float) -> Tensor:
    """The factors of kernels._keep, (places, cells, cells), hashed in 64-bit integers."""
    at = torch.tensor(places)[:, None, None] * block * block
    at = at + torch.arange(cells)[:, None] * block + torch.arange(cells)
    h = (at ^ seed) * 0x9E3779B1 & 0xFFFFFFFF
    h = (h ^ (h >> 15)) * 0x85EBCA77 & 0xFFFFFFFF
    return (h.double() * 2.0**-32 >= p).float() / (1 - p)


def attend_with(factors: Tensor, qkv: Tensor, heads: int, rotary: Tensor | None) -> Tensor:
    """attend_reference with given dropout factors."""
    boards, cells, _ = qkv.shape
    q, k, v = qkv.view(boards, cells, 3, heads, -1).permute(2, 0, 3, 1, 4)
    q, k = normalise_and_rotate(q, rotary), normalise_and_rotate(k, rotary)
    weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
    mixed = (weights * factors.view(boards, heads, cells, cells)) @ v
    return mixed.transpose(1, 2).reshape(boards, cells, -1)


def error(mine: Tensor, reference: Tensor) -> float:
    return float((mine.float() - reference).norm() / reference.norm())


def main() -> None:
    torch.manual_seed(0)
    forward, backward = kernels._forward.fn, kernels._backward.fn
    for rows, height, width, heads, rotate, p, biased in (
        (32, 4, 5, 2, True, 0.0, False), (32, 6, 6, 1, False, 0.0, True), (32, 6, 6, 2, False, 0.25, True),
        (64, 5, 8, 1, True, 0.25, False),
    ):  # fmt: skip
        kernels._forward, kernels._backward = Untuned(forward, ROWS=rows), Untuned(backward, ROWS=rows)
        cells, d = height * width, heads * 32
        qkv = torch.randn(2, cells, 3 * d).half()
        grad = torch.randn(2, cells, d).half()
        seed = torch.tensor([12345, 7])
        rotary = rotary_table(height, width, 32) if rotate else None
        exact = qkv.float().requires_grad_()
        shift = torch.randn(3 * d, requires_grad=True)
        bias = shift.detach() if biased else None
        shifted = exact + shift if biased else exact
        if p:
            block = max(32, 2 ** math.ceil(math.log2(cells)))
            places = range(7, 7 + 2 * heads)
            expected = attend_with(kept(12345, places, cells, block, p), shifted, heads, rotary)
        else:
            expected = attend_reference(shifted, heads, rotary)
        learned = (exact, shift) if biased else (exact,)
        dexpected = torch.autograd.grad(expected, learned, grad.float())
        table = rotary if rotary is not None else torch.zeros(2, 1, 1)
        mine = kernels.forward(qkv, bias, table, seed, heads, rotate, p)
        dmine = kernels.backward(grad, qkv, bias, table, seed, heads, rotate, p)
        kind = f"attention {height}x{width} rotate {rotate} dropout {p} bias {biased}"
        print(json.dumps({"kernel": kind, "forward": error(mine, expected.detach()),
                          "backward": max(map(error, dmine[: len(learned)], dexpected))}))  # fmt: skip

    kernels._relu_squared = Untuned(kernels._relu_squared.fn, BM=32, BN=64, BK=32)
    x, weight = torch.randn(3, 15, 64).half(), torch.randn(128, 64).half()
    expected = squared_relu_linear(x.float(), weight.float())
    print(
        json.dumps(
            {
                "kernel": "squared relu",
                "forward": error(kernels.relu_squared(x, row_units(x), weight), expected),
            }
        )
    )

    h, grad = torch.randn(3, 15, 256).half(), torch.randn(3, 15, 256).half()
    seed = torch.tensor([777, 2**31 - 100])
    exact, bias = h.float().requires_grad_(), torch.randn(256, requires_grad=True)
    expected = dropout(F.gelu(exact + bias), 0.25, seed)
    dexpected = torch.autograd.grad(expected, (exact, bias), grad.float())
    dmine = kernels.gelu_dropout_backward(grad, h, bias.detach(), seed, 0.25)
    print(json.dumps({"kernel": "gelu and dropout",
                      "forward": error(kernels.gelu_dropout(h, bias.detach(), seed, 0.25), expected.detach()),
                      "backward": max(map(error, dmine, dexpected))}))  # fmt: skip


if __name__ == "__main__":
    main()
