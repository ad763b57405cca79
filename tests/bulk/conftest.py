"""What the tests of datasets share: a model of files, an engine without processes, a dataset that is finished."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from maskoban.bulk import making
from maskoban.bulk.dataset import Dataset, Receipt
from maskoban.bulk.job import Job, Shard
from maskoban.bulk.models import load_model
from maskoban.bulk.pipeline import draw
from maskoban.bulk.work import Run, Work
from tests.bulk.dice import write_dice


@pytest.fixture(scope="session")
def dice(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the model."""
    return str(write_dice(tmp_path_factory.mktemp("models") / "dice"))


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[Shard]:
    """Shards are made here, in an order that means nothing; gives those that were made."""
    made: list[Shard] = []

    def run(work: Work, shards: Sequence[Shard]) -> Iterator[Receipt]:
        model = load_model(work.source, work.job)
        for shard in random.Random(len(shards)).sample(shards, len(shards)):
            made.append(shard)
            yield work.judged(draw(model, work.job, shard), shard)

    @contextmanager
    def engine(work: Work, *_: object) -> Iterator[Run]:
        yield lambda shards: run(work, shards)

    monkeypatch.setattr(making, "_engine", engine)
    return made


@pytest.fixture
def dataset(tmp_path: Path, dice: str, in_process: list[Shard]) -> Path:
    """A finished dataset of 500 boards in 8 shards."""
    making.make(Job(500, seed=7), tmp_path / "dataset", dice)
    in_process.clear()
    return tmp_path / "dataset"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder by its name, byte for byte."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def turn_a_file_round(folder: Path) -> str:
    """Write the rows of a shard the other way round, a sound Parquet file that the manifest does not know."""
    dataset = Dataset(folder)
    name: str = dataset.finished()["shards"][2]["name"]
    rows = dataset.rows(name)
    dataset.put(name, rows.take(list(reversed(range(rows.num_rows)))))
    return name
