"""The wide layer of a feed-forward block, as operators with two bodies: plain torch, and fused for CUDA.

Ours, relu(norm(x) W^T)^2: the norm is applied and the square taken before the product leaves the registers, which
saves a pass over the widest activation. The backward pass needs only the result: relu(h) is its square root.
The paper's, dropout(gelu(h)): one pass each way, the mask hashed again instead of kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.diffusion.dropout import dropout

try:
    from maskoban.diffusion import kernels
except ImportError:
    kernels = None  # type: ignore[assignment]


def row_units(x: Tensor) -> Tensor:
    """1 / sqrt(mean(x^2) + 1e-6) of every row, fp32: (..., 1)."""
    x32 = x.float()
    return torch.rsqrt((x32 * x32).mean(-1, keepdim=True) + 1e-6)


def rms_norm(x: Tensor) -> Tensor:
    """x / sqrt(mean(x^2) + 1e-6), no gain, computed in fp32."""
    return (x.float() * row_units(x)).to(x.dtype)


def squared_relu_linear(x: Tensor, weight: Tensor) -> Tensor:
    """relu(norm(x) W^T)^2 for x (..., k) and a weight (n, k) of any dtype, computed in x's.

    >>> squared_relu_linear(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0], [-1.0, 0.0]])).round()
    tensor([[4., 0.]])
    """
    weight = weight.to(x.dtype)
    fits = weight.shape[0] % 256 == 0 and weight.shape[1] % 64 == 0 and x.dtype == torch.bfloat16
    if kernels is None or not x.is_cuda or not fits:
        r = F.relu(F.linear(rms_norm(x), weight))
        return r * r
    y: Tensor = _fused(x, row_units(x.detach()), weight)
    return y


@torch.library.custom_op("maskoban::add_product", mutates_args=("x",))
def add_product(x: Tensor, y: Tensor, weight: Tensor) -> None:
    """x += y W^T, in place: of (..., n), (..., k) and (n, k), x and y contiguous.

    >>> x = torch.ones(2, 1)
    >>> add_product(x, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[10.0, 1.0]]))
    >>> x.flatten()
    tensor([13., 35.])
    """
    x.view(-1, x.shape[-1]).addmm_(y.reshape(-1, y.shape[-1]), weight.T)


def gelu_dropout(h: Tensor, p: float, seed: Tensor) -> Tensor:
    """dropout(gelu(h), p), with GELU's tanh form: what is dropped follows from the seed, the same on every device.

    >>> gelu_dropout(torch.tensor([-8.0, 1.0, 9.0]), 0.0, torch.tensor([5, 0])).abs()
    tensor([0.0000, 0.8412, 9.0000])
    """
    if p == 0 or kernels is None or not h.is_cuda:
        return dropout(F.gelu(h, approximate="tanh"), p, seed)
    y: Tensor = _gelu_dropout(h, seed, p)
    return y


if kernels is not None:

    @torch.library.custom_op("maskoban::squared_relu_linear", mutates_args=())
    def _fused(x: Tensor, unit: Tensor, weight: Tensor) -> Tensor:
        return kernels.relu_squared(x, unit, weight)

    @_fused.register_fake
    def _(x: Tensor, unit: Tensor, weight: Tensor) -> Tensor:
        return x.new_empty((*x.shape[:-1], weight.shape[0]))

    def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor]:
        """y = r^2 with r = relu(h), so dL/dh = 2 r dL/dy, and r = sqrt(y) is zero where the ReLU was shut.

        The gradient of x is the whole of it, by way of the row's unit too.
        """
        x, unit, weight, y = ctx.saved_tensors
        dh = (2 * y.float().sqrt() * grad.float()).to(x.dtype)
        normed = x.float() * unit
        dnormed = (dh @ weight).float()
        dx = unit * (dnormed - normed * (dnormed * normed).mean(-1, keepdim=True))
        return dx.to(x.dtype), None, dh.flatten(0, -2).T @ normed.to(x.dtype).flatten(0, -2)

    _fused.register_autograd(_differentiate, setup_context=_remember)

    @torch.library.custom_op("maskoban::gelu_dropout", mutates_args=())
    def _gelu_dropout(h: Tensor, seed: Tensor, p: float) -> Tensor:
        return kernels.gelu_dropout(h, seed, p)

    @_gelu_dropout.register_fake
    def _(h: Tensor, seed: Tensor, p: float) -> Tensor:
        return torch.empty_like(h)

    @torch.library.custom_op("maskoban::gelu_dropout_backward", mutates_args=())
    def _gelu_dropout_backward(grad: Tensor, h: Tensor, seed: Tensor, p: float) -> Tensor:
        return kernels.gelu_dropout_backward(grad, h, seed, p)

    @_gelu_dropout_backward.register_fake
    def _(grad: Tensor, h: Tensor, seed: Tensor, p: float) -> Tensor:
        return torch.empty_like(h)

    def _remember_gelu(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        h, seed, ctx.p = inputs
        ctx.save_for_backward(h, seed)

    def _differentiate_gelu(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        h, seed = ctx.saved_tensors
        return _gelu_dropout_backward(grad, h, seed, ctx.p), None, None

    _gelu_dropout.register_autograd(_differentiate_gelu, setup_context=_remember_gelu)
