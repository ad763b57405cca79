"""The kernel self-test: fused kernels are compared with plain fp32 on the device and at the size they run at.

A kernel that is right in the interpreter, or at another size, can be wrong on a device, because a large compiler lies
between. A training run on a slightly wrong kernel looks like any other, so nothing else would show it.

This test covers values and the gradients of inputs. The gradients of parameters, sums over all boards, are checked with
the whole training step (``training/compiling.py``).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.errors import MaskobanError
from maskoban.nn.attention import (
    attend,
    attend_normed,
    attend_reference,
    mix,
    mix_reference,
    normalise_and_rotate,
)
from maskoban.nn.conditional import CONDITIONS, LENGTHS, ConditionalNetwork
from maskoban.nn.dropout import dropout
from maskoban.nn.layers import add_dropped, add_norm, gelu_dropout, layer_norm, rms_norm, squared_relu_linear
from maskoban.nn.networks import InteriorNetwork, Network, PaperNetwork

#: The largest relative error against fp32; bf16 keeps two to three digits.
TOLERANCE = 2e-2

#: Boards compared. A program takes board after board and any may be wrong, so they are evenly spaced. A dropout mask
#: depends on the place in the batch, so there the first ones are compared: enough to cover several boards a program.
_COMPARED, _FIRST = 48, 256

#: Fused only where no gradient is needed.
_SAMPLING_ONLY = ("attention of normalised rows", "attention of one cell")


#: A fused operator, the same in plain torch, and the input of both.
Trial = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], Tensor]


def kernel_self_test(network: Network, boards: int, backward: bool) -> dict[str, float]:
    """Compare every fused operator of a network on a CUDA device with plain fp32; returns the relative errors.

    ``boards`` is how many the network computes at once. An operator that is wrong is an error that names it.

    >>> kernel_self_test(InteriorNetwork(), boards=4, backward=True)  # nothing is fused on a CPU
    {}
    """
    if not next(network.parameters()).is_cuda:
        return {}
    trials = _trials(network, boards, backward)
    drops = "attention with dropout" in trials  # then plain attention is used for sampling only
    found = {}
    for name, (fused, plain, x) in trials.items():
        both_ways = backward and name not in _SAMPLING_ONLY and not (drops and name == "attention")
        with torch.set_grad_enabled(both_ways):
            found[name] = off = max(_errors(fused, plain, x, both_ways, first=drops and name != "attention"))
        if not off < TOLERANCE:
            raise MaskobanError(
                f"the fused kernel for {name} is wrong on {torch.cuda.get_device_name()}: {off:.0%} off; "
                "set MASKOBAN_KERNELS=0 to run without fused kernels"
            )
    return found


def _trials(network: Network, boards: int, backward: bool) -> dict[str, Trial]:
    """The fused operators that a network uses for sampling or training, by name; none for networks of others."""
    if isinstance(network, ConditionalNetwork):
        return {"squared ReLU": _squared_relu_trial(network, boards, CONDITIONS + max(LENGTHS))}
    if not isinstance(network, InteriorNetwork | PaperNetwork):
        return {}
    heads, rotary = network.heads, network.rotary if isinstance(network, InteriorNetwork) else None
    trials: dict[str, Trial] = {
        "attention": (
            lambda qkv: attend(qkv, heads, rotary),
            lambda qkv: attend_reference(qkv, heads, rotary),
            _random(network, boards, network.cells, 3 * network.d),
        )
    }
    if isinstance(network, InteriorNetwork):
        trials |= _interior_trials(network, boards)
    elif network.dropout and backward:
        trials |= _dropout_trials(network, boards)
    return trials


def _interior_trials(network: InteriorNetwork, boards: int) -> dict[str, Trial]:
    d, heads = network.d, network.heads
    qkv, key = (_random(network, rows, d) for rows in (3 * d, d))

    def of_one(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        q = normalise_and_rotate(x[:, -1].view(len(x), heads, 1, -1), network.rotary[:, -1:])
        return q, x @ key.to(x.dtype).T, x, network.rotary

    return {
        "squared ReLU": _squared_relu_trial(network, boards, network.cells),
        "attention of normalised rows": (
            lambda x: attend_normed(x, qkv, heads, network.rotary),
            lambda x: attend_reference(rms_norm(x) @ qkv.float().T, heads, network.rotary),
            _random(network, boards, network.cells, d),
        ),
        "attention of one cell": (
            lambda x: mix(*of_one(x)),
            lambda x: mix_reference(*of_one(x)),
            _random(network, boards, network.cells, d),
        ),
    }


def _squared_relu_trial(network: InteriorNetwork | ConditionalNetwork, boards: int, cells: int) -> Trial:
    up = _random(network, network.up.shape[1], network.d)
    return (
        lambda x: squared_relu_linear(x, up),
        lambda x: F.relu(rms_norm(x) @ up.float().T).square(),
        _random(network, boards, cells, network.d),
    )


def _dropout_trials(network: PaperNetwork, boards: int) -> dict[str, Trial]:
    d, hidden, heads, p = network.d, network.up.shape[1], network.heads, network.dropout
    seed = torch.tensor([12345, 0], device=network.up.device)
    gain, shift, bias, wide_bias = (_random(network, n).float() for n in (d, d, d, hidden))

    def normed(both: Tensor) -> Tensor:
        x, y = both.chunk(2, dim=-1)
        return torch.cat(add_norm(x, y, bias, gain, shift, p, seed), dim=-1)

    def plain_normed(both: Tensor) -> Tensor:
        x, y = both.chunk(2, dim=-1)
        x = add_dropped(x, y, bias, p, seed)
        return torch.cat([x, layer_norm(x, gain, shift)], dim=-1)

    return {
        "attention with dropout": (
            lambda qkv: attend(qkv, heads, None, p, seed),
            lambda qkv: attend_reference(qkv, heads, None, p, seed),
            _random(network, boards, network.cells, 3 * d),
        ),
        "sum, dropout and norm": (normed, plain_normed, _random(network, boards, network.cells, 2 * d)),
        "GELU and dropout": (
            lambda h: gelu_dropout(h, wide_bias, p, seed),
            lambda h: dropout(F.gelu(h + wide_bias, approximate="tanh"), p, seed),
            _random(network, boards, network.cells, hidden),
        ),
    }


def _random(network: InteriorNetwork | PaperNetwork | ConditionalNetwork, *shape: int) -> Tensor:
    return torch.randn(*shape, device=network.up.device, dtype=network.dtype)


def _errors(
    fused: Callable[[Tensor], Tensor],
    plain: Callable[[Tensor], Tensor],
    x: Tensor,
    backward: bool,
    first: bool = False,
) -> list[float]:
    """Relative errors of the values and, with ``backward``, of x's gradient, on boards of all places or the first."""
    n = len(x)
    some = (
        torch.arange(min(_FIRST, n)) if first else torch.linspace(0, n - 1, min(_COMPARED, n)).round().long()
    )
    some = some.to(x.device)
    mine_in = x.detach().requires_grad_(backward)
    exact_in = x[some].float().requires_grad_(backward)
    mine, exact = fused(mine_in), plain(exact_in)
    pairs = [(mine[some], exact)]
    if backward:
        grad = torch.randn_like(mine)
        (dmine,) = torch.autograd.grad(mine, mine_in, grad)
        (dexact,) = torch.autograd.grad(exact, exact_in, grad[some].float())
        pairs.append((dmine[some], dexact))
    return [float((a.detach().float() - b.detach()).norm() / b.detach().norm()) for a, b in pairs]
