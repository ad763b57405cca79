"""The engine for clusters: Ray Data, with actors that draw and tasks that judge.

Ray decides what runs where, and starts again what died; a shard that is made twice is the same twice. The
tasks write their shards themselves, so every machine of a cluster must see the folder of the dataset.
"""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from maskoban.boards import MaskobanError
from maskoban.bulk.dataset import Receipt
from maskoban.bulk.job import Shard
from maskoban.bulk.models import load_model
from maskoban.bulk.pipeline import draw
from maskoban.bulk.work import Run, Work, travelling
from maskoban.diffusion.model import Model

try:
    import ray
    import ray.data
    from ray.exceptions import NodeDiedError, OutOfMemoryError, RayActorError, RayError, WorkerCrashedError
except ImportError:
    raise MaskobanError("the Ray engine needs ray: pip install 'maskoban[bulk]'") from None

#: Seconds a cluster has to answer.
PATIENCE = 20.0

#: How often a shard is tried again whose worker died.
TRIES = 3

#: Columns as Ray Data hands them on, here of one row each: a shard, then its boards, then its receipt.
Batch = dict[str, Any]


@contextmanager
def ray_engine(work: Work, workers: int | None = None, address: str | None = None) -> Iterator[Run]:
    """Something that makes shards on the Ray cluster at this address, or on a Ray of its own on this machine.

    >>> with ray_engine(work, address="auto") as run:  # doctest: +SKIP
    ...     receipts = list(run([Shard(0, 0, 64)]))
    """
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_task_oom_retries", str(TRIES))
    if address is not None:
        _check_alive(address)
    ours = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
    try:
        with _quietly(), _told_to_end_as_before():
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **ours)
    except (ConnectionError, RuntimeError, OSError) as error:
        raise MaskobanError(f"Ray does not start: {str(error).splitlines()[0]}") from None
    try:
        with redirect_stdout(_NotFromRay(sys.stdout)):
            yield partial(_run, work, workers)
    finally:
        with redirect_stdout(io.StringIO()):
            ray.shutdown()


@contextmanager
def _quietly() -> Iterator[None]:
    """Without what Ray's own processes write on standard error; what matters comes back as an exception."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)


@contextmanager
def _told_to_end_as_before() -> Iterator[None]:
    """Ray takes SIGTERM for itself when it starts; give it back to whoever had it."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if callable(before) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


class _NotFromRay(io.TextIOBase):
    """Standard output without what a thread of Ray's prints there about every worker that died."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if threading.current_thread().name == "ray_listen_error_messages":
            return len(text)
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()


def _check_alive(address: str) -> None:
    """Have another process look for the cluster: Ray itself would wait for minutes, and not to be stopped."""
    look = [sys.executable, "-c", "import ray, sys; ray.init(sys.argv[1], log_to_driver=False)", address]
    try:
        subprocess.run(look, check=True, timeout=PATIENCE, capture_output=True, env=os.environ)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        raise MaskobanError(f"no Ray cluster answers at {address}") from None


def _run(work: Work, workers: int | None, shards: Sequence[Shard]) -> Iterator[Receipt]:
    there = ray.cluster_resources()
    drawers, drawing, judging = _shares(work, workers or int(there.get("CPU", 1)), int(there.get("GPU", 0)))
    ray.data.DataContext.get_current().enable_progress_bars = False
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Without these tries Ray would start a worker that always dies for ever; it takes them away in 2.64.
    warnings.filterwarnings("ignore", message="`ray_remote_args` is deprecated")
    made = (
        ray.data.from_items([asdict(shard) for shard in shards], override_num_blocks=len(shards))
        .map_batches(
            _Drawer,
            batch_size=1,
            fn_constructor_args=(work,),
            compute=ray.data.ActorPoolStrategy(size=min(drawers, len(shards))),
            max_task_retries=TRIES,
            **drawing,
        )
        .map_batches(_judge, batch_size=1, fn_args=(work,), max_retries=TRIES, **judging)
    )
    try:
        for row in made.iter_rows():
            if row["refused"]:
                raise MaskobanError(row["refused"])
            receipt = Receipt(**json.loads(row["receipt"]))
            if not _seen(Path(work.folder, "data", receipt.name)):
                raise MaskobanError(
                    f"{work.folder}: a shard was written there on another machine and is not seen on this one; "
                    "a cluster needs a folder all its machines share"
                )
            yield receipt
    except RayError as error:
        raise MaskobanError(_sentence(error)) from None


def _seen(path: Path, patience: float = 10.0) -> bool:
    """Whether a file is there, or soon will be: shared folders show what others wrote a little later."""
    end = time.monotonic() + patience
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def _shares(work: Work, cores: int, devices: int) -> tuple[int, dict[str, float], dict[str, float]]:
    """How many actors draw, and what each actor and each judging task is given."""
    if work.job.device == "cpu":
        # A drawer and a judge share a core; the system sees to it that neither waits while the other idles.
        return cores, {"num_cpus": 0.5}, {"num_cpus": 0.5}
    if not devices:
        raise MaskobanError(f"drawing on {work.job.device} needs a GPU, and Ray knows of none")
    return devices, {"num_cpus": 0, "num_gpus": 1}, {"num_cpus": 1}


def _sentence(error: RayError) -> str:
    """What became of a worker, in our words."""
    if isinstance(error, OutOfMemoryError | WorkerCrashedError | RayActorError | NodeDiedError):
        return "a worker was killed again and again, most likely because memory ran out; fewer --workers need less"
    cause = str(error).partition("\nThe above exception was")[0]  # what follows is Ray's own advice
    return f"Ray gave up: {cause.strip().splitlines()[-1].strip()}"


class _Drawer:
    """An actor: loads the model once, then draws shard after shard."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._model: Model | None = None

    def __call__(self, batch: Batch) -> Batch:
        try:
            with travelling():
                self._model = self._model or load_model(self._work.source, self._work.job)
                boards = draw(self._model, self._work.job, _shard(batch))
        except MaskobanError as error:
            return {**batch, "shape": [[0, 0, 0]], "boards": [b""], "refused": [str(error)]}
        return {**batch, "shape": [boards.shape], "boards": [boards.tobytes()], "refused": [""]}


def _judge(batch: Batch, work: Work) -> Batch:
    """A task: a shard's boards judged and written. What went wrong is told, for Ray would wrap it in pages."""
    refused = str(batch["refused"][0])
    if refused:
        return {"receipt": [""], "refused": [refused]}
    boards = np.frombuffer(batch["boards"][0], np.uint8).reshape(batch["shape"][0])
    try:
        with travelling():
            receipt = work.judged(boards, _shard(batch))
    except MaskobanError as error:
        return {"receipt": [""], "refused": [str(error)]}
    return {"receipt": [json.dumps(asdict(receipt))], "refused": [""]}


def _shard(batch: Batch) -> Shard:
    return Shard(*(int(batch[name][0]) for name in ("seed", "first", "count")))
