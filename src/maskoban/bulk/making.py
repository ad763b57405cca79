"""Making a dataset: which shards are missing, who makes them, and when it is enough.

An engine is handed shards and gives receipts, in any order. All that decides what is in the dataset is here and
in the pipeline, so engines cannot differ in what they make.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from maskoban.bars import Progress
from maskoban.boards import MaskobanError
from maskoban.bulk.dataset import Dataset
from maskoban.bulk.job import Job
from maskoban.bulk.models import anywhere, origin
from maskoban.bulk.work import Run, Work


def make(
    job: Job,
    out: str | Path,
    model: str = "best",
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Make a dataset, or go on with it; returns its manifest.

    ``engine``, ``workers`` and ``address`` (of a Ray cluster) say who does the work, and change nothing in the files.

    >>> make(Job(100_000, seed=7, steps=8), "dataset")["boards"]  # doctest: +SKIP
    100000
    """
    source = anywhere(model)
    dataset = Dataset(Path(out).resolve())
    work = Work(job, source, origin(source, job), str(dataset.path))
    with dataset.begun(job.as_dict() | asdict(work.origin)):
        kept = dataset.complete()
        if kept is not None:
            return kept
        making = _Making(job, dataset, progress)
        if not making.enough():
            try:
                with _engine(work, engine, workers, address) as run:
                    making.go_on(run)
            except _TooFew:
                raise
            except MaskobanError as error:
                stays = (
                    "; what is finished stays, and the same command goes on from there" if making.made else ""
                )
                raise MaskobanError(f"{error}{stays}") from None
        return making.finish()


def _engine(work: Work, engine: str, workers: int | None, address: str | None) -> AbstractContextManager[Run]:
    if engine == "ray":
        from maskoban.bulk.on_ray import ray_engine

        return ray_engine(work, workers, address)
    from maskoban.bulk.local import local_engine

    return local_engine(work, workers)


class _TooFew(MaskobanError):
    """So few boards are as asked that going on would not help."""


class _Making:
    """The shards that are made, by index, and which are missing."""

    def __init__(self, job: Job, dataset: Dataset, progress: Progress | None) -> None:
        self.job, self.dataset, self._progress = job, dataset, progress
        whole = dataset.whole()
        names = {index: job.shard(index).name for index in self._there()}
        self.made = {index: whole[name] for index, name in names.items() if name in whole}

    def go_on(self, run: Run) -> None:
        """Have missing shards made until there are enough."""
        while not self.enough():
            missing = self._missing()
            indices = {self.job.shard(index).name: index for index in missing}
            for receipt in run([self.job.shard(index) for index in missing]):
                self.dataset.note(receipt)
                self.made[indices[receipt.name]] = receipt
                if self._progress is not None:
                    rows = sum(each.rows for each in self.made.values())
                    self._progress(min(rows, self.job.count), self.job.count)
                if self.enough():
                    break

    def enough(self) -> bool:
        """Whether the shards made, from the first to the first gap, hold all the boards that are wanted."""
        return self._needed() is not None

    def finish(self) -> dict[str, Any]:
        """Drop what is beyond the last board wanted, and describe the rest."""
        needed = self._needed()
        assert needed is not None
        self.dataset.tidy()  # workers that were no longer wanted ended in the middle of a file
        for index in self._there():
            if index >= needed:
                (self.dataset.data / self.job.shard(index).name).unlink()
        receipts = [self.made[index] for index in range(needed)]
        beyond = sum(receipt.rows for receipt in receipts) - self.job.count
        if beyond:
            last = receipts[-1]
            rows = self.dataset.rows(last.name)
            receipts[-1] = self.dataset.put(last.name, rows.slice(0, last.rows - beyond))
        return self.dataset.finish(receipts)

    def _needed(self) -> int | None:
        """How many shards from the first on hold the boards that are wanted; None while they do not."""
        rows = 0
        for index in range(self.job.most_shards):
            if index not in self.made:
                return None
            rows += self.made[index].rows
            if rows >= self.job.count:
                return index + 1
        raise _TooFew(f"{self.job.too_few(rows)}; gave up")

    def _missing(self) -> list[int]:
        """The shards to make next: all of them, or where boards are left out as many as will probably do."""
        most = self.job.most_shards
        if self.job.filtered:
            likely = math.ceil(self.job.count / self.job.shard_size)
            if self.made:
                rows = sum(receipt.rows for receipt in self.made.values())
                likely = math.ceil(1.02 * likely * len(self.made) * self.job.shard_size / max(rows, 1))
                # One more than there are at least; and a first impression may mislead.
                likely = min(max(likely, len(self.made) + 1), 4 * len(self.made))
            most = min(likely, most)
        return [index for index in range(most) if index not in self.made]

    def _there(self) -> list[int]:
        """The shards that have a file, in order; a file that is no shard is refused."""
        indices = []
        for path in sorted(self.dataset.data.iterdir()):
            parts = path.stem.rsplit("-", 2)
            index = int(parts[1]) // self.job.shard_size if len(parts) == 3 and parts[1].isdigit() else 0
            if path.name != self.job.shard(index).name:
                raise MaskobanError(f"{path}: no file of this dataset; expected only its shards there")
            indices.append(index)
        return indices
