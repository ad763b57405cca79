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

from maskoban.nn import attention, layer_kernels, layers
from maskoban.nn import attention_kernels as kernels
from maskoban.nn.attention import attend_reference, mix_reference, normalise_and_rotate, rotary_table
from maskoban.nn.dropout import dropout
from maskoban.nn.layers import add_dropped, layer_norm, rms_norm, row_units, squared_relu_linear
from maskoban.nn.networks import PaperNetwork
from maskoban.training.compiling import check_gradients, compiled


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


def taken(kernel: Any, **sizes: int) -> Untuned:
    """Of attention: three programs, which take board after board."""
    return Untuned(kernel, STAGES=2, PER_SM=3, **sizes)


def error(mine: Tensor, reference: Tensor) -> float:
    return float((mine.float() - reference).norm() / reference.norm())


def main() -> None:
    torch.manual_seed(0)
    forward, backward = kernels._forward.fn, kernels._backward.fn
    for rows, keys, height, width, heads, rotate, p in (
        (32, 32, 4, 5, 2, True, 0.0), (32, 16, 4, 8, 1, False, 0.0), (32, 16, 6, 6, 2, False, 0.25),
        (64, 32, 8, 8, 1, True, 0.25), (16, 64, 9, 9, 1, False, 0.25),
    ):  # fmt: skip
        kernels._forward, kernels._backward = taken(forward, ROWS=rows), taken(backward, KEYS=keys)
        cells, d = height * width, heads * 32
        qkv = torch.randn(2, cells, 3 * d).half()
        grad = torch.randn(2, cells, d).half()
        seed = torch.tensor([12345, 7])
        rotary = rotary_table(height, width, 32) if rotate else None
        exact = qkv.float().requires_grad_()
        expected = attend_reference(exact, heads, rotary, p, seed)
        (dexpected,) = torch.autograd.grad(expected, exact, grad.float())
        table = rotary if rotary is not None else torch.zeros(2, 1, 1)
        mine_in = qkv.clone().requires_grad_()
        mine = attention._fused(mine_in, table, seed, heads, rotate, p)[0]
        (dmine,) = torch.autograd.grad(mine, mine_in, grad)
        kind = f"attention {height}x{width} rotate {rotate} dropout {p}"
        print(json.dumps({"kernel": kind, "forward": error(mine.detach(), expected.detach()),
                          "backward": error(dmine, dexpected)}))  # fmt: skip

    kernels._forward, kernels._mix = taken(forward, ROWS=32), Untuned(kernels._mix.fn)
    rotary = rotary_table(4, 5, 32)
    x, weight = 3 * torch.randn(2, 20, 64).half(), torch.randn(192, 64).half()
    plain = rms_norm(x.float()) @ weight.float().T
    product = (x.float() @ weight.float().T).half()
    mine = kernels.forward_normed(product, row_units(x), rotary, 2)
    print(json.dumps({"kernel": "attention of normalised rows",
                      "forward": error(mine, attend_reference(plain, 2, rotary))}))  # fmt: skip
    q = normalise_and_rotate(torch.randn(2, 2, 1, 32), rotary[:, 7:8]).half()
    expected = mix_reference(q.float(), product[..., :64].float(), x.float(), rotary)
    mine = kernels.mix(q, product[..., :64], x, rotary)
    print(json.dumps({"kernel": "attention of one cell", "forward": error(mine, expected)}))

    layer_kernels._relu_squared = Untuned(layer_kernels._relu_squared.fn, BM=32, BN=64, BK=32)
    tiles = Untuned(layer_kernels._relu_squared_tiles.fn, BM=32, BN=64, BK=64, PER_SM=2)
    tiles.prepare = layer_kernels._shape_blocks
    layer_kernels._relu_squared_tiles = tiles
    x, weight = torch.randn(3, 15, 64).half(), torch.randn(128, 64).half()
    expected = squared_relu_linear(x.float(), weight.float())
    mine, by_tiles = layer_kernels.relu_squared(x, row_units(x), weight), torch.empty(45, 128).half()
    layer_kernels.relu_squared_by_tiles(x.view(45, 64), row_units(x), weight, by_tiles)
    print(json.dumps({"kernel": "squared relu", "forward": error(mine, expected)}))
    print(
        json.dumps(
            {"kernel": "squared relu, by tiles", "forward": error(by_tiles.view(mine.shape), expected)}
        )
    )

    for name in ("_add_norm", "_gelu_dropout"):
        setattr(layer_kernels, name, Untuned(getattr(layer_kernels, name).fn, ROWS=4))
    for name in ("_add_norm_backward", "_gelu_dropout_backward"):
        setattr(layer_kernels, name, Untuned(getattr(layer_kernels, name).fn, ROWS=4, STAGES=2))
    seed = torch.tensor([777, 2**31 - 100])
    x, y, dx, dy = (2 * torch.randn(3, 15, 64).half() for _ in range(4))
    bias, gain, shift = (torch.randn(64, requires_grad=True) for _ in range(3))
    leaves = [x.float().requires_grad_(), y.float().requires_grad_(), bias, gain, shift]
    kinds = [torch.float16, torch.float16, torch.float32, torch.float32, torch.float32]
    total = add_dropped(leaves[0], leaves[1], bias, 0.25, seed)
    # What is normalised is what was stored, in half precision.
    expected = total, layer_norm(total + (total.half().float() - total).detach(), gain, shift)
    gradients = torch.autograd.grad(expected, leaves, (dx.float(), dy.float()))
    mine = [each.detach().to(kind).requires_grad_() for each, kind in zip(leaves, kinds, strict=True)]
    out, normed = layers._add_norm(*mine, seed, 0.25)
    pairs = zip(torch.autograd.grad((out, normed), mine, (dx, dy)), gradients, strict=True)
    print(json.dumps({"kernel": "sum, dropout and norm",
                      "forward": max(error(out.detach(), expected[0].detach()),
                                     error(normed.detach(), expected[1].detach())),
                      "backward": max(error(*pair) for pair in pairs)}))  # fmt: skip

    h, grad = 2 * torch.randn(3, 15, 256).half(), torch.randn(3, 15, 256).half()
    bias = torch.randn(256, requires_grad=True)
    exact = h.float().requires_grad_()
    expected = dropout(F.gelu(exact + bias, approximate="tanh"), 0.25, seed)
    gradients = torch.autograd.grad(expected, (exact, bias), grad.float())
    mine_h = h.clone().requires_grad_()
    y = layers._gelu_dropout(mine_h, bias, seed, 0.25)
    pairs = zip(torch.autograd.grad(y, (mine_h, bias), grad), gradients, strict=True)
    print(json.dumps({"kernel": "gelu and dropout", "forward": error(y.detach(), expected.detach()),
                      "backward": max(error(*pair) for pair in pairs)}))  # fmt: skip

    # The whole of it, as a training step has it: operators with gradients, compiled by torch.
    kernels._forward, kernels._backward = taken(forward, ROWS=32), taken(backward, KEYS=16)
    attention._fits = lambda x, width: layers._fuse and x.dtype == torch.float16
    layers._rows_fit = lambda x, p: layers._fuse and p > 0
    network = PaperNetwork(4, 5, d=128, blocks=2, heads=4, hidden=256).compute_in(torch.float16).train()
    network.start_at(3)
    tokens, t, seeds = torch.randint(0, 8, (3, 20)), torch.tensor([1, 5, 30]), network.draw_seeds()

    def loss(tokens: Tensor, t: Tensor, seeds: Tensor) -> Tensor:
        return 1000 * network(tokens, t, seeds=seeds).square().mean()

    made, inputs = compiled(loss), (tokens, t, seeds)
    fused, value = loss(*inputs), made(*inputs)
    with layers.plain_torch():
        expected = loss(*inputs)
    assert fused.item() != expected.item()  # or nothing fused was used
    off = check_gradients(network, network, lambda: made(*inputs), lambda: loss(*inputs))
    values = error(value.detach(), expected.detach())
    print(json.dumps({"kernel": "the paper's network", "forward": values, "backward": off}))


if __name__ == "__main__":
    main()
