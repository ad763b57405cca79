"""Fused kernels are proved on the device they run on, at the size they run at, before anything is built on them.

A kernel that is right in an interpreter, or at another size, can be wrong on a device: the compiler between them is
large. A training run on a kernel that is a little off looks almost like any other, so nothing else would tell.

Here it is values and the gradients of what goes in. Those of what is learned, sums over all boards, are proved with the
whole step (``training/compiling.py``).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.attention import (
    attend,
    attend_normed,
    attend_reference,
    mix,
    mix_reference,
    normalise_and_rotate,
)
from maskoban.diffusion.dropout import dropout
from maskoban.diffusion.feedforward import rms_norm, squared_relu_linear
from maskoban.diffusion.network import InteriorNetwork, Network, PaperNetwork
from maskoban.diffusion.paper_layers import add_dropped, add_norm, gelu_dropout, layer_norm

#: How far results may lie from fp32's, as a share of their size; bf16 keeps between two and three digits.
TOLERANCE = 2e-2

#: Boards compared: so many, evenly spaced, for a program takes board after board and any may be the one that is wrong;
#: where numbers are dropped the first ones, more of them, so that there are some of every turn a program takes.
_COMPARED, _FIRST = 48, 256

#: Fused only where no gradient is wanted.
_DRAWING_ONLY = ("attention of normalised rows", "attention of one cell")


#: A fused operator, the same in plain torch, and what both are given.
Trial = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], Tensor]


def prove_kernels(network: Network, boards: int, backward: bool) -> dict[str, float]:
    """Hold every fused operator of a network on a CUDA device against plain fp32; returns how far each is off.

    ``boards`` is how many are computed at once. Where an operator is wrong, this raises, and names it.

    >>> prove_kernels(InteriorNetwork(), boards=4, backward=True)  # nothing is fused on a CPU
    {}
    """
    if not next(network.parameters()).is_cuda:
        return {}
    trials = _trials(network, boards, backward)
    drops = "attention with dropout" in trials  # and then plain attention is for drawing
    found = {}
    for name, (fused, plain, x) in trials.items():
        both_ways = backward and name not in _DRAWING_ONLY and not (drops and name == "attention")
        # Which numbers are dropped follows from their place: of boards by themselves, only the first are right.
        first = drops and name != "attention"
        with torch.set_grad_enabled(both_ways):
            found[name] = off = max(_errors(fused, plain, x, both_ways, first))
        if not off < TOLERANCE:
            raise MaskobanError(
                f"the fused kernel for {name} is wrong on {torch.cuda.get_device_name()}: {off:.0%} off; "
                "set MASKOBAN_KERNELS=0 to do without fused kernels"
            )
    return found


def _trials(network: Network, boards: int, backward: bool) -> dict[str, Trial]:
    """What is fused in a network, by name: those operators that its kind, and drawing or training, make use of."""
    assert isinstance(network, InteriorNetwork | PaperNetwork)
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
    d, hidden, heads = network.d, network.up.shape[1], network.heads
    up, qkv, key = (_random(network, rows, d) for rows in (hidden, 3 * d, d))

    def of_one(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        q = normalise_and_rotate(x[:, -1].view(len(x), heads, 1, -1), network.rotary[:, -1:])
        return q, x @ key.to(x.dtype).T, x, network.rotary

    return {
        "squared ReLU": (
            lambda x: squared_relu_linear(x, up),
            lambda x: F.relu(rms_norm(x) @ up.float().T).square(),
            _random(network, boards, network.cells, d),
        ),
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


def _dropout_trials(network: PaperNetwork, boards: int) -> dict[str, Trial]:
    d, hidden, heads, p = network.d, network.up.shape[1], network.heads, network.dropout
    seed = torch.tensor([12345, 0], device=network.up.device)
    gain, shift, bias, wide_bias = (_random(network, n).float() for n in (d, d, d, hidden))

    def normed(both: Tensor) -> Tensor:
        x, y = both.chunk(2, dim=-1)
        return torch.cat(add_norm(x, y, bias, gain, shift, p, seed), dim=-1)

    def plainly_normed(both: Tensor) -> Tensor:
        x, y = both.chunk(2, dim=-1)
        x = add_dropped(x, y, bias, p, seed)
        return torch.cat([x, layer_norm(x, gain, shift)], dim=-1)

    return {
        "attention with dropout": (
            lambda qkv: attend(qkv, heads, None, p, seed),
            lambda qkv: attend_reference(qkv, heads, None, p, seed),
            _random(network, boards, network.cells, 3 * d),
        ),
        "sum, dropout and norm": (normed, plainly_normed, _random(network, boards, network.cells, 2 * d)),
        "GELU and dropout": (
            lambda h: gelu_dropout(h, wide_bias, p, seed),
            lambda h: dropout(F.gelu(h + wide_bias, approximate="tanh"), p, seed),
            _random(network, boards, network.cells, hidden),
        ),
    }


def _random(network: InteriorNetwork | PaperNetwork, *shape: int) -> Tensor:
    return torch.randn(*shape, device=network.up.device, dtype=network.dtype)


def _errors(
    fused: Callable[[Tensor], Tensor],
    plain: Callable[[Tensor], Tensor],
    x: Tensor,
    backward: bool,
    first: bool = False,
) -> list[float]:
    """Relative errors of the values and, if asked for, of x's gradient, on boards of all places or on the first."""
    n = len(x)
    places = (
        torch.arange(min(_FIRST, n)) if first else torch.linspace(0, n - 1, min(_COMPARED, n)).round().long()
    )
    some = places.to(x.device)
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
