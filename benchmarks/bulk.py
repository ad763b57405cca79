"""How fast a dataset is made, what each stage costs, and which one is the bottleneck.

    python benchmarks/bulk.py                                      every stage alone, on one core
    python benchmarks/bulk.py --model small --steps 8 --count 20000   the whole: sampling and annotating in parallel
    python benchmarks/bulk.py --device cuda --count 1000000        the same with a GPU

Runs from a source checkout: PYTHONPATH=src, NumPy, the native core, and torch or ONNX Runtime are enough. With pyarrow
the rows are encoded as Parquet too, and counted; no rows are kept. Rates are boards a second.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from maskoban.boards import exact_ids, ids
from maskoban.boards.tiles import board_texts
from maskoban.bulk.job import Job, Origin, Shard
from maskoban.bulk.pipeline import annotate, sample
from maskoban.diffusion.loading import load
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.solving import Limits, repair_many, solve_many

ORIGIN = Origin("benchmark", "0", "0")
PARQUET = find_spec("pyarrow") is not None


@dataclass(frozen=True)
class Annotated:
    """What a worker sends back of a shard: little, so that sending it costs nothing."""

    verdicts: Counter[str]
    ratings: Counter[str]
    ids: list[bytes]
    bytes: int
    cpu_seconds: float


def annotated(boards: np.ndarray, job: Job, shard: Shard) -> Annotated:
    start = time.process_time()
    columns = annotate(boards, job, shard, ORIGIN)
    size = 0
    if PARQUET:
        from maskoban.bulk.table import parquet_bytes, table

        size = len(parquet_bytes(table(columns)))
    return Annotated(
        Counter(columns["verdict"]),
        Counter(word for word in columns["rating"] if word),
        [bytes.fromhex(one_id) for one_id in columns["id"]],
        size,
        time.process_time() - start,
    )


def stages(source: str, job: Job) -> None:
    """Every stage alone on the same boards, on one core; sampling on the job's device."""
    model = load(source, job.device, threads=1)
    shard = Shard(job.seed, 0, job.count)
    sample(model, replace(job, count=1), Shard(job.seed, 0, 1))  # compiled and warm
    boards, sampling = timed(lambda: sample(model, job, shard))
    limits = Limits(states=job.states)
    verdicts, proving = timed(lambda: solve_many(boards, threads=1, limits=limits))
    solved = boards[verdicts.solved]
    rates = {
        f"sample on {job.device}": sampling,
        "prove a verdict": proving,
        "find the fewest pushes of what is solved": timed(lambda: solve_many(solved, "pushes", threads=1))[1],
        "measure the effort of what is solved": timed(lambda: solve_many(solved, "effort", threads=1))[1],
        "ids": timed(lambda: ids(boards))[1],
        "exact ids": timed(lambda: exact_ids(boards))[1],
        "text": timed(lambda: board_texts(boards))[1],
    }
    columns, annotating = timed(lambda: annotate(boards, job, shard, ORIGIN))
    if PARQUET:
        from maskoban.bulk.table import parquet_bytes, table

        parquet_bytes(table(columns))  # imported and warm
        data, rates["Parquet"] = timed(lambda: parquet_bytes(table(columns)))
    total = sampling + annotating + rates.get("Parquet", 0)
    print(f"{job.count:,} boards, {len(solved) / job.count:.1%} solved; one core" + _beside(job))
    for name, seconds in rates.items():
        rate = job.count / seconds
        text = f"{rate:,.0f}" if rate >= 100 else f"{rate:.2f}"
        print(f"{name:<42} {text:>12} boards/s {seconds / total:>7.1%} of the work")
    whole = job.count / (annotating + rates.get("Parquet", 0))
    print(f"{'all but sampling':<42} {whole:>12,.0f} boards/s on one core")
    print(f"one sampler keeps {job.count / sampling / whole:.2f} cores busy with annotating")
    if PARQUET:
        print(f"{len(data) / job.count:.0f} bytes a board as Parquet")
    few = boards[~verdicts.solved][:100]
    if len(few):
        _, seconds = timed(lambda: repair_many(few, threads=1, limits=limits))
        print(f"with --repair each of the unsolved costs {1e3 * seconds / len(few):.1f} ms more")


def whole(source: str, job: Job, workers: int, keep: Path | None) -> None:
    """Sampling here, annotating in other processes, side by side."""
    kept: list[np.ndarray] = []
    begun = time.perf_counter()
    model = load(source, job.device, threads=1)
    sample(model, job, Shard(job.seed, 0, 1))
    warm = time.perf_counter() - begun
    print(f"loaded and warm after {warm:.0f} s; {workers} processes annotate; "
          f"{'rows become Parquet' if PARQUET else 'no pyarrow here: rows are annotated and counted, not encoded'}",
          flush=True)  # fmt: skip
    verdicts: Counter[str] = Counter()
    ratings: Counter[str] = Counter()
    seen: set[bytes] = set()
    size, annotating, sampling, done = 0, 0.0, 0.0, 0
    waiting: set[Future[Annotated]] = set()

    def take(patience: float | None) -> None:
        nonlocal waiting, size, annotating, done
        finished, waiting = wait(waiting, patience, FIRST_COMPLETED)
        for each in finished:
            part = each.result()
            verdicts.update(part.verdicts)
            ratings.update(part.ratings)
            seen.update(part.ids)
            done += len(part.ids)
            size += part.bytes
            annotating += part.cpu_seconds

    gpu = Utilisation() if job.device.startswith("cuda") else None
    start, printed, ours = time.perf_counter(), time.perf_counter(), time.process_time()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for index in range(job.max_shards):
            shard = job.shard(index)
            before = time.perf_counter()
            boards = sample(model, job, shard)
            sampling += time.perf_counter() - before
            if keep:
                kept.append(boards)
            waiting.add(pool.submit(annotated, boards, job, shard))
            take(None if len(waiting) >= 4 * workers else 0)
            if time.perf_counter() - printed > 15:
                printed = time.perf_counter()
                print(f"  {done:,} annotated after {printed - start:.0f} s", flush=True)
        sampled = time.perf_counter() - start
        while waiting:
            take(None)
    seconds = time.perf_counter() - start
    total = sum(verdicts.values())
    cores = len(os.sched_getaffinity(0))
    print(f"{total:,} annotated boards in {seconds / 60:.2f} minutes ({(seconds + warm) / 60:.2f} with loading): "
          f"{total / seconds:,.0f} a second")  # fmt: skip
    print(f"sampling: {job.count / sampling:,.0f} a second, busy {sampling / seconds:.0%} of the time")
    busy = annotating / seconds
    sampling_cores = (time.process_time() - ours) / seconds
    print(
        f"annotating: {total / annotating:,.0f} a second and core; {busy:.1f} of {cores} cores ({busy / cores:.0%})"
    )
    print(f"the sampling process: {sampling_cores:.1f} cores")
    if gpu is not None:
        print(gpu.text())
    limit = "sampling" if sampling > 0.9 * sampled else "annotating"
    print(f"limited by {limit}; the annotators were {seconds - sampled:.1f} s behind at the end")
    print(", ".join(f"{count:,} {name}" for name, count in [*verdicts.most_common(), *ratings.most_common()]))
    print(
        f"{len(seen):,} different puzzles"
        + (f"; {size / total:.0f} bytes a board as Parquet" if size else "")
    )
    if keep:
        np.savez(keep, boards=np.concatenate(kept), polish=job.sampler.sweeps)


class Utilisation:
    """How busy the GPU is, asked of nvidia-smi every second."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        if shutil.which("nvidia-smi"):
            ask = [
                "nvidia-smi",
                "--query-gpu=utilization.gpu,power.draw",
                "--format=csv,noheader,nounits",
                "-l",
                "1",
            ]
            self._smi = subprocess.Popen(ask, stdout=subprocess.PIPE, text=True)
            threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self._smi.stdout or ():
            first = line.split(",")[0].strip()
            if first.isdigit():
                self.seen.append(float(first))

    def text(self) -> str:
        if not self.seen:
            return "GPU: nvidia-smi says nothing"
        self._smi.terminate()
        return f"GPU: busy {np.mean(self.seen):.0f} % of the time, by nvidia-smi"


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def _beside(job: Job) -> str:
    return "" if job.device == "cpu" else f", and {job.device}"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="best")
    p.add_argument("--device", default="cpu")
    p.add_argument("--precision", default="fp32", choices=["fp32", "int8"])
    p.add_argument("--steps", type=int)
    p.add_argument("--temperature", type=float, default=1.0)
    p.add_argument("--polish", type=int, default=0)
    p.add_argument("--critic", action="store_true")
    p.add_argument("--repair", action="store_true")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--boards", type=int, help="for the stages alone (default: 256, 8192 on a GPU)")
    p.add_argument("--count", type=int, help="make so many boards, sampling and annotating side by side")
    p.add_argument("--shard-size", type=int, help="boards sampled at once (default: 512, 16384 on a GPU)")
    p.add_argument("--workers", type=int, help="processes that annotate (default: one a core)")
    p.add_argument("--keep", type=Path, help="with --count: keep the boards in this npz file")
    a = p.parse_args()
    small = a.device == "cpu"
    job = Job(
        count=a.count or a.boards or (256 if small else 8192),
        seed=a.seed, device=a.device, repair=a.repair,
        sampler=SamplerConfig(a.steps, "uniform", a.temperature, a.polish, a.critic, a.precision),
        shard_size=a.shard_size or (512 if small else 16_384),
    )  # fmt: skip
    if a.count:
        whole(a.model, job, a.workers or len(os.sched_getaffinity(0)), a.keep)
    else:
        stages(a.model, job)


if __name__ == "__main__":
    main()
