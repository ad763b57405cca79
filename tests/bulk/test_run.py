"""However often a job is interrupted, the finished dataset is always the same."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskoban.bulk import dataset as bulk_dataset
from maskoban.bulk import run
from maskoban.bulk.dataset import Dataset
from maskoban.bulk.dedupe import dedupe
from maskoban.bulk.export import export_boxoban, export_levels
from maskoban.bulk.job import Job, Shard
from maskoban.bulk.run import make
from maskoban.bulk.verify import verify
from maskoban.diffusion.loading import load
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.solving.filters import BoardFilter
from tests.bulk.conftest import SOLVABLE, as_the_first_version_wrote_it, contents
from tests.bulk.dice import open_way

JOB = Job(500, seed=7)


def numbers(folder: Path) -> list[int]:
    return [
        number
        for path in sorted(folder.glob("data/*"))
        for number in pq.read_table(path)["number"].to_pylist()
    ]


def test_every_board_is_there_once_and_in_order(dataset: Path) -> None:
    assert numbers(dataset) == list(range(500))
    assert sorted(path.name for path in dataset.iterdir()) == [
        "README.md",
        "data",
        "job.json",
        "manifest.json",
    ]
    manifest = json.loads((dataset / "manifest.json").read_text())
    assert manifest["boards"] == sum(manifest["verdicts"].values()) == 500
    assert manifest["verdicts"]["solved"] == sum(manifest["ratings"].values())
    assert "500 boards" in (dataset / "README.md").read_text()


def test_two_pools_and_one_process_make_the_same_files(dataset: Path, dice: str, tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.undo()  # the real engine
    make(JOB, tmp_path / "pool", dice, workers=2)
    assert contents(tmp_path / "pool") == contents(dataset)


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def lose_a_shard(data: Path) -> None:
    sorted(data.iterdir())[3].unlink()


def break_a_shard(data: Path) -> None:
    path = sorted(data.iterdir())[3]
    path.write_bytes(path.read_bytes()[:-100])


def spoil_a_shard(data: Path) -> None:
    path = sorted(data.iterdir())[3]
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 3] ^= 1
    path.write_bytes(changed)


def shorten_a_shard(data: Path) -> None:
    path = sorted(data.iterdir())[3]
    pq.write_table(pq.read_table(path).slice(0, 5), path)


def forget_a_shard(data: Path) -> None:
    journal = data.parent / ".receipts.jsonl"
    lines = [line for line in journal.read_text().splitlines() if "seed7-000000000192" not in line]
    journal.write_text("\n".join([*lines, '{"name": "seed7-0000000001']))


def leave_half_a_file(data: Path) -> None:
    lose_a_shard(data)
    (data / ".maskoban-0a1b2c3d.part").write_bytes(b"PAR1")


@pytest.mark.parametrize(
    "happens",
    [lose_a_shard, break_a_shard, spoil_a_shard, shorten_a_shard, forget_a_shard, leave_half_a_file],
)
def test_what_is_missing_is_made_again_and_nothing_else(
    happens: Callable[[Path], None],
    dataset: Path,
    dice: str,
    tmp_path: Path,
    in_process: list[Shard],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unfinished = tmp_path / "unfinished"
    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            make(JOB, unfinished, dice)
    in_process.clear()
    happens(unfinished / "data")
    make(JOB, unfinished, dice)
    assert contents(unfinished) == contents(dataset)
    assert [shard.first for shard in in_process] == [192]


@pytest.mark.parametrize("happens", [lose_a_shard, break_a_shard, shorten_a_shard])
def test_what_a_finished_dataset_lost_is_made_again_and_nothing_else(
    happens: Callable[[Path], None], dataset: Path, dice: str, in_process: list[Shard]
) -> None:
    before = contents(dataset)
    happens(dataset / "data")
    make(JOB, dataset, dice)
    assert contents(dataset) == before
    assert [shard.first for shard in in_process] == [192]


@pytest.mark.parametrize("lost", [1, -1])  # the last was cut when there were enough boards
def test_what_a_filtered_dataset_lost_is_made_again(
    lost: int, dice: str, tmp_path: Path, in_process: list[Shard]
) -> None:
    job = Job(200, seed=7, board_filter=SOLVABLE)
    make(job, tmp_path / "solvable", dice)
    before = contents(tmp_path / "solvable")
    sorted((tmp_path / "solvable" / "data").iterdir())[lost].unlink()
    make(job, tmp_path / "solvable", dice)
    assert contents(tmp_path / "solvable") == before


def test_a_finished_dataset_is_left_alone(dataset: Path, dice: str, in_process: list[Shard]) -> None:
    before = {path: path.stat().st_mtime_ns for path in dataset.rglob("*")}
    make(JOB, dataset, dice)
    assert not in_process
    assert {path: path.stat().st_mtime_ns for path in dataset.rglob("*")} == before


def test_a_dataset_of_the_first_version_is_verified_copied_exported_and_continued(
    dataset: Path, dice: str, tmp_path: Path, in_process: list[Shard]
) -> None:
    unique = dedupe(dataset, tmp_path / "new-unique").boards
    as_the_first_version_wrote_it(dataset)
    assert verify(dataset) == []
    assert dedupe(dataset, tmp_path / "unique").boards == unique
    assert verify(tmp_path / "unique") == []
    assert export_levels(dataset, tmp_path / "levels.sok") == 500
    assert sum(export_boxoban(dataset, tmp_path / "levels").values()) > 0
    lose_a_shard(dataset / "data")
    make(JOB, dataset, dice)
    assert [shard.first for shard in in_process] == [192]
    assert verify(dataset) == []
    with pytest.raises(MaskobanError, match="was started with only solvable False, got True"):
        make(replace(JOB, board_filter=SOLVABLE), dataset, dice)


@pytest.mark.parametrize("shard_size", [64, 1])  # of the small ones half are empty
def test_with_a_filter_the_first_that_pass_are_kept(
    shard_size: int, dice: str, tmp_path: Path, in_process: list[Shard]
) -> None:
    job = Job(200, seed=7, board_filter=SOLVABLE, shard_size=shard_size)
    make(job, tmp_path / "solvable", dice)
    boards = load(dice).sample(1000, 7)
    passing = [number for number, solvable in enumerate(open_way(boards)) if solvable]
    assert numbers(tmp_path / "solvable") == passing[:200]
    assert verify(tmp_path / "solvable") == []


def test_a_filtered_dataset_is_the_same_wherever_it_was_interrupted(
    dice: str, tmp_path: Path, in_process: list[Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(200, seed=7, board_filter=SOLVABLE)
    make(job, tmp_path / "whole", dice)
    write = Dataset.write
    for allowed in range(7):
        left = [allowed]

        def interrupted_write(self: Dataset, name: str, rows: pa.Table, left: list[int] = left) -> object:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return write(self, name, rows)

        monkeypatch.setattr(Dataset, "write", interrupted_write)
        with pytest.raises(KeyboardInterrupt):
            make(job, tmp_path / f"{allowed}", dice)
        monkeypatch.setattr(Dataset, "write", write)
        make(job, tmp_path / f"{allowed}", dice)
        assert contents(tmp_path / f"{allowed}") == contents(tmp_path / "whole")


def test_what_unwanted_workers_had_begun_to_write_is_taken_away(
    dice: str, tmp_path: Path, in_process: list[Shard]
) -> None:
    job = Job(100, seed=7, board_filter=SOLVABLE, shard_size=16)
    make(job, tmp_path / "whole", dice)
    begun = tmp_path / "cut" / "data" / ".maskoban-0a1b2c3d.part"
    make(job, tmp_path / "cut", dice, on_progress=lambda *_: begun.touch())
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_a_filter_that_no_board_matches_is_given_up_on(
    dice: str, tmp_path: Path, in_process: list[Shard]
) -> None:
    job = Job(1, board_filter=BoardFilter(difficulty="expert"))
    for _ in range(2):  # again it says so at once
        with pytest.raises(MaskobanError, match=r"^only 0 of 512 sampled boards match \(expert\); gave up$"):
            make(job, tmp_path / "hard", dice)
        assert len(in_process) == 8
    with pytest.raises(MaskobanError, match="hard: the dataset is not finished"):
        verify(tmp_path / "hard")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Job(501, seed=7), "count 500, got 501"),
        (Job(500, seed=8), "seed 7, got 8"),
        (Job(500, 7, SamplerConfig(steps=3)), "steps None, got 3"),
        (Job(500, seed=7, repair=True), "repair False, got True"),
    ],
)
def test_other_settings_are_refused(other: Job, said: str, dataset: Path, dice: str) -> None:
    before = contents(dataset)
    with pytest.raises(MaskobanError, match=f"was started with {said}; give the same settings"):
        make(other, dataset, dice)
    assert contents(dataset) == before


def test_another_model_is_refused(dataset: Path, dice: str, tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match="was started with model dice, got best"):
        make(JOB, dataset, "best")


def test_a_folder_that_another_process_uses_is_refused(dataset: Path, dice: str) -> None:
    place = Dataset(dataset)
    with (
        place.opened(place.settings()),
        pytest.raises(MaskobanError, match="another process is making this dataset"),
    ):
        make(JOB, dataset, dice)


def test_of_two_that_begin_at_once_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Dataset(tmp_path / "dataset")
    write = bulk_dataset._write_json

    def write_while_another_begins(*what: Any) -> None:
        monkeypatch.setattr(bulk_dataset, "_write_json", write)
        with pytest.raises(MaskobanError, match="another process is making this dataset"):
            another.enter_context(place.opened({"seed": 7}))
        write(*what)

    monkeypatch.setattr(bulk_dataset, "_write_json", write_while_another_begins)
    with ExitStack() as another, place.opened({"seed": 7}):
        assert (place.path / "job.json").exists()


@pytest.mark.parametrize("name", ["holiday.jpg", "seed-²-0.parquet"])
def test_strange_files_are_refused(dataset: Path, dice: str, name: str) -> None:
    (dataset / "manifest.json").unlink()
    (dataset / "data" / name).touch()
    with pytest.raises(MaskobanError, match=rf"{re.escape(name)}: expected only shards of this dataset"):
        make(JOB, dataset, dice)


@pytest.mark.parametrize("mine", ["README.md", ".download.part", "manifest.json", "data/thesis.tex"])
def test_a_folder_of_other_things_is_refused_and_left_alone(mine: str, dice: str, tmp_path: Path) -> None:
    file = tmp_path / "mine" / mine
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    with pytest.raises(MaskobanError, match="mine: the folder holds other files; expected a new"):
        make(JOB, tmp_path / "mine", dice)
    assert contents(tmp_path / "mine") == {mine: b"{}"}


def test_where_nothing_was_made_yet_other_settings_begin_anew(
    dataset: Path, dice: str, tmp_path: Path, in_process: list[Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_device(*_: object) -> None:
        raise MaskobanError("cuda needs torch")

    with monkeypatch.context() as patch:
        patch.setattr(run, "_engine", no_device)
        with pytest.raises(MaskobanError, match="needs torch"):
            make(replace(JOB, device="cuda"), tmp_path / "again", dice)
    make(JOB, tmp_path / "again", dice)
    assert contents(tmp_path / "again") == contents(dataset)


def test_killed_while_it_wrote_its_settings_it_begins_again(
    dataset: Path, dice: str, tmp_path: Path, in_process: list[Shard]
) -> None:
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / ".maskoban-0a1b2c3d.part").write_text('{"coun')
    make(JOB, tmp_path / "again", dice)
    assert contents(tmp_path / "again") == contents(dataset)


@pytest.mark.parametrize("place", ["/dev/null/dataset", "/proc/dataset"])
def test_a_folder_that_cannot_be_made_is_refused(place: str, dice: str) -> None:
    with pytest.raises(MaskobanError, match=f"{place}: cannot be written: "):
        make(JOB, place, dice)


def test_a_full_disk_is_said_and_leaves_only_whole_files(
    dice: str, tmp_path: Path, in_process: list[Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    room = [3]

    def fsync(descriptor: int) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(MaskobanError, match="No space left on device; finished shards stay"):
        make(JOB, tmp_path / "full", dice)
    there = contents(tmp_path / "full")
    assert [Path(name).suffix for name in there] == [".jsonl", *3 * [".parquet"], ".json"]
    for name in there:
        if name.startswith("data/"):
            assert pq.read_table(tmp_path / "full" / name).num_rows in (64, 52)
