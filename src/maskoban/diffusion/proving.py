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


def prove_kernels(network: Network, boards: int, backward: bool) -> dict[str, float]:
    """Hold every fused operator of a network on a CUDA device against plain fp32; returns how far each is off.

    ``boards`` is how many are computed at once. Where an operator is wrong, this raises, and names it.

    >>> prove_kernels(InteriorNetwork(), boards=4, backward=True)  # nothing is fused on a CPU
    {}
    """
    if not next(network.parameters()).is_cuda:
        return {}
    assert isinstance(network, InteriorNetwork | PaperNetwork)
    d, hidden, heads = network.d, network.up.shape[1], network.heads
    rotary = network.rotary if isinstance(network, InteriorNetwork) else None

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, device=network.up.device, dtype=network.dtype)

    cells = (boards, network.cells)
    seed = torch.tensor([12345, 0], device=network.up.device)
    weight = random(hidden, d)
    trials: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], Tensor]] = {
        "attention": (
            lambda qkv: attend(qkv, heads, rotary),
            lambda qkv: attend_reference(qkv, heads, rotary),
            random(*cells, 3 * d),
        )
    }
    if isinstance(network, InteriorNetwork):
        trials["squared ReLU"] = (
            lambda x: squared_relu_linear(x, weight),
            lambda x: F.relu(rms_norm(x) @ weight.float().T).square(),
            random(*cells, d),
        )
        wide, narrow = random(3 * d, d), random(d, d)
        trials["attention of normalised rows"] = (
            lambda x: attend_normed(x, wide, heads, network.rotary),
            lambda x: attend_reference(rms_norm(x) @ wide.float().T, heads, network.rotary),
            random(*cells, d),
        )

        def of_one(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            q = normalise_and_rotate(x[:, -1].view(len(x), heads, 1, -1), network.rotary[:, -1:])
            return q, x @ narrow.to(x.dtype).T, x, network.rotary

        trials["attention of one cell"] = (
            lambda x: mix(*of_one(x)),
            lambda x: mix_reference(*of_one(x)),
            random(*cells, d),
        )
    elif network.dropout and backward:
        trials["attention with dropout"] = (
            lambda qkv: attend(qkv, heads, rotary, network.dropout, seed),
            lambda qkv: attend_reference(qkv, heads, rotary, network.dropout, seed),
            random(*cells, 3 * d),
        )
        gain, shift, bias, wide_bias = (random(n).float() for n in (d, d, d, hidden))

        def normed(both: Tensor) -> Tensor:
            x, y = both.chunk(2, dim=-1)
            return torch.cat(add_norm(x, y, bias, gain, shift, network.dropout, seed), dim=-1)

        def plainly_normed(both: Tensor) -> Tensor:
            x, y = both.chunk(2, dim=-1)
            x = add_dropped(x, y, bias, network.dropout, seed)
            return torch.cat([x, layer_norm(x, gain, shift)], dim=-1)

        trials["sum, dropout and norm"] = (normed, plainly_normed, random(*cells, 2 * d))

        def plain_gelu(h: Tensor) -> Tensor:
            return dropout(F.gelu(h + wide_bias, approximate="tanh"), network.dropout, seed)

        trials["GELU and dropout"] = (
            lambda h: gelu_dropout(h, wide_bias, network.dropout, seed),
            plain_gelu,
            random(*cells, hidden),
        )
    found = {}
    for name, (fused, plain, x) in trials.items():
        drops = "attention with dropout" in trials  # and then plain attention is for drawing
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
