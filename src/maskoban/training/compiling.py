"""Compiling what is trained, and holding its gradients against those of the same thing not compiled.

A compiler can be wrong without a word, and a run on a wrong gradient has a loss curve like any other. (It happened:
torch 2.10 and 2.11 may put a sum over rows and a sum over columns into one kernel, and then never write the gradient of
a parameter's slice, https://github.com/pytorch/pytorch/issues/193061. The gain of one of our norms was such a slice,
and followed whatever lay in that memory for 80,000 steps.)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.network import Network

#: How far a gradient may lie from that of the same network not compiled, as a share of its size: both are bf16's, which
#: agree to a few hundredths, and less well where a network has learned to be sharp.
TOLERANCE = 0.3

#: A parameter whose gradient is a smaller share than this of all together is measured by this share.
_LEAST = 1e-3

#: How far off, for every weight on its own: a fifth of what a matrix of 256 columns starts with.
_STIRRED = 0.01


def compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``torch.compile``, for what has a gradient: without sums of both kinds in one kernel."""
    options = {"triton.mix_order_reduction": False}
    known = torch._inductor.list_options()
    return torch.compile(
        function, dynamic=False, options={name: value for name, value in options.items() if name in known}
    )


def prove_gradients(network: Network, made: Callable[[], Tensor], plain: Callable[[], Tensor]) -> float:
    """Hold the gradients of a compiled loss against those of the same, not compiled; returns how far the worst is off.

    Every block's slice of a parameter is held on its own. Where one is wrong, this raises, and names it. They are taken
    at weights a little off the network's: where a network starts with zeros, most gradients are zero as well.
    """
    kept = [p.detach().clone() for p in network.parameters()]
    with torch.no_grad():
        for p in network.parameters():
            p.add_(torch.randn_like(p), alpha=_STIRRED)
    try:
        off = _errors(network, made, plain)
    finally:
        with torch.no_grad():
            for p, value in zip(network.parameters(), kept, strict=True):
                p.copy_(value)
    for name, share in off.items():
        if not share < TOLERANCE:
            raise MaskobanError(
                f"the compiled training step is wrong on this device: the gradient of {name} is {share:.0%} off; "
                "train with --no-compile"
            )
    return max(off.values())


def _errors(network: Network, made: Callable[[], Tensor], plain: Callable[[], Tensor]) -> dict[str, float]:
    gradients(network, made)  # compiles, and takes its memory
    # What is given back here is what the next gradients are written to: one that is not written shows.
    poison = [torch.full_like(p, math.nan) for p in network.parameters() for _ in range(4)]
    del poison
    mine, exact = gradients(network, made), gradients(network, plain)
    least = _LEAST * float(torch.stack([g.norm() for g in exact.values()]).norm())
    return {name: float((mine[name] - g).norm() / g.norm().clamp_min(least)) for name, g in exact.items()}


def gradients(network: Network, loss: Callable[[], Tensor]) -> dict[str, Tensor]:
    """The gradients of a loss by the parameters' names, those of stacked ones block by block."""
    network.zero_grad(set_to_none=True)
    loss().backward()  # type: ignore[no-untyped-call]
    found: dict[str, Tensor] = {}
    for name, p in network.named_parameters():
        assert p.grad is not None, name
        whole = p.grad.clone()
        stacked = p.ndim > 1 and len(p) == network.blocks
        found |= {f"{name}[{i}]": g for i, g in enumerate(whole)} if stacked else {name: whole}
    network.zero_grad(set_to_none=True)
    return found
