"""Run with TRITON_INTERPRET=1: the fused kernels' relative errors against fp32 references, as JSON lines.

The interpreter has no device to tune on, so a kernel is taken out of its autotuner and given its block sizes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.diffusion import kernels
from maskoban.diffusion.attention import attend_reference, mix_reference, normalise_and_rotate, rotary_table
from maskoban.diffusion.dropout import dropout
from maskoban.diffusion.feedforward import rms_norm, row_units, squared_relu_linear


class Untuned:
    """A kernel with fixed block sizes in place of tuned ones."""

    def __init__(self, kernel: Any, **sizes: int) -> None:
        self.kernel, self.sizes = kernel, sizes
        self.prepare: Callable[[dict[str, Any]], None] | None = None  # what the tuner calls before a kernel

    def __getitem__(self, grid: Any) -> Any:
        shape = grid(self.sizes) if callable(grid) else grid

        def launch(*args: Any, **named: Any) -> None:
            if self.prepare is not None:
                self.prepare(dict(zip(self.kernel.arg_names, args, strict=False)) | named | self.sizes)
            self.kernel[shape](*args, **named, **self.sizes)

        return launch


def error(mine: Tensor, reference: Tensor) -> float:
    return float((mine.float() - reference).norm() / reference.norm())


def main() -> None:
    torch.manual_seed(0)
    forward, backward = kernels._forward.fn, kernels._backward.fn
    for rows, height, width, heads, rotate, p in (
        (32, 4, 5, 2, True, 0.0), (32, 4, 8, 1, False, 0.0), (32, 6, 6, 2, False, 0.25), (64, 8, 8, 1, True, 0.25),
    ):  # fmt: skip
        kernels._forward, kernels._backward = Untuned(forward, ROWS=rows), Untuned(backward, ROWS=rows)
        cells, d = height * width, heads * 32
        qkv = torch.randn(2, cells, 3 * d).half()
        grad = torch.randn(2, cells, d).half()
        seed = torch.tensor([12345, 7])
        rotary = rotary_table(height, width, 32) if rotate else None
        exact = qkv.float().requires_grad_()
        expected = attend_reference(exact, heads, rotary, p, seed)
        (dexpected,) = torch.autograd.grad(expected, exact, grad.float())
        table = rotary if rotary is not None else torch.zeros(2, 1, 1)
        mine = kernels.forward(qkv, table, seed, heads, rotate, p)
        dmine = kernels.backward(grad, qkv, table, seed, heads, rotate, p)
        kind = f"attention {height}x{width} rotate {rotate} dropout {p}"
        print(json.dumps({"kernel": kind, "forward": error(mine, expected.detach()),
                          "backward": error(dmine, dexpected)}))  # fmt: skip

    kernels._forward, kernels._mix = Untuned(forward, ROWS=32), Untuned(kernels._mix.fn)
    rotary = rotary_table(4, 5, 32)
    x, weight = 3 * torch.randn(2, 20, 64).half(), torch.randn(192, 64).half()
    plain = rms_norm(x.float()) @ weight.float().T
    product, none = (x.float() @ weight.float().T).half(), torch.zeros(2, dtype=torch.int64)
    mine = kernels.forward(product, rotary, none, 2, True, 0.0, row_units(x))
    print(json.dumps({"kernel": "attention of normalised rows",
                      "forward": error(mine, attend_reference(plain, 2, rotary))}))  # fmt: skip
    q = normalise_and_rotate(torch.randn(2, 2, 1, 32), rotary[:, 7:8]).half()
    expected = mix_reference(q.float(), product[..., :64].float(), x.float(), rotary)
    mine = kernels.mix(q, product[..., :64], x, rotary)
    print(json.dumps({"kernel": "attention of one cell", "forward": error(mine, expected)}))

    kernels._relu_squared = Untuned(kernels._relu_squared.fn, BM=32, BN=64, BK=32)
    tiles = Untuned(kernels._relu_squared_tiles.fn, BM=32, BN=64, BK=64, PER_SM=2)
    tiles.prepare = kernels._shape_blocks
    kernels._relu_squared_tiles = tiles
    x, weight = torch.randn(3, 15, 64).half(), torch.randn(128, 64).half()
    expected = squared_relu_linear(x.float(), weight.float())
    mine, by_tiles = kernels.relu_squared(x, row_units(x), weight), torch.empty(45, 128).half()
    kernels.relu_squared_by_tiles(x.view(45, 64), row_units(x), weight, by_tiles)
    print(json.dumps({"kernel": "squared relu", "forward": error(mine, expected)}))
    print(
        json.dumps(
            {"kernel": "squared relu, by tiles", "forward": error(by_tiles.view(mine.shape), expected)}
        )
    )

    for name in ("_gelu_dropout", "_gelu_dropout_backward"):
        setattr(kernels, name, Untuned(getattr(kernels, name).fn, SIZE=1024))
    h, grad = 2 * torch.randn(3, 15, 256).half(), torch.randn(3, 15, 256).half()
    seed = torch.tensor([777, 2**31 - 100])
    exact = h.float().requires_grad_()
    expected = dropout(F.gelu(exact, approximate="tanh"), 0.25, seed)
    (dexpected,) = torch.autograd.grad(expected, exact, grad.float())
    print(json.dumps({"kernel": "gelu and dropout",
                      "forward": error(kernels.gelu_dropout(h, seed, 0.25), expected.detach()),
                      "backward": error(kernels.gelu_dropout_backward(grad, h, seed, 0.25), dexpected)}))  # fmt: skip


if __name__ == "__main__":
    main()
