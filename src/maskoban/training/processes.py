"""Training by several processes, on one machine or many, that torchrun starts.

    torchrun --nproc-per-node 2 -m maskoban.training --preset best ...

Every process holds the whole network and draws the noise of the whole batch, which is cheap, but learns from its own
part of the boards only. The gradients are then averaged, so that every process takes the same step, the one
that a single process with the whole batch would take. The first process alone measures, writes and speaks.
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

from maskoban.boards.errors import MaskobanError

T = TypeVar("T")

_PATIENCE = timedelta(hours=2)  # the others wait while the first process draws boards and has them judged


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
        """The boards of a batch that are this process's to learn from."""
        if batch % self.count:
            raise MaskobanError(
                f"a batch of {batch} boards cannot be shared out evenly among {self.count} processes"
            )
        each = batch // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its mean over all processes."""
        if self.count == 1:
            return
        own = list(tensors)
        flat = torch.cat([tensor.flatten() for tensor in own])
        with _others_there():
            dist.all_reduce(flat)
        flat /= self.count
        means = torch.split(flat, [tensor.numel() for tensor in own])
        torch._foreach_copy_(own, [mean.view_as(tensor) for mean, tensor in zip(means, own, strict=True)])

    def agree(self, seconds: float, stop: bool) -> tuple[float, bool]:
        """The first process's seconds, and whether any process is to stop: the same answer on every one.

        Clocks differ, and Ctrl-C reaches one process a little before another; but all must leave after the same step,
        or the others would wait for ever for the gradients of the one that left.
        """
        if self.count == 1:
            return seconds, stop
        told = torch.tensor([seconds if self.first else 0.0, float(stop)], dtype=torch.float64)
        with _others_there():
            dist.all_reduce(told)
        return told[0].item(), told[1].item() > 0

    def wait(self) -> None:
        """Go on when all are here. Torchrun ends all processes when one leaves early, and one may still be saving."""
        self.agree(0.0, False)

    def from_first(self, make: Callable[[], T]) -> T:
        """What the first process makes (or fails to), on all of them: the others need none of the files it reads."""
        if self.count == 1:
            return make()
        told = [_tried(make) if self.first else None]
        dist.broadcast_object_list(told)
        made, problem = cast(tuple[T, str | None], told[0])
        if problem is not None:
            raise MaskobanError(problem)
        return made

    def together(self, make: Callable[[], T]) -> T:
        """``make()`` on every process; where it fails on any, all leave, and the first one says why."""
        if self.count == 1:
            return make()
        made, problem = _tried(make)
        problems: list[str | None] = [None] * self.count
        dist.all_gather_object(problems, problem)
        said = next((p for p in problems if p is not None), None)
        if said is not None and self.first:
            raise MaskobanError(said)
        if said is not None:
            sys.exit(0)  # with any other code, torchrun would end the first process before it spoke
        return cast(T, made)


def _tried(make: Callable[[], T]) -> tuple[T | None, str | None]:
    """What was made, or the sentence that says why it could not be."""
    try:
        return make(), None
    except MaskobanError as error:
        return None, str(error)


@contextmanager
def _others_there() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # a process that died closes its connections
        why = str(error).splitlines()[0]
        raise MaskobanError(f"cannot reach the other processes of this run: {why}") from error


@contextmanager
def joined(device: str) -> Iterator[tuple[Processes, str]]:
    """Meet the other processes, if torchrun started this one; with them, the device that is this process's.

    >>> with joined("cpu") as (processes, device):
    ...     processes.count, device
    (1, 'cpu')
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:  # not started by torchrun
        yield Processes(), device
        return
    # Its functions have the group of all processes as their default, the one there is when they are first imported (an
    # optimiser does that): the group would outlive its end, and its threads bring the interpreter down in leaving.
    import torch.distributed.nn  # noqa: F401

    on_cuda = device.startswith("cuda")
    # Gradients travel between GPUs directly; what is agreed on, as plain numbers, by the processors.
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_cuda else "gloo", timeout=_PATIENCE)
    own = f"cuda:{os.environ['LOCAL_RANK']}" if on_cuda else device
    orderly = True
    try:
        yield Processes(dist.get_world_size(), dist.get_rank()), own
    except Exception:
        orderly = False  # the others still wait for this process: to part from them now might take for ever
        raise
    finally:
        if orderly:
            dist.destroy_process_group()
