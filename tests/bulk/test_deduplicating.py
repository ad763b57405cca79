"""Of each puzzle the first board stays, however the work was cut and however little memory there is."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskoban.boards import Level, MaskobanError, write
from maskoban.bulk.dataset import Dataset
from maskoban.bulk.deduplicating import deduplicate
from maskoban.bulk.job import Job, Shard
from maskoban.bulk.making import make
from maskoban.bulk.verifying import verify
from tests.bulk.conftest import contents, turn_a_file_round


def rows(folder: Path) -> list[tuple[str, int]]:
    table = pq.read_table(folder / "data", columns=["id", "number"])
    return list(zip(table["id"].to_pylist(), table["number"].to_pylist(), strict=True))


def test_the_first_of_each_id_is_kept_in_its_place(dataset: Path, tmp_path: Path) -> None:
    seen: dict[str, int] = {}
    for one_id, number in rows(dataset):
        seen.setdefault(one_id, number)
    assert 20 < len(seen) < 128  # some of the boards are mirror images of each other
    manifest = deduplicate(dataset, tmp_path / "unique")
    assert rows(tmp_path / "unique") == list(seen.items())
    assert manifest["boards"] == len(seen)
    assert verify(tmp_path / "unique") == []


@pytest.mark.parametrize("name", ["run[1]", "id=5"])
def test_a_name_that_looks_like_a_pattern_or_a_column_is_only_a_name(
    name: str, dataset: Path, tmp_path: Path, dice: str, in_process: list[Shard]
) -> None:
    make(Job(64, seed=8), tmp_path / "run1", dice)
    shutil.copytree(dataset, tmp_path / name)
    deduplicate(dataset, tmp_path / "unique")
    deduplicate(tmp_path / name, tmp_path / f"{name}-unique")
    assert contents(tmp_path / f"{name}-unique") == contents(tmp_path / "unique")


def test_a_file_the_manifest_does_not_name_is_not_read(dataset: Path, tmp_path: Path) -> None:
    table = pq.read_table(dataset / "data")
    earlier = table.set_column(
        table.column_names.index("number"), "number", pa.array(range(-500, 0), pa.int64())
    )
    pq.write_table(earlier, dataset / "data" / "strange.parquet")
    assert deduplicate(dataset, tmp_path / "unique")["boards"] == len(set(table["id"].to_pylist()))


@pytest.mark.parametrize("kind", ["dataset", "file", "folder", "corpus"])
def test_what_other_levels_hold_is_left_out_too_turned_or_not(
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
    deduplicate(dataset, tmp_path / "fresh", against=[against])
    assert dict(rows(tmp_path / "fresh")) == kept
    assert verify(tmp_path / "fresh") == []
    with pytest.raises(MaskobanError, match="without puzzles of"):
        deduplicate(dataset, tmp_path / "fresh")


def test_done_again_damaged_or_interrupted_it_is_the_same(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deduplicate(dataset, tmp_path / "unique")
    before = contents(tmp_path / "unique")
    deduplicate(dataset, tmp_path / "unique")
    assert contents(tmp_path / "unique") == before
    next((tmp_path / "unique" / "data").iterdir()).unlink()
    deduplicate(dataset, tmp_path / "unique")
    assert contents(tmp_path / "unique") == before

    put = Dataset.put
    left = [3]

    def dying_put(self: Dataset, *what: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return put(self, *what)  # type: ignore[arg-type]

    monkeypatch.setattr(Dataset, "put", dying_put)
    with pytest.raises(KeyboardInterrupt):
        deduplicate(dataset, tmp_path / "again")
    deduplicate(dataset, tmp_path / "again")
    assert contents(tmp_path / "again") == before


def test_what_another_dataset_was_made_of_is_refused(
    dataset: Path, tmp_path: Path, dice: str, in_process: list[Shard]
) -> None:
    deduplicate(dataset, tmp_path / "unique")
    make(Job(64, seed=8), tmp_path / "other", dice)
    with pytest.raises(MaskobanError, match="was begun with count 500, not 64"):
        deduplicate(tmp_path / "other", tmp_path / "unique")
    with pytest.raises(MaskobanError, match="name another folder"):
        deduplicate(dataset, dataset)


def test_too_little_memory_is_said_and_nothing_half_done_stays(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MaskobanError, match="1 MB are not enough to find duplicates"):
        deduplicate(dataset, tmp_path / "unique", megabytes=1)
    assert sorted(path.name for path in (tmp_path / "unique").rglob("*")) == ["data", "job.json"]

    def full(*_: object, **__: object) -> None:
        raise duckdb.IOException("Could not write file: No space left on device")

    monkeypatch.setattr(duckdb, "connect", full)
    with pytest.raises(MaskobanError, match=r"cannot be deduplicated: .*No space left on device"):
        deduplicate(dataset, tmp_path / "unique")


def test_a_file_that_is_not_as_it_was_written_is_refused(dataset: Path, tmp_path: Path) -> None:
    damaged = turn_a_file_round(dataset)
    with pytest.raises(MaskobanError, match=f"{damaged}: not the file that was written, by its checksum"):
        deduplicate(dataset, tmp_path / "unique")
    assert not (tmp_path / "unique" / "manifest.json").exists()
    (dataset / "data" / damaged).write_bytes(b"PAR1")
    with pytest.raises(MaskobanError, match=f"{damaged}: not the file that was written, by its checksum"):
        deduplicate(dataset, tmp_path / "unique")
