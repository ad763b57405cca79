"""The networks' layers beside attention: in plain torch, and fused for CUDA.

Each fused operator has a plain version beside it that computes the same function. The plain one runs on every other
device, in the tests, and within :func:`plain_torch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.nn.dropout import dropout

try:  # Triton is installed wherever torch has CUDA; nothing else needs it
    from maskoban.nn import layer_kernels as kernels
except ImportError:
    kernels = None  # type: ignore[assignment]

_fuse = True


def fused_on(x: Tensor) -> bool:
    """Whether fused kernels may be used for x."""
    return kernels is not None and x.is_cuda and _fuse


@contextmanager
def plain_torch() -> Iterator[None]:
    """No fused kernels within the block: what they compute is compared with plain torch."""
    global _fuse
    before, _fuse = _fuse, False
    try:
        yield
    finally:
        _fuse = before


# -- the interior network's feed-forward layer


def row_units(x: Tensor) -> Tensor:
    """1 / sqrt(mean(x^2) + 1e-6) of every row, fp32: (..., 1)."""
    x32 = x.float()
    return torch.rsqrt((x32 * x32).mean(-1, keepdim=True) + 1e-6)


def rms_norm(x: Tensor) -> Tensor:
    """x / sqrt(mean(x^2) + 1e-6), no gain, computed in fp32."""
    return (x.float() * row_units(x)).to(x.dtype)


def squared_relu_linear(x: Tensor, weight: Tensor) -> Tensor:
    """relu(norm(x) W^T)^2 for x (..., k) and a weight (n, k) of any dtype, computed in x's.

    The fused kernel applies the norm and the square before the product leaves the registers, which saves a pass over
    the widest activation. The backward pass needs only the result: relu(h) is its square root.

    >>> squared_relu_linear(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0], [-1.0, 0.0]])).round()
    tensor([[4., 0.]])
    """
    weight = weight.to(x.dtype)
    fits = weight.shape[0] % 256 == 0 and weight.shape[1] % 64 == 0 and x.dtype == torch.bfloat16
    if not fits or not fused_on(x):
        r = F.relu(F.linear(rms_norm(x), weight))
        return r * r
    y: Tensor = _squared_relu(x, row_units(x.detach()), weight)
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


# -- the paper's network: a product's bias is added here, so that its gradient, a sum over all rows, is computed in the
# -- pass that computes the gradients of the rows; the dropout mask is hashed again in the backward pass


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
    if not _rows_fit(x, p):
        x = add_dropped(x, y, bias, p, seed)
        return x, layer_norm(x, gain, shift)
    out: tuple[Tensor, Tensor] = _add_norm(x, y, bias, gain, shift, seed, p)
    return out


def gelu_dropout(h: Tensor, bias: Tensor, p: float, seed: Tensor) -> Tensor:
    """dropout(gelu(h + bias), p), with GELU's tanh form, computed in fp32.

    >>> gelu_dropout(torch.tensor([-8.0, 0.0, 9.0]), torch.tensor([0.0, 1.0, 0.0]), 0.0, torch.tensor([5, 0])).abs()
    tensor([0.0000, 0.8412, 9.0000])
    """
    if not _rows_fit(h, p):
        return dropout(F.gelu(h.float() + bias, approximate="tanh"), p, seed).to(h.dtype)
    y: Tensor = _gelu_dropout(h, bias, seed, p)
    return y


def relu_dropout(h: Tensor, bias: Tensor, p: float, seed: Tensor) -> Tensor:
    """dropout(relu(h + bias), p), computed in fp32. It has no fused kernel."""
    return dropout(F.relu(h.float() + bias), p, seed).to(h.dtype)


def _rows_fit(x: Tensor, p: float) -> bool:
    """Whether there are kernels for rows of this length. Without dropout, torch's compiler fuses as well."""
    n = x.shape[-1]
    return fused_on(x) and p > 0 and 32 <= n <= 2048 and n & (n - 1) == 0


# -- the fused operators


def fused_operator(name: str, kernel: Callable[..., Any], shapes: Callable[..., Any]) -> Any:
    """A kernel as an operator of torch; ``shapes`` gives the compiler empty outputs for the inputs."""
    operator: Any = torch.library.custom_op(f"maskoban::{name}", kernel, mutates_args=())
    operator.register_fake(shapes)
    return operator


if kernels is not None:
    _squared_relu = fused_operator(
        "squared_relu_linear",
        kernels.relu_squared,
        lambda x, unit, weight: x.new_empty((*x.shape[:-1], weight.shape[0])),
    )

    def _squared_relu_saves(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    def _squared_relu_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor]:
        """y = r^2 with r = relu(h), so dL/dh = 2 r dL/dy, and r = sqrt(y) is zero where the ReLU is.

        The gradient of x includes the part that flows through the row's unit.
        """
        x, unit, weight, y = ctx.saved_tensors
        dh = (2 * y.float().sqrt() * grad.float()).to(x.dtype)
        normed = x.float() * unit
        dnormed = (dh @ weight).float()
        dx = unit * (dnormed - normed * (dnormed * normed).mean(-1, keepdim=True))
        return dx.to(x.dtype), None, dh.flatten(0, -2).T @ normed.to(x.dtype).flatten(0, -2)

    _squared_relu.register_autograd(_squared_relu_gradient, setup_context=_squared_relu_saves)

    _add_norm = fused_operator(
        "add_norm", kernels.add_norm, lambda x, *_: (torch.empty_like(x), torch.empty_like(x))
    )
    _add_norm_backward = fused_operator(
        "add_norm_backward",
        kernels.add_norm_backward,
        lambda dout, dnormed, out, gain, *_: (
            torch.empty_like(out), torch.empty_like(out), gain.new_empty((3, out.shape[-1]))
        ),
    )  # fmt: skip

    def _add_norm_saves(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _, _, _, gain, _, seed, ctx.p = inputs
        ctx.save_for_backward(output[0], gain, seed)

    def _add_norm_gradient(ctx: Any, dout: Tensor, dnormed: Tensor) -> tuple[Tensor | None, ...]:
        dx, dy, (dgain, dshift, dbias) = _add_norm_backward(dout, dnormed, *ctx.saved_tensors, ctx.p)
        return dx, dy, dbias, dgain, dshift, None, None

    _add_norm.register_autograd(_add_norm_gradient, setup_context=_add_norm_saves)

    _gelu_dropout = fused_operator("gelu_dropout", kernels.gelu_dropout, lambda h, *_: torch.empty_like(h))
    _gelu_dropout_backward = fused_operator(
        "gelu_dropout_backward",
        kernels.gelu_dropout_backward,
        lambda grad, h, bias, *_: (torch.empty_like(h), torch.empty_like(bias)),
    )

    def _gelu_saves(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *saved, ctx.p = inputs
        ctx.save_for_backward(*saved)

    def _gelu_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        dh, dbias = _gelu_dropout_backward(grad, *ctx.saved_tensors, ctx.p)
        return dh, dbias, None, None

    _gelu_dropout.register_autograd(_gelu_gradient, setup_context=_gelu_saves)
