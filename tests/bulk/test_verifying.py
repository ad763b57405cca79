"""What is wrong with a dataset is found, whether its bytes were changed or its rows were never true."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from maskoban.boards import MaskobanError
from maskoban.bulk.dataset import Dataset
from maskoban.bulk.verifying import verify


def test_nothing_is_wrong_with_what_was_made(dataset: Path) -> None:
    told: list[tuple[int, int]] = []
    assert verify(dataset, progress=lambda *done: told.append(done)) == []
    assert told[-1] == (500, 500)


def test_a_changed_byte_is_found(dataset: Path) -> None:
    path = sorted((dataset / "data").iterdir())[2]
    changed = bytearray(path.read_bytes())
    changed[-20] ^= 1
    path.write_bytes(changed)
    assert verify(dataset) == [f"{path.name}: not the file that was written, by its checksum"]


def test_of_a_changed_file_no_more_is_said(dataset: Path) -> None:
    before = (dataset / "manifest.json").read_bytes()
    forge(dataset, tokens=lambda _: [9], board=lambda _: None)
    (dataset / "manifest.json").write_bytes(before)
    (problem,) = verify(dataset)
    assert problem.endswith(".parquet: not the file that was written, by its checksum")


def test_missing_and_strange_files_are_found(dataset: Path) -> None:
    path = sorted((dataset / "data").iterdir())[2]
    path.rename(path.with_name("strange.parquet"))
    strange, missing = verify(dataset, sample=0)
    assert strange == "strange.parquet: in data/ and not in the manifest"
    assert missing.endswith(f"{path.name}: no such file or folder")


def forge(dataset: Path, **changes: Callable[[Any], Any]) -> None:
    """Change a solved row of the first shard, and the manifest with it, as if that had been written."""
    place = Dataset(dataset)
    first, *others = place.finished()["shards"]
    name = first["name"]
    rows = place.rows(name).to_pylist()
    row = next(row for row in rows if row["verdict"] == "solved")
    for column, change in changes.items():
        row[column] = change(row[column])
    receipt = place.put(name, pa.Table.from_pylist(rows, place.rows(name).schema))
    place.finish([receipt, *(place.as_written(other)[1] for other in others)])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verdict": lambda _: "unsolvable"}, "unsolvable, and judged anew solved"),
        ({"solution": lambda _: "R"}, "its solution leaves boxes off their goals"),
        ({"solution": lambda _: "LLRR"}, r"its solution breaks the rules at step 0 \('L'\)"),
        ({"pushes": lambda pushes: pushes + 1}, "3 pushes and 2 moves, and its solution has 2 and 2"),
        ({"id": lambda _: "0" * 32}, "board, tokens and ids do not belong together"),
        ({"solution": lambda _: None}, "solved, and there is no solution"),
        ({"board": lambda board: board.replace("$", " ")}, "board, tokens and ids do not belong together"),
        ({"board": lambda _: None}, "its text and its tokens are not of one board"),
        ({"tokens": lambda _: None}, "its text and its tokens are not of one board"),
        ({"tokens": lambda tokens: [9, *tokens[1:]]}, "its text and its tokens are not of one board"),
        ({"tokens": lambda tokens: tokens[1:]}, "its text and its tokens are not of one board"),
    ],
)
def test_a_row_that_is_not_true_is_found(dataset: Path, changes: Any, said: str) -> None:
    forge(dataset, **changes)
    assert re.search(said, verify(dataset, sample=500)[0])


def test_only_the_sample_is_judged_anew(dataset: Path) -> None:
    forge(dataset, verdict=lambda _: "unsolvable")
    found = [bool(verify(dataset, sample=100, seed=seed)) for seed in range(12)]
    assert 0 < sum(found) < 12


@pytest.mark.parametrize(
    ("total", "value"), [("boards", 499), ("bytes", 1), ("verdicts", {"solved": 500}), ("ratings", {})]
)
def test_a_total_that_is_not_true_is_found(total: str, value: Any, dataset: Path) -> None:
    manifest = Dataset(dataset).finished() | {total: value}
    (dataset / "manifest.json").write_text(json.dumps(manifest))
    assert verify(dataset)[0].startswith(f"manifest.json: {total} {value}, and by the files ")


@pytest.mark.parametrize("size", ["rows", "bytes"])
def test_a_size_that_is_not_true_is_found(size: str, dataset: Path) -> None:
    manifest = Dataset(dataset).finished()
    manifest["shards"][0][size] += 1
    (dataset / "manifest.json").write_text(json.dumps(manifest))
    assert re.search(r"64 boards in [\d,]+ bytes, and the manifest says 6[45] in ", verify(dataset)[0])


def test_boards_that_the_manifest_does_not_miss_either_are_missed(dataset: Path) -> None:
    place = Dataset(dataset)
    first, *others = place.finished()["shards"]
    (place.data / first["name"]).unlink()
    place.finish(place.as_written(other)[1] for other in others)
    assert verify(dataset) == ["manifest.json: 436 boards, and job.json says 500"]


def test_a_shard_that_stands_twice_in_the_manifest_is_found(dataset: Path) -> None:
    place = Dataset(dataset)
    first, second, *others = place.finished()["shards"]
    (place.data / second["name"]).unlink()  # as many boards as before, by every count
    place.finish(place.as_written(each)[1] for each in (first, first, *others))
    assert verify(dataset) == [f"{first['name']}: 2 times in the manifest"]


def test_what_is_no_dataset_or_not_finished_is_said(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match=r"no dataset there \(expected job.json\)"):
        verify(tmp_path)
    (dataset / "manifest.json").unlink()
    with pytest.raises(MaskobanError, match="is not finished"):
        verify(dataset)


@pytest.mark.parametrize("name", ["job.json", "manifest.json"])
@pytest.mark.parametrize("value", ["{}", "[]", "null", '{"shards": [{}]}', "{"])
def test_a_file_that_says_something_else_is_named(name: str, value: str, dataset: Path) -> None:
    (dataset / name).write_text(value)
    with pytest.raises(MaskobanError, match=rf"/{name}: (not as maskoban writes it|cannot be read): "):
        verify(dataset)
