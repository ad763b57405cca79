"""Compiling what is trained, and holding its gradients against those of the same thing in plain torch.

A compiler can be wrong without a word, and a run on a wrong gradient has a loss curve like any other. (It happened:
the gain of one of our norms followed something else than its gradient for 80,000 steps. torch 2.10 and 2.11 may put a
sum over rows and a sum over columns into one kernel, and then never write the gradient of a parameter's slice,
https://github.com/pytorch/pytorch/issues/193061; that gain is such a slice.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.fusing import plainly
from maskoban.diffusion.network import Network
from maskoban.interrupting import uninterrupted

#: How far a gradient may lie from plain torch's, as a share of its size. Both are rounded, to two or three digits in
#: bf16; at the weights a run begins with they differ by less than a hundredth.
TOLERANCE = 0.05

#: A part whose gradient is a smaller share than this of all together is measured by this share.
_LEAST = 1e-3

#: How far the weights are moved, each on its own, before gradients are compared.
_STIRRED = 0.01


def compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``torch.compile``, for what has a gradient: without sums of both kinds in one kernel."""
    options = {"triton.mix_order_reduction": False}
    known = torch._inductor.list_options()
    return torch.compile(
        function, dynamic=False, options={name: value for name, value in options.items() if name in known}
    )


def prove_gradients(
    network: Network, fresh: Network, made: Callable[[], Tensor], plain: Callable[[], Tensor]
) -> float:
    """Hold the gradients of a compiled loss against those of the same in plain torch; returns how far the worst is off.

    Every part of a parameter is held on its own (:func:`gradients`). Where one is wrong, this raises, and names it.
    They are taken at the weights of a ``fresh`` network, for no code depends on the weights and learned ones make
    rounding loud; a little off them, for where a network begins with zeros most gradients are zero as well.
    """
    own = [p.detach().clone() for p in network.parameters()]
    begun = [p.detach() + _STIRRED * torch.randn_like(p) for p in fresh.to(own[0].device).parameters()]
    try:
        _put(network, begun)
        off = _errors(network, made, plain)
    finally:
        _put(network, own)
    for name, share in off.items():
        if not share < TOLERANCE:
            raise MaskobanError(
                f"the training step is wrong on this device: the gradient of {name} is {share:.0%} off; "
                "train with --no-compile, or without fused kernels: MASKOBAN_KERNELS=0"
            )
    return max(off.values())


def _put(network: Network, weights: list[Tensor]) -> None:
    with uninterrupted(), torch.no_grad():
        for p, value in zip(network.parameters(), weights, strict=True):
            p.copy_(value)


def _errors(network: Network, made: Callable[[], Tensor], plain: Callable[[], Tensor]) -> dict[str, float]:
    gradients(network, made)  # compiles, and takes its memory
    # What is given back here the next gradients may be written to: one that is not written then shows.
    poison = [torch.full_like(p, math.nan) for p in network.parameters() for _ in range(4)]
    del poison
    mine = gradients(network, made)
    with plainly():
        exact = gradients(network, plain)
    least = _LEAST * float(torch.stack([g.norm() for g in exact.values()]).norm())
    return {name: float((mine[name] - g).norm() / g.norm().clamp_min(least)) for name, g in exact.items()}


def gradients(network: Network, loss: Callable[[], Tensor]) -> dict[str, Tensor]:
    """The gradients of a loss by the names of what they belong to: the parts of parameters, block by block."""
    network.zero_grad(set_to_none=True)
    loss().backward()  # type: ignore[no-untyped-call]
    found = present_gradients(network)
    network.zero_grad(set_to_none=True)
    return found


def present_gradients(network: Network) -> dict[str, Tensor]:
    """A copy of the gradients that the parameters hold, part by part."""
    found: dict[str, Tensor] = {}
    for name, p in network.named_parameters():
        assert p.grad is not None, name
        found |= dict(_parts(name, p.grad.clone(), network.blocks))
    return found


def alike(some: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    """Whether gradients of two batches may be those of the same weights: no part's is twice as large as its other.

    >>> alike({"a": torch.ones(3)}, {"a": -1.5 * torch.ones(3)}), alike({"a": torch.ones(3)}, {"a": torch.zeros(3)})
    (True, False)
    """
    sizes = torch.stack([torch.stack([some[name].norm(), other.norm()]) for name, other in others.items()])
    sizes = sizes.clamp_min(_LEAST * float(sizes[:, 1].norm()))
    return bool((sizes.amax(1) < 2 * sizes.amin(1)).all())  # NaN is not less than anything


def _parts(name: str, g: Tensor, blocks: int) -> Iterator[tuple[str, Tensor]]:
    """A stacked parameter block by block, and in a block what belongs to queries, keys and values, or to two norms."""
    if g.ndim < 2 or len(g) != blocks:
        yield name, g
        return
    for i, block in enumerate(g):
        several = block if len(block) <= 3 else block.chunk(3) if name == "qkv_bias" else [block]
        for j, part in enumerate(several):
            yield (f"{name}[{i}, {j}]" if len(several) > 1 else f"{name}[{i}]"), part
