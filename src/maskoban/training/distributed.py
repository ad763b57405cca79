"""Training by several processes that torchrun starts, on one machine or many.

    torchrun --nproc-per-node 2 -m maskoban.training --preset best ...

Every process holds the whole network and draws the noise of the whole batch, which is cheap, but computes the loss of
its own part of the boards. Gradients are averaged, so every process takes the same step: that of one process with the
whole batch. Only the first process measures, writes files and prints.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar, cast

import torch
from torch import Tensor
from torch import distributed as dist

from maskoban.errors import MaskobanError

T = TypeVar("T")

_TIMEOUT = timedelta(hours=2)  # the others wait while the first process samples boards and solves them


@dataclass(frozen=True)
class Processes:
    """The processes of a run, and which of them this is.

    >>> Processes(count=4, rank=1).part(100)
    slice(25, 50, None)
    """

    count: int = 1
    rank: int = 0

    @property
    def first(self) -> bool:
        return self.rank == 0

    def part(self, batch: int) -> slice:
        """The boards of a batch that belong to this process."""
        if batch % self.count:
            raise MaskobanError(f"batch: expected a multiple of the {self.count} processes, got {batch}")
        each = batch // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its mean over all processes."""
        if self.count == 1:
            return
        own = list(tensors)
        flat = torch.cat([tensor.flatten() for tensor in own])
        with _connection_errors():
            dist.all_reduce(flat)
        flat /= self.count
        means = torch.split(flat, [tensor.numel() for tensor in own])
        torch._foreach_copy_(own, [mean.view_as(tensor) for mean, tensor in zip(means, own, strict=True)])

    def agree(self, seconds: float, stop: bool) -> tuple[float, bool]:
        """The first process's seconds, and whether any process is to stop: the same result on every one.

        Clocks differ, and Ctrl-C reaches processes at different times. All must stop after the same step, or the others
        would wait for ever for the gradients of the one that stopped.
        """
        if self.count == 1:
            return seconds, stop
        shared = torch.tensor([seconds if self.first else 0.0, float(stop)], dtype=torch.float64)
        with _connection_errors():
            dist.all_reduce(shared)
        return shared[0].item(), shared[1].item() > 0

    def wait(self) -> None:
        """Wait for all. Torchrun ends all processes when one leaves early, and one may still be saving."""
        self.agree(0.0, False)

    def from_first(self, make: Callable[[], T]) -> T:
        """The result of ``make()`` on the first process, on all of them: the others do not need its files."""
        if self.count == 1:
            return make()
        shared = [_tried(make) if self.first else None]
        dist.broadcast_object_list(shared)
        made, problem = cast(tuple[T, str | None], shared[0])
        if problem is not None:
            raise MaskobanError(problem)
        return made

    def together(self, make: Callable[[], T]) -> T:
        """``make()`` on every process. Where it fails on any, all exit, and the first one reports the error."""
        if self.count == 1:
            return make()
        made, problem = _tried(make)
        problems: list[str | None] = [None] * self.count
        dist.all_gather_object(problems, problem)
        reported = next((p for p in problems if p is not None), None)
        if reported is not None and self.first:
            raise MaskobanError(reported)
        if reported is not None:
            sys.exit(0)  # with any other code, torchrun would end the first process before it reports
        return cast(T, made)


def _tried(make: Callable[[], T]) -> tuple[T | None, str | None]:
    """The result, or the error message."""
    try:
        return make(), None
    except MaskobanError as error:
        return None, str(error)


@contextmanager
def _connection_errors() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # a process that died closes its connections
        why = str(error).splitlines()[0]
        raise MaskobanError(f"cannot reach the other processes of this run: {why}") from error


@contextmanager
def joined(device: str) -> Iterator[tuple[Processes, str]]:
    """Join the other processes, if torchrun started this one; gives the processes and the device of this one.

    >>> with joined("cpu") as (processes, device):
    ...     processes.count, device
    (1, 'cpu')
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:  # not started by torchrun
        yield Processes(), device
        return
    # This module's functions have the group of all processes as a default argument, bound at import. Imported later (by
    # an optimiser), it would keep the group alive, and its threads would crash the interpreter at exit.
    import torch.distributed.nn  # noqa: F401

    on_cuda = device.startswith("cuda")
    # Gradients travel between GPUs; what the processes agree on travels between CPUs.
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_cuda else "gloo", timeout=_TIMEOUT)
    own = f"cuda:{os.environ['LOCAL_RANK']}" if on_cuda else device
    orderly = True
    try:
        yield Processes(dist.get_world_size(), dist.get_rank()), own
    except Exception:
        orderly = False  # the others still wait for this process: leaving the group might take for ever
        raise
    finally:
        if orderly:
            dist.destroy_process_group()
