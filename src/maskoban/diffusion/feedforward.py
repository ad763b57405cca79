"""Our feed-forward layer, as operators: for the first product two bodies, plain torch and fused for CUDA.

relu(norm(x) W^T)^2: the norm is applied and the square taken before the product leaves the registers, which
saves a pass over the widest activation. The backward pass needs only the result: relu(h) is its square root.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.diffusion import fusing

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
    if kernels is None or not x.is_cuda or not fits or not fusing.allowed():
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
