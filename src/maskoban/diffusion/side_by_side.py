"""Batches of boards in several threads at once: they end together, and are counted together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Result = TypeVar("_Result")

#: How much of boards is done: one number for all of them, or one for each.
Share = float | NDArray[np.floating[Any]]


def cut(boards: int, batch: int) -> list[slice]:
    """The batches of so many boards.

    >>> cut(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + batch, boards)) for start in range(0, boards, batch)]


def side_by_side(
    overlap: int, work: Callable[[slice, Callable[[], None]], _Result], parts: Sequence[slice]
) -> list[_Result]:
    """What ``work`` makes of all parts, ``overlap`` at once.

    What one raises ends the others, for they call the function they are given after every evaluation.

    >>> side_by_side(2, lambda part, check: part.stop, cut(5, 2))
    [2, 4, 5]
    """
    gave_up: list[BaseException] = []  # why, the first reason first

    def check() -> None:
        if gave_up:
            raise CancelledError

    def one(part: slice) -> _Result:
        try:
            return work(part, check)
        except BaseException as reason:
            gave_up.append(reason)  # the other threads know at once; the pool hears in the order of parts
            raise

    if overlap == 1:
        return [one(part) for part in parts]
    with ThreadPoolExecutor(max_workers=overlap) as pool:
        try:
            return list(pool.map(one, parts))
        except BaseException as reason:
            gave_up.append(reason)
            pool.shutdown(wait=False, cancel_futures=True)
            raise gave_up[0] from None


class Done:
    """Counts boards by the shares of them that are done, and tells ``progress`` how much of a ``total`` that is."""

    def __init__(self, boards: int, total: int, progress: Callable[[int, int], None] | None) -> None:
        self._share, self._sum, self._total = np.zeros(boards), 0.0, total
        self._progress, self._telling = progress, Lock()

    def tell(self, which: slice | NDArray[np.int64], share: Share) -> None:
        """So much of each of these boards is done."""
        if self._progress is None:
            return
        with self._telling:  # or one thread's older number could come after another's newer one
            self._sum += float((share - self._share[which]).sum())
            self._share[which] = share
            done = self._total * self._sum / len(self._share)
            self._progress(int(done + 1e-6), self._total)  # sums of shares round a hair off
