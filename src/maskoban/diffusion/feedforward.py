"""The first half of a feed-forward layer: relu(norm(x) W^T)^2, as one operator with two bodies.

On a CUDA device the norm is applied and the square taken before the product leaves the registers, which saves a
pass over the widest activation. The backward pass needs only the result: relu(h) is its square root.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

try:
    from maskoban.diffusion import kernels
except ImportError:
    kernels = None  # type: ignore[assignment]


def rms_norm(x: Tensor) -> Tensor:
    """x / sqrt(mean(x^2) + 1e-6), no gain, computed in fp32."""
    x32 = x.float()
    return (x32 * torch.rsqrt((x32 * x32).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def squared_relu_linear(x: Tensor, weight: Tensor) -> Tensor:
    """relu(norm(x) W^T)^2 for x (..., k) and a weight (n, k) of any dtype, computed in x's.

    >>> squared_relu_linear(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0], [-1.0, 0.0]])).round()
    tensor([[4., 0.]])
    """
    weight = weight.to(x.dtype)
    fits = weight.shape[0] % 128 == 0 and weight.shape[1] in (64, 128, 256) and x.dtype == torch.bfloat16
    if kernels is None or not x.is_cuda or not fits:
        r = F.relu(F.linear(rms_norm(x), weight))
        return r * r
    y: Tensor = _fused(x, weight)
    return y


if kernels is not None:

    @torch.library.custom_op("maskoban::squared_relu_linear", mutates_args=())
    def _fused(x: Tensor, weight: Tensor) -> Tensor:
        return kernels.relu_squared(x, weight)

    @_fused.register_fake
    def _(x: Tensor, weight: Tensor) -> Tensor:
        return x.new_empty((*x.shape[:-1], weight.shape[0]))

    def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """y = r^2 with r = relu(h), so dL/dh = 2 r dL/dy, and r = sqrt(y) is zero where the ReLU was shut."""
        x, weight, y = ctx.saved_tensors
        dh = (2 * y.float().sqrt() * grad.float()).to(x.dtype)
        x32 = x.float()
        unit = torch.rsqrt((x32 * x32).mean(-1, keepdim=True) + 1e-6)
        normed = x32 * unit
        dnormed = (dh @ weight).float()
        dx = unit * (dnormed - normed * (dnormed * normed).mean(-1, keepdim=True))
        return dx.to(x.dtype), dh.flatten(0, -2).T @ normed.to(x.dtype).flatten(0, -2)

    _fused.register_autograd(_differentiate, setup_context=_remember)
