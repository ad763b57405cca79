"""Making a dataset: which shards are missing, the processes that make them, and when there are enough boards.

An engine takes shards and gives their files, in any order. What is in the dataset is decided here and in the pipeline,
so that it does not depend on the engine.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

from maskoban._util.cpu import cpu_count
from maskoban._util.progress import OnProgress
from maskoban.boards import Tokens
from maskoban.bulk.dataset import Dataset, Manifest, ShardFile
from maskoban.bulk.job import Job, Origin, Shard
from maskoban.bulk.pipeline import annotate, sample
from maskoban.bulk.table import table
from maskoban.diffusion.loading import load, model_folder, shipped_models, weights_hash
from maskoban.diffusion.model import Model, TooRareError
from maskoban.errors import MaskobanError

#: Makes shards: gives their files as they are finished, in any order.
Engine = Callable[[Sequence[Shard]], Iterator[ShardFile]]


@dataclass(frozen=True)
class Work:
    """What a worker needs: the job, the model to load, its origin, and the dataset's folder."""

    job: Job
    source: str
    origin: Origin
    folder: Path

    def load(self) -> Model:
        """The model as a worker loads it: with one thread on a CPU, where there are many workers."""
        return load(self.source, self.job.device, threads=1)

    def make(self, shard: Shard, boards: Tokens) -> ShardFile:
        """Write the rows of a shard's boards."""
        rows = table(annotate(boards, self.job, shard, self.origin))
        return Dataset(self.folder).write(shard.name, rows)


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn a ``MemoryError`` in a worker into a sentence."""
    try:
        yield
    except MemoryError:
        raise MaskobanError("a worker ran out of memory; fewer --workers need less") from None


def make(
    job: Job,
    out: str | Path,
    model: str = "best",
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    address: str | None = None,
    on_progress: OnProgress | None = None,
) -> Manifest:
    """Make a dataset in the folder ``out``, or continue it.

    The files do not depend on ``engine``, ``workers`` and ``address`` (of a Ray cluster).

    >>> make(Job(100_000, seed=7), "dataset").boards  # doctest: +SKIP
    100000
    """
    source = model if model in shipped_models() else str(model_folder(model).resolve())
    dataset = Dataset(Path(out).resolve())
    work = Work(job, source, _origin(source, job), dataset.path)
    with dataset.opened(job.settings() | asdict(work.origin)):
        manifest = dataset.complete()
        if manifest is not None:
            return manifest
        made = _shards_there(job, dataset)
        if _shards_needed(job, made) is None:
            try:
                with _engine(work, engine, workers, address) as run:
                    _make_missing(job, dataset, made, run, on_progress)
            except MaskobanError as error:
                if isinstance(error, TooRareError) or not made:
                    raise
                raise MaskobanError(
                    f"{error}; finished shards stay, and the same command continues"
                ) from None
        return _finish(job, dataset, made)


def _origin(source: str, job: Job) -> Origin:
    """The origin of all boards. A sampler that the model does not support is an error."""
    from maskoban import __version__

    model = load(source)
    model.sampler(job.sampler)
    return Origin(model.name, weights_hash(model.folder, job.sampler.precision), __version__)


def _engine(
    work: Work, engine: str, workers: int | None, address: str | None
) -> AbstractContextManager[Engine]:
    if engine == "ray":
        from maskoban.bulk.on_ray import ray_engine

        return ray_engine(work, workers, address)
    return local_engine(work, workers)


# --- which shards ---------------------------------------------------------------------------------------------------


_Made = dict[int, ShardFile]  # by index


def _make_missing(
    job: Job, dataset: Dataset, made: _Made, run: Engine, on_progress: OnProgress | None
) -> None:
    while _shards_needed(job, made) is None:
        indices = {job.shard(index).name: index for index in _missing(job, made)}
        for shard in run([job.shard(index) for index in indices.values()]):
            dataset.log([shard])
            made[indices[shard.name]] = shard
            if on_progress is not None:
                on_progress(min(sum(each.rows for each in made.values()), job.count), job.count)
            if _shards_needed(job, made) is not None:
                break


def _finish(job: Job, dataset: Dataset, made: _Made) -> Manifest:
    """Delete the shards beyond the last board of the job, and finish the dataset."""
    needed = _shards_needed(job, made)
    assert needed is not None
    dataset.remove_temporary_files()  # of workers that were stopped
    for index in _indices_there(job, dataset):
        if index >= needed:
            (dataset.data / job.shard(index).name).unlink()
    shards = [made[index] for index in range(needed)]
    if beyond := sum(shard.rows for shard in shards) - job.count:
        last = shards[-1]
        shards[-1] = dataset.write(last.name, dataset.read(last).slice(0, last.rows - beyond))
    return dataset.finish(shards)


def _shards_needed(job: Job, made: _Made) -> int | None:
    """How many shards, from the first on, hold all boards of the job; None while shards are missing."""
    rows = 0
    for index in range(job.max_shards):
        if index not in made:
            return None
        rows += made[index].rows
        if rows >= job.count:
            return index + 1
    sampled = job.max_shards * job.shard_size
    raise TooRareError(f"only {rows:,} of {sampled:,} sampled boards match ({job.board_filter}); gave up")


def _missing(job: Job, made: _Made) -> list[int]:
    """The shards to make next: all that are missing; with a filter, as many as are probably enough."""
    most = job.max_shards
    if job.board_filter:
        likely = math.ceil(job.count / job.shard_size)
        if made:
            rows = sum(shard.rows for shard in made.values())
            likely = math.ceil(1.02 * likely * len(made) * job.shard_size / max(rows, 1))
            # At least one more, and at most four times as many: the first shards may not be typical.
            likely = min(max(likely, len(made) + 1), 4 * len(made))
        most = min(likely, most)
    return [index for index in range(most) if index not in made]


def _shards_there(job: Job, dataset: Dataset) -> _Made:
    logged = dataset.logged()
    names = {index: job.shard(index).name for index in _indices_there(job, dataset)}
    return {index: logged[name] for index, name in names.items() if name in logged}


def _indices_there(job: Job, dataset: Dataset) -> list[int]:
    """The shards that have a file. A file that is no shard is an error."""
    indices = []
    for path in sorted(dataset.data.iterdir()):
        parts = path.stem.rsplit("-", 2)
        index = int(parts[1]) // job.shard_size if len(parts) == 3 and parts[1].isdecimal() else 0
        if path.name != job.shard(index).name:
            raise MaskobanError(f"{path}: expected only shards of this dataset in the folder")
        indices.append(index)
    return indices


# --- the engine for one machine -------------------------------------------------------------------------------------


@contextmanager
def local_engine(work: Work, workers: int | None = None) -> Iterator[Engine]:
    """An engine of processes on this machine, one a core by default.

    On a CPU every process samples and annotates its own shards. On another device this process samples.
    """
    count = workers or cpu_count()
    with _pool(count) as pool:
        model = None if work.job.device == "cpu" else work.load()

        def run(shards: Sequence[Shard]) -> Iterator[ShardFile]:
            waiting: set[Future[ShardFile]] = set()
            finished = False
            try:
                for shard in shards:
                    boards = None if model is None else sample(model, work.job, shard)
                    waiting.add(pool.submit(_make_in_worker, work, shard, boards))
                    # Enough shards wait that no worker is idle, and few enough that boards do not fill the memory.
                    block = None if len(waiting) >= 2 * count else 0
                    done, waiting = wait(waiting, block, FIRST_COMPLETED)
                    yield from (each.result() for each in done)
                    finished = finished or bool(done)
                for each in as_completed(waiting):
                    yield each.result()
                    finished = True
            except BrokenProcessPool:
                # A worker first runs the script that started it, which must not start workers again.
                script = (
                    "" if finished else '; or, in a script, because if __name__ == "__main__": is missing'
                )
                raise MaskobanError(
                    f"a worker was killed, most likely because memory ran out; fewer --workers need less{script}"
                ) from None

        yield run


def _make_in_worker(work: Work, shard: Shard, boards: Tokens | None) -> ShardFile:
    with memory_errors():
        return work.make(shard, sample(_loaded(work), work.job, shard) if boards is None else boards)


@cache
def _loaded(work: Work) -> Model:
    return work.load()


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end when the block ends, or when this process dies for any reason."""
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(theirs,))
    try:
        yield pool
    finally:
        ours.close()
        pool.shutdown(cancel_futures=True)
        theirs.close()


def _start_worker(parent: Connection) -> None:
    """In a new worker: ignore the signals that end the first process, and end with it."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: Connection) -> None:
    parent.poll(None)  # nothing is ever sent: it returns when the other end is closed
    os._exit(0)
