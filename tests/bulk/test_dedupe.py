"""Of each puzzle the first board is kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskoban.boards import Level, write
from maskoban.bulk.dataset import Dataset
from maskoban.bulk.dedupe import dedupe
from maskoban.bulk.job import Job, Shard
from maskoban.bulk.run import make
from maskoban.bulk.verify import verify
from maskoban.errors import MaskobanError
from tests.bulk.conftest import contents, reverse_a_shard


def rows(folder: Path) -> list[tuple[str, int]]:
    table = pq.read_table(folder / "data", columns=["id", "number"])
    return list(zip(table["id"].to_pylist(), table["number"].to_pylist(), strict=True))


def test_the_first_of_each_id_is_kept_in_its_place(dataset: Path, tmp_path: Path) -> None:
    seen: dict[str, int] = {}
    for one_id, number in rows(dataset):
        seen.setdefault(one_id, number)
    assert 20 < len(seen) < 128  # some of the boards are mirror images of each other
    manifest = dedupe(dataset, tmp_path / "unique")
    assert rows(tmp_path / "unique") == list(seen.items())
    assert manifest.boards == len(seen)
    assert verify(tmp_path / "unique") == []


@pytest.mark.parametrize("name", ["run[1]", "id=5"])
def test_a_name_that_looks_like_a_pattern_or_a_column_is_only_a_name(
    name: str, dataset: Path, tmp_path: Path, dice: str, in_process: list[Shard]
) -> None:
    make(Job(64, seed=8), tmp_path / "run1", dice)
    shutil.copytree(dataset, tmp_path / name)
    dedupe(dataset, tmp_path / "unique")
    dedupe(tmp_path / name, tmp_path / f"{name}-unique")
    assert contents(tmp_path / f"{name}-unique") == contents(tmp_path / "unique")


def test_a_file_the_manifest_does_not_name_is_not_read(dataset: Path, tmp_path: Path) -> None:
    table = pq.read_table(dataset / "data")
    earlier = table.set_column(
        table.column_names.index("number"), "number", pa.array(range(-500, 0), pa.int64())
    )
    pq.write_table(earlier, dataset / "data" / "strange.parquet")
    assert dedupe(dataset, tmp_path / "unique").boards == len(set(table["id"].to_pylist()))


@pytest.mark.parametrize("kind", ["dataset", "file", "folder", "corpus"])
def test_puzzles_of_other_levels_are_left_out_even_if_turned(
    kind: str,
    dataset: Path,
    tmp_path: Path,
    dice: str,
    in_process: list[Shard],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(Job(64, seed=8), tmp_path / "others", dice)
    boards = pq.read_table(tmp_path / "others" / "data", columns=["board"])["board"].to_pylist()
    levels = [Level.parse(board) for board in boards]
    turned = [Level(np.rot90(level.tokens)) for level in levels]
    known = {level.id for level in levels}
    first = dict(reversed(rows(dataset)))
    kept = {one_id: number for one_id, number in first.items() if one_id not in known}
    assert 0 < len(kept) < len(first)

    small = Level.parse("#####\n#@$.#\n#####")
    against: str | Path = tmp_path / "others"
    if kind == "file":
        against = tmp_path / "others.sok"
        write(against, [*turned, small])
    elif kind == "folder":
        against = tmp_path / "levels"
        against.mkdir()
        write(against / "a.sok", turned[:30])
        write(against / "b.xsb", [*turned[30:], small])
    elif kind == "corpus":
        monkeypatch.setenv("MASKOBAN_CACHE", str(tmp_path))
        write(tmp_path / "kept.npz", np.stack([level.tokens for level in turned]))
        against = "kept"
    dedupe(dataset, tmp_path / "fresh", against=[against])
    assert dict(rows(tmp_path / "fresh")) == kept
    assert verify(tmp_path / "fresh") == []
    with pytest.raises(MaskobanError, match="was started with without puzzles of"):
        dedupe(dataset, tmp_path / "fresh")


def test_repeated_damaged_or_interrupted_the_result_is_the_same(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dedupe(dataset, tmp_path / "unique")
    before = contents(tmp_path / "unique")
    dedupe(dataset, tmp_path / "unique")
    assert contents(tmp_path / "unique") == before
    next((tmp_path / "unique" / "data").iterdir()).unlink()
    dedupe(dataset, tmp_path / "unique")
    assert contents(tmp_path / "unique") == before

    write_shard = Dataset.write
    left = [3]

    def interrupted_write(self: Dataset, *what: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return write_shard(self, *what)  # type: ignore[arg-type]

    monkeypatch.setattr(Dataset, "write", interrupted_write)
    with pytest.raises(KeyboardInterrupt):
        dedupe(dataset, tmp_path / "again")
    dedupe(dataset, tmp_path / "again")
    assert contents(tmp_path / "again") == before


def test_the_folder_of_another_dataset_is_refused(
    dataset: Path, tmp_path: Path, dice: str, in_process: list[Shard]
) -> None:
    dedupe(dataset, tmp_path / "unique")
    make(Job(64, seed=8), tmp_path / "other", dice)
    with pytest.raises(MaskobanError, match="was started with count 500, got 64"):
        dedupe(tmp_path / "other", tmp_path / "unique")
    with pytest.raises(MaskobanError, match="expected another folder"):
        dedupe(dataset, dataset)


def test_too_little_memory_is_an_error_and_leaves_no_temporary_files(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MaskobanError, match="--megabytes: 1 MB are not enough to find duplicates"):
        dedupe(dataset, tmp_path / "unique", megabytes=1)
    assert sorted(path.name for path in (tmp_path / "unique").rglob("*")) == ["data", "job.json"]

    def full(*_: object, **__: object) -> None:
        raise duckdb.IOException("Could not write file: No space left on device")

    monkeypatch.setattr(duckdb, "connect", full)
    with pytest.raises(MaskobanError, match=r"cannot be deduplicated: .*No space left on device"):
        dedupe(dataset, tmp_path / "unique")


def test_a_file_with_another_checksum_is_refused(dataset: Path, tmp_path: Path) -> None:
    damaged = reverse_a_shard(dataset)
    with pytest.raises(MaskobanError, match=f"{damaged}: the checksum is not that of the manifest"):
        dedupe(dataset, tmp_path / "unique")
    assert not (tmp_path / "unique" / "manifest.json").exists()
    (dataset / "data" / damaged).write_bytes(b"PAR1")
    with pytest.raises(MaskobanError, match=f"{damaged}: the checksum is not that of the manifest"):
        dedupe(dataset, tmp_path / "unique")
