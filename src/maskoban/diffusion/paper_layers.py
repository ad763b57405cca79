"""What the paper's blocks do between their products, as operators with two bodies: plain torch, and fused for CUDA.

A product's bias is added here and not with the product: so its gradient, a sum over all rows, is taken in the same pass
that makes the gradients of the rows. What is dropped is hashed again on the way back instead of kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.diffusion import fusing
from maskoban.diffusion.dropout import dropout

try:
    from maskoban.diffusion import row_kernels
except ImportError:
    row_kernels = None  # type: ignore[assignment]


def layer_norm(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """Layer norm of every row, computed in fp32."""
    return F.layer_norm(x.float(), (x.shape[-1],), gain, shift).to(x.dtype)


def add_dropped(x: Tensor, y: Tensor, bias: Tensor, p: float, seed: Tensor) -> Tensor:
    """x + dropout(y + bias, p), computed in fp32."""
    return (x.float() + dropout(y.float() + bias, p, seed)).to(x.dtype)


def add_norm(
    x: Tensor, y: Tensor, bias: Tensor, gain: Tensor, shift: Tensor, p: float, seed: Tensor
) -> tuple[Tensor, Tensor]:
    """``x = add_dropped(x, y, bias, p, seed)`` and ``layer_norm(x, gain, shift)``.

    >>> x, y, bias, seed = torch.zeros(1, 2), torch.ones(1, 2), torch.tensor([0.0, 2.0]), torch.tensor([5, 0])
    >>> [each.round().tolist() for each in add_norm(x, y, bias, torch.ones(2), torch.zeros(2), 0.0, seed)]
    [[[1.0, 3.0]], [[-1.0, 1.0]]]
    """
    if not _fits(x, p):
        x = add_dropped(x, y, bias, p, seed)
        return x, layer_norm(x, gain, shift)
    out: tuple[Tensor, Tensor] = _add_norm(x, y, bias, gain, shift, seed, p)
    return out


def gelu_dropout(h: Tensor, bias: Tensor, p: float, seed: Tensor) -> Tensor:
    """dropout(gelu(h + bias), p), with GELU's tanh form, computed in fp32.

    >>> gelu_dropout(torch.tensor([-8.0, 0.0, 9.0]), torch.tensor([0.0, 1.0, 0.0]), 0.0, torch.tensor([5, 0])).abs()
    tensor([0.0000, 0.8412, 9.0000])
    """
    if not _fits(h, p):
        return dropout(F.gelu(h.float() + bias, approximate="tanh"), p, seed).to(h.dtype)
    y: Tensor = _gelu_dropout(h, bias, seed, p)
    return y


def _fits(x: Tensor, p: float) -> bool:
    """Whether there are kernels for rows as long as these, and dropout: without it a compiler does as well."""
    n = x.shape[-1]
    fused = row_kernels is not None and x.is_cuda and fusing.allowed()
    return fused and p > 0 and 32 <= n <= 2048 and n & (n - 1) == 0


if row_kernels is not None:

    @torch.library.custom_op("maskoban::add_norm", mutates_args=())
    def _add_norm(
        x: Tensor, y: Tensor, bias: Tensor, gain: Tensor, shift: Tensor, seed: Tensor, p: float
    ) -> tuple[Tensor, Tensor]:
        return row_kernels.add_norm(x, y, bias, gain, shift, seed, p)

    @_add_norm.register_fake
    def _(
        x: Tensor, y: Tensor, bias: Tensor, gain: Tensor, shift: Tensor, seed: Tensor, p: float
    ) -> tuple[Tensor, Tensor]:
        return torch.empty_like(x), torch.empty_like(x)

    @torch.library.custom_op("maskoban::add_norm_backward", mutates_args=())
    def _add_norm_backward(
        dout: Tensor, dnormed: Tensor, out: Tensor, gain: Tensor, seed: Tensor, p: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        return row_kernels.add_norm_backward(dout, dnormed, out, gain, seed, p)

    @_add_norm_backward.register_fake
    def _(
        dout: Tensor, dnormed: Tensor, out: Tensor, gain: Tensor, seed: Tensor, p: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        return torch.empty_like(out), torch.empty_like(out), gain.new_empty((3, out.shape[-1]))

    def _remember_add_norm(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _, _, _, gain, _, seed, ctx.p = inputs
        ctx.save_for_backward(output[0], gain, seed)

    def _differentiate_add_norm(ctx: Any, dout: Tensor, dnormed: Tensor) -> tuple[Tensor | None, ...]:
        out, gain, seed = ctx.saved_tensors
        dx, dy, (dgain, dshift, dbias) = _add_norm_backward(dout, dnormed, out, gain, seed, ctx.p)
        return dx, dy, dbias, dgain, dshift, None, None

    _add_norm.register_autograd(_differentiate_add_norm, setup_context=_remember_add_norm)

    @torch.library.custom_op("maskoban::gelu_dropout", mutates_args=())
    def _gelu_dropout(h: Tensor, bias: Tensor, seed: Tensor, p: float) -> Tensor:
        return row_kernels.gelu_dropout(h, bias, seed, p)

    @_gelu_dropout.register_fake
    def _(h: Tensor, bias: Tensor, seed: Tensor, p: float) -> Tensor:
        return torch.empty_like(h)

    @torch.library.custom_op("maskoban::gelu_dropout_backward", mutates_args=())
    def _gelu_dropout_backward(
        grad: Tensor, h: Tensor, bias: Tensor, seed: Tensor, p: float
    ) -> tuple[Tensor, Tensor]:
        return row_kernels.gelu_dropout_backward(grad, h, bias, seed, p)

    @_gelu_dropout_backward.register_fake
    def _(grad: Tensor, h: Tensor, bias: Tensor, seed: Tensor, p: float) -> tuple[Tensor, Tensor]:
        return torch.empty_like(h), torch.empty_like(bias)

    def _remember_gelu(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        h, bias, seed, ctx.p = inputs
        ctx.save_for_backward(h, bias, seed)

    def _differentiate_gelu(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, bias, seed = ctx.saved_tensors
        dh, dbias = _gelu_dropout_backward(grad, h, bias, seed, ctx.p)
        return dh, dbias, None, None

    _gelu_dropout.register_autograd(_differentiate_gelu, setup_context=_remember_gelu)
