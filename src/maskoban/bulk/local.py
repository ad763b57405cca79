"""The engine for one machine: a pool of processes.

On a cpu every process draws and judges its own shards. On another device this process draws, and the pool
judges behind it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing.connection import Connection

from maskoban.boards import MaskobanError, Tokens
from maskoban.bulk.dataset import Receipt
from maskoban.bulk.job import Job, Shard
from maskoban.bulk.models import load_model
from maskoban.bulk.pipeline import draw
from maskoban.bulk.work import Run, Work, travelling
from maskoban.cores import cores
from maskoban.diffusion.model import Model

Drawer = Callable[[Shard], Tokens | None]


@contextmanager
def local_engine(work: Work, workers: int | None = None) -> Iterator[Run]:
    """Something that makes shards on this machine, on all cores or with so many workers.

    >>> with local_engine(work) as run:  # doctest: +SKIP
    ...     receipts = list(run([Shard(0, 0, 64)]))
    """
    count = workers or cores()
    with _pool(count) as pool:
        drawn = _left_to_the_pool if work.job.device == "cpu" else _drawer(work)
        yield partial(_run, pool, 2 * count, work, drawn)


def _run(
    pool: ProcessPoolExecutor, most: int, work: Work, drawn: Drawer, shards: Sequence[Shard]
) -> Iterator[Receipt]:
    """Receipts as shards are finished. ``most`` may wait: no worker idles, and boards do not pile up here."""
    waiting: set[Future[Receipt]] = set()
    finished = False
    try:
        for shard in shards:
            waiting.add(pool.submit(_made, work, shard, drawn(shard)))
            patience = None if len(waiting) >= most else 0
            done, waiting = wait(waiting, patience, FIRST_COMPLETED)
            yield from (each.result() for each in done)
            finished = finished or bool(done)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in done)
            finished = finished or bool(done)
    except BrokenProcessPool:
        # A worker begins by running the script it was started from, and must not start workers itself.
        unguarded = '; or, in a script, because if __name__ == "__main__": is missing'
        raise MaskobanError(
            "a worker was killed, most likely because memory ran out; fewer --workers need less"
            + ("" if finished else unguarded)
        ) from None


def _left_to_the_pool(shard: Shard) -> None:
    return None


def _drawer(work: Work) -> Drawer:
    model = load_model(work.source, work.job)
    return lambda shard: draw(model, work.job, shard)


def _made(work: Work, shard: Shard, boards: Tokens | None) -> Receipt:
    """In a worker: a shard made, of boards drawn elsewhere or here."""
    with travelling():
        if boards is None:
            boards = draw(_model(work.source, work.job), work.job, shard)
        return work.judged(boards, shard)


@cache
def _model(source: str, job: Job) -> Model:
    return load_model(source, job)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end at once when they are no longer wanted, or when this one dies, however it dies."""
    context = multiprocessing.get_context("spawn")
    wanted, us = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(wanted,))
    try:
        yield pool
    finally:
        us.close()
        pool.shutdown(cancel_futures=True)
        wanted.close()


def _begin(wanted: Connection) -> None:
    """In a new worker: leave Ctrl-C and what else ends all at once to the first process, and leave with it."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(wanted,), daemon=True).start()


def _leave_with(wanted: Connection) -> None:
    wanted.poll(None)  # nothing is ever sent: this returns when the other end is closed
    os._exit(0)
