"""Problems of a dataset are found: changed bytes, and rows that were wrong from the start."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from maskoban.bulk.dataset import Dataset
from maskoban.bulk.verify import verify
from maskoban.errors import MaskobanError


def test_nothing_is_wrong_with_what_was_made(dataset: Path) -> None:
    progress: list[tuple[int, int]] = []
    assert verify(dataset, on_progress=lambda *done: progress.append(done)) == []
    assert progress[-1] == (500, 500)


def test_a_changed_byte_is_found(dataset: Path) -> None:
    path = sorted((dataset / "data").iterdir())[2]
    changed = bytearray(path.read_bytes())
    changed[-20] ^= 1
    path.write_bytes(changed)
    assert verify(dataset) == [f"{path.name}: the checksum is not that of the manifest; the file was changed"]


def test_of_a_changed_file_no_more_is_said(dataset: Path) -> None:
    before = (dataset / "manifest.json").read_bytes()
    forge(dataset, tokens=lambda _: [9], board=lambda _: None)
    (dataset / "manifest.json").write_bytes(before)
    (problem,) = verify(dataset)
    assert problem.endswith(".parquet: the checksum is not that of the manifest; the file was changed")


def test_missing_and_strange_files_are_found(dataset: Path) -> None:
    path = sorted((dataset / "data").iterdir())[2]
    path.rename(path.with_name("strange.parquet"))
    strange, missing = verify(dataset, sample=0)
    assert strange == "strange.parquet: in data/, but not in the manifest"
    assert missing.endswith(f"{path.name}: no such file or folder")


def forge(dataset: Path, **changes: Callable[[Any], Any]) -> None:
    """Change a solved row of the first shard, and the manifest with it, as if that had been written."""
    place = Dataset(dataset)
    first, *others = place.finished().shards
    rows = place.read(first)
    schema, rows = rows.schema, rows.to_pylist()
    row = next(row for row in rows if row["verdict"] == "solved")
    for column, change in changes.items():
        row[column] = change(row[column])
    place.finish([place.write(first.name, pa.Table.from_pylist(rows, schema)), *others])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verdict": lambda _: "unsolvable"}, "verdict unsolvable, expected solved"),
        ({"solution": lambda _: "R"}, "the solution leaves boxes off their goals"),
        ({"solution": lambda _: "LLRR"}, r"the solution breaks the rules: step 0 \('L'\)"),
        ({"pushes": lambda pushes: pushes + 1}, "pushes 3, expected 2 by the solution"),
        ({"box_lines": lambda _: 9}, "box_lines 9, expected 1 by the solution"),
        ({"id": lambda _: "0" * 32}, "board, tokens and ids are not of the same board"),
        ({"solution": lambda _: None}, "solved, but without a solution"),
        ({"board": lambda board: board.replace("$", " ")}, "board, tokens and ids are not of the same board"),
        ({"board": lambda _: None}, "text and tokens are not of the same board"),
        ({"tokens": lambda _: None}, "text and tokens are not of the same board"),
        ({"tokens": lambda tokens: [9, *tokens[1:]]}, "text and tokens are not of the same board"),
        ({"tokens": lambda tokens: tokens[1:]}, "text and tokens are not of the same board"),
    ],
)
def test_a_row_that_is_not_true_is_found(dataset: Path, changes: Any, said: str) -> None:
    forge(dataset, **changes)
    assert re.search(said, verify(dataset, sample=500)[0])


def test_only_the_sample_is_solved_again(dataset: Path) -> None:
    forge(dataset, verdict=lambda _: "unsolvable")
    found = [bool(verify(dataset, sample=100, seed=seed)) for seed in range(12)]
    assert 0 < sum(found) < 12


@pytest.mark.parametrize(
    ("total", "value"), [("boards", 499), ("bytes", 1), ("verdicts", {"solved": 500}), ("ratings", {})]
)
def test_a_total_that_is_not_true_is_found(total: str, value: Any, dataset: Path) -> None:
    manifest = json.loads((dataset / "manifest.json").read_text()) | {total: value}
    (dataset / "manifest.json").write_text(json.dumps(manifest))
    assert verify(dataset)[0].startswith(f"manifest.json: {total} {value}, expected ")


@pytest.mark.parametrize("size", ["rows", "bytes"])
def test_a_size_that_is_not_true_is_found(size: str, dataset: Path) -> None:
    manifest = json.loads((dataset / "manifest.json").read_text())
    manifest["shards"][0][size] += 1
    (dataset / "manifest.json").write_text(json.dumps(manifest))
    assert re.search(r"64 boards in [\d,]+ bytes, expected 6[45] in ", verify(dataset)[0])


def test_boards_that_the_manifest_does_not_miss_either_are_missed(dataset: Path) -> None:
    place = Dataset(dataset)
    first, *others = place.finished().shards
    (place.data / first.name).unlink()
    place.finish(others)
    assert verify(dataset) == ["manifest.json: 436 boards, expected 500 by job.json"]


def test_a_shard_that_stands_twice_in_the_manifest_is_found(dataset: Path) -> None:
    place = Dataset(dataset)
    first, second, *others = place.finished().shards
    (place.data / second.name).unlink()  # as many boards as before, by every count
    place.finish([first, first, *others])
    assert verify(dataset) == [f"{first.name}: 2 times in the manifest"]


def test_what_is_no_dataset_or_not_finished_is_said(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match=r"no dataset there; expected a folder with job.json"):
        verify(tmp_path)
    (dataset / "manifest.json").unlink()
    with pytest.raises(MaskobanError, match="the dataset is not finished"):
        verify(dataset)


@pytest.mark.parametrize("name", ["job.json", "manifest.json"])
@pytest.mark.parametrize(
    "value", ["{}", "[]", "null", '{"shards": [{}]}', "{", "[" * 100_000], ids=lambda text: text[:9]
)
def test_a_file_that_says_something_else_is_named(name: str, value: str, dataset: Path) -> None:
    (dataset / name).write_text(value)
    with pytest.raises(MaskobanError, match=rf"/{name}: (expected a JSON object with|cannot be read:) "):
        verify(dataset)
