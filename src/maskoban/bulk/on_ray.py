"""The engine for clusters: Ray Data, with actors that sample and tasks that annotate.

Ray restarts workers that die; a shard that is made twice has the same bytes. The tasks write the shards, so every
machine of a cluster must see the dataset's folder.
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

from maskoban.bulk.dataset import ShardFile
from maskoban.bulk.job import Shard
from maskoban.bulk.pipeline import sample
from maskoban.bulk.run import Engine, Work, memory_errors
from maskoban.diffusion.model import Model
from maskoban.errors import MaskobanError

try:
    import ray
    import ray.data
    from ray.exceptions import NodeDiedError, OutOfMemoryError, RayActorError, RayError, WorkerCrashedError
except ImportError:
    raise MaskobanError("the Ray engine needs ray: pip install 'maskoban[bulk]'") from None

#: Seconds in which a cluster must answer.
CONNECT_SECONDS = 20.0

#: How often a shard is retried whose worker died.
RETRIES = 3

#: Columns of one row, as Ray Data passes them on: a shard, then its boards, then its file.
Batch = dict[str, Any]


@contextmanager
def ray_engine(work: Work, workers: int | None = None, address: str | None = None) -> Iterator[Engine]:
    """An engine on the Ray cluster at this address; without one, on a Ray started on this machine."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))
    if address is not None:
        _check_answers(address)
    options = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
    sigterm = signal.getsignal(signal.SIGTERM)
    try:
        with _no_stderr():
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **options)
    except (ConnectionError, RuntimeError, OSError) as error:
        raise MaskobanError(f"Ray does not start: {str(error).splitlines()[0]}") from None
    try:
        if callable(sigterm) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, sigterm)  # Ray replaces the handler
        with redirect_stdout(_WithoutRay(sys.stdout)):
            yield partial(_run, work, workers)
    finally:
        with redirect_stdout(io.StringIO()):
            ray.shutdown()


@contextmanager
def _no_stderr() -> Iterator[None]:
    """Discard what Ray's processes write on standard error; errors come back as exceptions."""
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(null)
        os.close(kept)


class _WithoutRay(io.TextIOBase):
    """Standard output without what a thread of Ray prints there about every worker that died."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        from_ray = threading.current_thread().name == "ray_listen_error_messages"
        return len(text) if from_ray else self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()


def _check_answers(address: str) -> None:
    """Let another process look for the cluster: Ray itself would wait for minutes, and cannot be interrupted."""
    command = [sys.executable, "-c", "import ray, sys; ray.init(sys.argv[1], log_to_driver=False)", address]
    try:
        subprocess.run(command, check=True, timeout=CONNECT_SECONDS, capture_output=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        raise MaskobanError(f"no Ray cluster answers at {address}") from None


def _run(work: Work, workers: int | None, shards: Sequence[Shard]) -> Iterator[ShardFile]:
    resources = ray.cluster_resources()
    actors = workers or int(resources.get("CPU", 1))
    sampling: dict[str, float] = {"num_cpus": 0.5}  # an actor and a task share a core
    annotating: dict[str, float] = {"num_cpus": 0.5}
    if work.job.device != "cpu":
        actors = int(resources.get("GPU", 0))
        sampling, annotating = {"num_cpus": 0, "num_gpus": 1}, {"num_cpus": 1}
    if not actors:
        raise MaskobanError(f"--device {work.job.device}: expected a GPU, but Ray has none")
    ray.data.DataContext.get_current().enable_progress_bars = False
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Without retries as arguments Ray restarts a worker that always dies for ever. Ray 2.64 removes the arguments.
    warnings.filterwarnings("ignore", message="`ray_remote_args` is deprecated")
    made = (
        ray.data.from_items([asdict(shard) for shard in shards], override_num_blocks=len(shards))
        .map_batches(
            _Sampler,
            batch_size=1,
            fn_constructor_args=(work,),
            compute=ray.data.ActorPoolStrategy(size=min(actors, len(shards))),
            max_task_retries=RETRIES,
            **sampling,
        )
        .map_batches(_annotate, batch_size=1, fn_args=(work,), max_retries=RETRIES, **annotating)
    )
    try:
        for row in made.iter_rows():
            if row["error"]:
                raise MaskobanError(row["error"])
            file = ShardFile(**json.loads(row["file"]))
            if not _appears(work.folder / "data" / file.name):
                raise MaskobanError(
                    f"{work.folder}: a worker on another machine wrote a shard that this machine does not see; "
                    "expected a folder that all machines share"
                )
            yield file
    except RayError as error:
        raise MaskobanError(_sentence(error)) from None


def _appears(path: Path, seconds: float = 10.0) -> bool:
    """Whether a file is there, or appears soon: shared folders may show new files late."""
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def _sentence(error: RayError) -> str:
    if isinstance(error, OutOfMemoryError | WorkerCrashedError | RayActorError | NodeDiedError):
        return "a worker was killed repeatedly, most likely because memory ran out; fewer --workers need less"
    cause = str(error).partition("\nThe above exception was")[0]  # Ray's own advice follows
    return f"Ray gave up: {cause.strip().splitlines()[-1].strip()}"


class _Sampler:
    """An actor: loads the model once, then samples one shard after another."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._model: Model | None = None

    def __call__(self, batch: Batch) -> Batch:
        try:
            with memory_errors():
                self._model = self._model or self._work.load()
                boards = sample(self._model, self._work.job, _shard(batch))
        except MaskobanError as error:
            return {**batch, "shape": [[0, 0, 0]], "boards": [b""], "error": [str(error)]}
        return {**batch, "shape": [boards.shape], "boards": [boards.tobytes()], "error": [""]}


def _annotate(batch: Batch, work: Work) -> Batch:
    """A task: writes the rows of a shard. Errors are passed on as text: Ray would wrap them in pages."""
    if batch["error"][0]:
        return {"file": [""], "error": batch["error"]}
    boards = np.frombuffer(batch["boards"][0], np.uint8).reshape(batch["shape"][0])
    try:
        with memory_errors():
            return {"file": [json.dumps(asdict(work.make(_shard(batch), boards)))], "error": [""]}
    except MaskobanError as error:
        return {"file": [""], "error": [str(error)]}


def _shard(batch: Batch) -> Shard:
    return Shard(*(int(batch[name][0]) for name in ("seed", "first", "count")))
