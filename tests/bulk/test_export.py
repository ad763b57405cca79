"""Export to Boxoban's folders, each puzzle in one split, and to one level file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from maskoban import read
from maskoban.boards import read_boards
from maskoban.bulk import export
from maskoban.bulk.dataset import Dataset, ShardFile
from maskoban.bulk.export import export_boxoban, export_levels
from maskoban.environment import LevelSet
from maskoban.errors import FileError, MaskobanError
from maskoban.evaluation.sample import read_sample
from maskoban.solving.filters import BoardFilter
from tests.bulk.conftest import reverse_a_shard


def test_every_solved_board_is_in_one_split(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "BOARDS_A_FILE", 50)
    counts = export_boxoban(dataset, tmp_path / "levels", valid=0.2, test=0.2)
    splits = {split: read(tmp_path / "levels" / "unfiltered" / split) for split in counts}
    assert {split: len(levels) for split, levels in splits.items()} == counts
    assert min(counts.values()) > 0
    puzzles = {split: {level.id for level in levels} for split, levels in splits.items()}
    assert not puzzles["train"] & puzzles["valid"] | puzzles["train"] & puzzles["test"]
    assert not puzzles["valid"] & puzzles["test"]
    rows = pq.read_table(dataset / "data", columns=["board", "verdict"]).to_pylist()
    solved = sorted(row["board"] for row in rows if row["verdict"] == "solved")
    assert sorted(str(level) for levels in splits.values() for level in levels) == solved


def test_files_look_like_boxobans(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "BOARDS_A_FILE", 50)
    counts = export_boxoban(dataset, tmp_path, name="medium", valid=0, test=0)
    files = sorted((tmp_path / "medium" / "train").iterdir())
    assert [file.name for file in files] == [f"{i:03}.txt" for i in range(-(-counts["train"] // 50))]
    lines = files[1].read_text().split("\n")
    assert (lines[0], lines[1], lines[5], lines[6]) == ("; 0", "########", "", "; 1")
    assert not (tmp_path / "medium" / "valid").exists()


def test_a_folder_that_is_there_or_cannot_be_is_refused(dataset: Path, tmp_path: Path) -> None:
    export_boxoban(dataset, tmp_path / "levels")
    with pytest.raises(MaskobanError, match="exists already; expected a new folder"):
        export_boxoban(dataset, tmp_path / "levels")
    with pytest.raises(MaskobanError, match="cannot be written: Not a directory"):
        export_boxoban(dataset, "/dev/null/levels")
    with pytest.raises(MaskobanError, match=r"expected shares that sum to at most 1, got 0.6 and 0.6"):
        export_boxoban(dataset, tmp_path / "other", valid=0.6, test=0.6)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a/"])
def test_a_name_that_is_not_one_folder_is_refused(name: str, dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match=f"the name of one folder, got '{re.escape(name)}'"):
        export_boxoban(dataset, tmp_path / "levels", name)
    assert not (tmp_path / "levels").exists()


def test_where_no_board_is_solved_there_is_nothing_to_export(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_shard = Dataset.read
    unsolved = pc.field("verdict") != "solved"

    def without_solved(self: Dataset, shard: ShardFile) -> Any:
        return read_shard(self, shard).filter(unsolved)

    monkeypatch.setattr(Dataset, "read", without_solved)
    with pytest.raises(MaskobanError, match=r"no board matches \(solvable\); nothing was exported"):
        export_boxoban(dataset, tmp_path / "levels")
    assert not (tmp_path / "levels").exists()


def test_an_export_that_breaks_off_leaves_nothing(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(MaskobanError, match="cannot be written: No space left on device"):
        export_boxoban(dataset, tmp_path / "levels")
    assert list((tmp_path / "levels").iterdir()) == []


def test_a_file_with_another_checksum_is_refused(dataset: Path, tmp_path: Path) -> None:
    damaged = reverse_a_shard(dataset)
    with pytest.raises(MaskobanError, match=f"{damaged}: the checksum is not that of the manifest"):
        export_boxoban(dataset, tmp_path / "levels")
    assert list((tmp_path / "levels").glob("*")) == []


@pytest.mark.parametrize("name", ["levels.sok", "levels.xsb", "levels.slc", "levels.npz"])
def test_all_boards_are_in_one_level_file_in_their_order(name: str, dataset: Path, tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    assert export_levels(dataset, tmp_path / name, on_progress=lambda *done: progress.append(done)) == 500
    assert progress[-1] == (500, 500)
    rows = pq.read_table(dataset / "data").to_pylist()
    for row, level in zip(rows, read(tmp_path / name), strict=True):
        assert str(level) == row["board"]
        assert level.title == f"{row['model']} 7-{row['number']}"
        assert level.comment == (f"solved, {row['rating']}" if row["rating"] else row["verdict"])
        assert level.solutions == ((row["solution"],) if row["solution"] else ())


def test_a_filter_uses_the_columns_of_the_dataset(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pq.read_table(dataset / "data").to_pylist()
    (word,) = {row["rating"] for row in rows if row["rating"]}  # all of them need the same two pushes
    monkeypatch.setattr("maskoban.solving.filters.solve_many", None)  # nothing is solved again
    for board_filter, passes in (
        (BoardFilter(only_solvable=True), lambda row: row["verdict"] == "solved"),
        (BoardFilter(difficulty=word), lambda row: row["rating"] == word),
        (BoardFilter(True, boxes=1), lambda row: row["verdict"] == "solved" and row["board"].count("$") == 1),
    ):
        wanted = [row["board"] for row in rows if passes(row)]
        assert export_levels(dataset, tmp_path / "some.sok", board_filter) == len(wanted)
        assert [str(level) for level in read(tmp_path / "some.sok")] == wanted
        assert 0 < len(wanted) < 500
    with pytest.raises(MaskobanError, match=r"no board matches \(expert\)"):
        export_levels(dataset, tmp_path / "none.sok", board_filter=BoardFilter(difficulty="expert"))
    assert not (tmp_path / "none.sok").exists()
    assert sum(
        export_boxoban(dataset, tmp_path / "levels", board_filter=BoardFilter(difficulty=word)).values()
    ) == len([row for row in rows if row["rating"] == word])


def test_one_level_file_of_a_damaged_dataset_is_not_written(dataset: Path, tmp_path: Path) -> None:
    damaged = reverse_a_shard(dataset)
    with pytest.raises(MaskobanError, match=f"{damaged}: the checksum is not that of the manifest"):
        export_levels(dataset, tmp_path / "levels.sok")
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_reading_a_dataset_as_levels_names_the_export_command(dataset: Path) -> None:
    shard = next((dataset / "data").iterdir())
    to_levels = "maskoban bulk export"
    for place, message in (
        (dataset, f"a dataset; {to_levels} {dataset} levels.sok makes a level file of it"),
        (dataset / "data", f"a folder of Parquet files; {to_levels} makes level files of a dataset"),
        (shard, f"a Parquet file; {to_levels} makes level files of a dataset"),
    ):
        readers = [read, read_boards, read_sample, *([] if place == dataset else [LevelSet.read])]
        for reader in readers:
            with pytest.raises(FileError) as caught:
                reader(place)
            assert str(caught.value) == f"{place}: {message}"
