"""The compiled training step: torch.compile, CUDA graphs, and a check of its gradients against plain torch.

A compiler can be wrong silently, and a run on a wrong gradient has a loss curve like any other. (It happened: the gain
of one of our norms followed something other than its gradient for 80,000 steps. torch 2.10 and 2.11 may put a sum over
rows and a sum over columns into one kernel and then never write the gradient of a parameter's slice,
https://github.com/pytorch/pytorch/issues/193061; that gain is such a slice.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from maskoban._util.signals import defer_interrupt
from maskoban.errors import MaskobanError
from maskoban.nn.layers import plain_torch
from maskoban.nn.networks import Network

Boards = TypeVar("Boards")

#: The largest relative error of a gradient. Both sides are rounded, in bf16 to two or three digits; at fresh weights
#: they differ by less than a hundredth.
TOLERANCE = 0.05

#: A part whose gradient is a smaller share of the total norm is measured against this share.
_LEAST = 1e-3

#: The standard deviation of the noise added to fresh weights: where a network starts at zero, most gradients are zero.
_STIRRED = 0.01


def compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``torch.compile`` for functions with a gradient, without both kinds of sums in one kernel."""
    torch._dynamo.config.recompile_limit = 64  # one for each number of passes, in training and in evaluation
    options = {"triton.mix_order_reduction": False}
    known = torch._inductor.list_options()
    return torch.compile(
        function, dynamic=False, options={name: value for name, value in options.items() if name in known}
    )


def check_gradients(
    network: Network, fresh: Network, made: Callable[[], Tensor], plain: Callable[[], Tensor]
) -> float:
    """Compare the gradients of a compiled loss with those of the same loss in plain torch; returns the largest error.

    Every part of a parameter is compared on its own (:func:`gradients`); a wrong one is an error that names it. The
    comparison is made near the weights of a ``fresh`` network: code does not depend on the weights, and trained ones
    amplify rounding.
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
    with defer_interrupt(), torch.no_grad():
        for p, value in zip(network.parameters(), weights, strict=True):
            p.copy_(value)


def _errors(network: Network, made: Callable[[], Tensor], plain: Callable[[], Tensor]) -> dict[str, float]:
    gradients(network, made)  # compiles, and allocates its memory
    # The next gradients may be written to this memory once it is free: one that is not written is then NaN.
    poison = [torch.full_like(p, math.nan) for p in network.parameters() for _ in range(4)]
    del poison
    mine = gradients(network, made)
    with plain_torch():
        exact = gradients(network, plain)
    least = _LEAST * float(torch.stack([g.norm() for g in exact.values()]).norm())
    return {name: float((mine[name] - g).norm() / g.norm().clamp_min(least)) for name, g in exact.items()}


def gradients(network: Network, loss: Callable[[], Tensor]) -> dict[str, Tensor]:
    """The gradients of a loss, part by part."""
    network.zero_grad(set_to_none=True)
    loss().backward()  # type: ignore[no-untyped-call]
    found = present_gradients(network)
    network.zero_grad(set_to_none=True)
    return found


def present_gradients(network: Network) -> dict[str, Tensor]:
    """A copy of the parameters' gradients, part by part; zeros where a parameter has none."""
    found: dict[str, Tensor] = {}
    for name, p in network.named_parameters():
        grad = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        found |= dict(_parts(name, grad, network.blocks))
    return found


def _parts(name: str, g: Tensor, blocks: int) -> Iterator[tuple[str, Tensor]]:
    """A stacked parameter block by block, and in a block the queries, keys and values, or the two norms."""
    if g.ndim < 2 or len(g) != blocks:
        yield name, g
        return
    for i, block in enumerate(g):
        several = block if len(block) <= 3 else block.chunk(3) if name == "qkv_bias" else [block]
        for j, part in enumerate(several):
            yield (f"{name}[{i}, {j}]" if len(several) > 1 else f"{name}[{i}]"), part


class RecordedStep(Generic[Boards]):
    """``step(boards) -> loss`` as a CUDA graph on the current weights and moments, which it updates in place.

    ``boards`` is a tensor or has tensors as its fields. A replay costs no kernel launches. Recording runs nothing: the
    step must have been compiled and its memory allocated before, and it must not wait for the device. Random numbers
    follow torch's generator at the time of the replay. Steps that are never replayed at once share a memory ``pool``.
    """

    def __init__(self, step: Callable[[Boards], Tensor], boards: Boards, pool: Any = None) -> None:
        self._boards = deepcopy(boards)
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(self._graph, pool=pool):
            self._loss = step(self._boards)

    def __call__(self, boards: Boards) -> Tensor:
        for own, given in zip(_tensors(self._boards), _tensors(boards), strict=True):
            own.copy_(given)
        self._graph.replay()
        return self._loss.clone()


def _tensors(boards: Any) -> list[Tensor]:
    return [boards] if isinstance(boards, Tensor) else list(vars(boards).values())


@torch.no_grad()
def same_step(
    network: Network, optimizers: Mapping[str, torch.optim.Optimizer], recorded: Callable[[Boards], Tensor],
    step: Callable[[Boards], Tensor], boards: Boards, seed: int,
) -> bool:  # fmt: skip
    """Whether a recorded step has the gradients of the step it was recorded from. Weights and moments stay."""
    moments = [v for o in optimizers.values() for state in o.state.values() for v in state.values()]
    held = [*network.parameters(), *(v for v in moments if torch.is_tensor(v))]
    kept = [value.clone() for value in held]

    def gradients_of(take: Callable[[Boards], Tensor]) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        with torch.enable_grad():
            take(boards)
        found = present_gradients(network)
        for value, before in zip(held, kept, strict=True):
            value.copy_(before)
        return found

    # The recorded step first: it writes to the gradients it was recorded with, which the step then replaces.
    return alike(gradients_of(recorded), gradients_of(step))


def alike(some: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> bool:
    """Whether two sets of gradients have about the same sizes: no part is twice as large as its other.

    >>> alike({"a": torch.ones(3)}, {"a": -1.5 * torch.ones(3)}), alike({"a": torch.ones(3)}, {"a": torch.zeros(3)})
    (True, False)
    """
    sizes = torch.stack([torch.stack([some[name].norm(), other.norm()]) for name, other in others.items()])
    sizes = sizes.clamp_min(_LEAST * float(sizes[:, 1].norm()))
    return bool((sizes.amax(1) < 2 * sizes.amin(1)).all())  # NaN is not less than anything
