"""Errors under Ray are one sentence, too. That Ray makes the same files is in test_killing.py."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray

from maskoban.bulk import on_ray
from maskoban.bulk.dataset import Dataset, ShardFile
from maskoban.bulk.job import Job, Origin
from maskoban.bulk.run import Work, make
from maskoban.errors import MaskobanError

JOB = Job(150, seed=7)


@pytest.fixture(scope="module")
def started() -> Iterator[None]:
    """A Ray on this machine, for all these tests together."""
    with on_ray._no_stderr():
        ray.init(
            "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
        )
    yield
    ray.shutdown()


@pytest.fixture
def work(started: None, dice: str, tmp_path: Path) -> Work:
    (tmp_path / "dataset" / "data").mkdir(parents=True)
    return Work(JOB, dice, Origin("dice", "0", "1"), tmp_path / "dataset")


def run(work: Work) -> list[ShardFile]:
    return list(on_ray._run(work, 1, [JOB.shard(0)]))


def test_a_model_the_workers_cannot_load_is_said(work: Work) -> None:
    with pytest.raises(MaskobanError, match="no model 'nobody'"):
        run(replace(work, source="nobody"))


def test_a_place_the_workers_cannot_write_to_is_said(work: Work) -> None:
    with pytest.raises(MaskobanError, match=r"cannot be written: No such file or directory$"):
        run(replace(work, folder=Path("/nowhere")))


def test_a_worker_that_is_killed_whenever_it_starts_is_given_up_on(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(batch: Any, work: Work) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(on_ray, "_annotate", dying)
    monkeypatch.setattr(on_ray, "RETRIES", 1)
    with pytest.raises(MaskobanError, match="a worker was killed repeatedly, most likely because memory"):
        run(work)
    assert list(Dataset(work.folder).data.iterdir()) == []


def test_what_nobody_expected_is_named_without_rays_advice(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(batch: Any, work: Work) -> None:
        raise ValueError("a bug of ours")

    monkeypatch.setattr(on_ray, "_annotate", faulty)
    with pytest.raises(MaskobanError, match=r"^Ray gave up: ValueError: a bug of ours$"):
        run(work)


def test_a_gpu_that_is_not_there_is_said(work: Work) -> None:
    with pytest.raises(MaskobanError, match="--device cuda: expected a GPU, but Ray has none"):
        run(replace(work, job=replace(JOB, device="cuda")))


def test_a_dead_address_is_said_soon(dice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "CONNECT_SECONDS", 4.0)
    with socket.socket() as silent:  # listens, and never says a word
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(MaskobanError, match=f"^no Ray cluster answers at {address}$"):
            make(JOB, tmp_path / "dataset", dice, engine="ray", address=address)
    assert not any((tmp_path / "dataset" / "data").iterdir())
