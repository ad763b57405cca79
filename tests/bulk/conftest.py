"""Fixtures for datasets: a model in a folder, an engine without processes, a finished dataset."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from maskoban.bulk import run
from maskoban.bulk.dataset import Dataset, ShardFile
from maskoban.bulk.job import Job, Shard
from maskoban.bulk.pipeline import sample
from maskoban.bulk.run import Engine, Work
from maskoban.solving.filters import BoardFilter
from tests.bulk.dice import write_dice

SOLVABLE = BoardFilter(only_solvable=True)


@pytest.fixture(scope="session")
def dice(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the model."""
    return str(write_dice(tmp_path_factory.mktemp("models") / "dice"))


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[Shard]:
    """Shards are made in this process, in a shuffled order; lists those that were made."""
    made: list[Shard] = []

    def make(work: Work, shards: Sequence[Shard]) -> Iterator[ShardFile]:
        model = work.load()
        for shard in random.Random(len(shards)).sample(shards, len(shards)):
            made.append(shard)
            yield work.make(shard, sample(model, work.job, shard))

    @contextmanager
    def engine(work: Work, *_: object) -> Iterator[Engine]:
        yield lambda shards: make(work, shards)

    monkeypatch.setattr(run, "_engine", engine)
    return made


@pytest.fixture
def dataset(tmp_path: Path, dice: str, in_process: list[Shard]) -> Path:
    """A finished dataset of 500 boards in 8 shards."""
    run.make(Job(500, seed=7), tmp_path / "dataset", dice)
    in_process.clear()
    return tmp_path / "dataset"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder by its name, byte for byte."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def reverse_a_shard(folder: Path) -> str:
    """Write the rows of a shard in reverse order: a valid Parquet file with another checksum."""
    dataset = Dataset(folder)
    shard = dataset.finished().shards[2]
    rows = dataset.read(shard)
    dataset.write(shard.name, rows.take(list(reversed(range(rows.num_rows)))))
    return shard.name


def as_the_first_version_wrote_it(folder: Path) -> None:
    """Turn a dataset into one of the first version: older names of settings, and 18 columns."""
    dataset = Dataset(folder)
    settings = json.loads((folder / "job.json").read_text())
    assert settings.pop("order") == "uniform"
    names = {"sweeps": "polish", "only_solvable": "solvable_only"}
    (folder / "job.json").write_text(
        json.dumps({names.get(name, name): value for name, value in settings.items() if name != "boxes"})
    )
    shards = []
    for shard in dataset.finished().shards:
        rows = dataset.read(shard)
        shards.append(dataset.write(shard.name, rows.select(rows.column_names[:18])))
    dataset.finish(shards)
