"""Export a dataset to Boxoban's folders (``unfiltered/train/000.txt`` and so on) or to one level file.

Programs that learn to play read Boxoban's layout, a thousand boards a file. A board's id decides its split, so no
puzzle, turned or mirrored, is in two of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maskoban._util.files import file_errors
from maskoban._util.progress import OnProgress
from maskoban.boards import Level, write
from maskoban.boards.files import BOARDS_A_FILE
from maskoban.bulk.dataset import Dataset
from maskoban.bulk.job import NO_FILTER, check_filter
from maskoban.errors import MaskobanError
from maskoban.solving.filters import BoardFilter


def export_boxoban(
    folder: str | Path,
    out: str | Path,
    name: str = "unfiltered",
    valid: float = 0.05,
    test: float = 0.05,
    board_filter: BoardFilter = NO_FILTER,
    on_progress: OnProgress | None = None,
) -> dict[str, int]:
    """Write solved boards of a finished dataset to ``out/name/train``, ``valid`` and ``test``; returns their numbers.

    A file whose checksum differs is an error.
    """
    if min(valid, test) < 0 or valid + test > 1:
        raise MaskobanError(
            f"--valid and --test: expected shares that sum to at most 1, got {valid:g} and {test:g}"
        )
    if name in ("", "..") or Path(name).name != name:
        raise MaskobanError(f"--name: expected the name of one folder, got {name!r}")
    dataset, target = Dataset(Path(folder)), Path(out) / name
    dataset.finished()
    if target.exists():
        raise MaskobanError(f"{target}: exists already; expected a new folder")
    part = target.with_name(f".{name}.part")
    counts = dict.fromkeys(("train", "valid", "test"), 0)
    waiting: dict[str, list[str]] = {split: [] for split in counts}

    def write_file(split: str) -> None:
        (part / split).mkdir(parents=True, exist_ok=True)
        text = "".join(f"; {i}\n{board}\n\n" for i, board in enumerate(waiting[split]))
        number = (counts[split] - 1) // BOARDS_A_FILE
        (part / split / f"{number:03}.txt").write_text(text, encoding="ascii")
        waiting[split].clear()

    try:
        with file_errors(target, "written"):
            shutil.rmtree(part, ignore_errors=True)
            for rows in _matching(dataset, replace(board_filter, only_solvable=True), on_progress):
                for one_id, board in zip(rows["id"].to_pylist(), rows["board"].to_pylist(), strict=True):
                    split = _split(one_id, valid, test)
                    waiting[split].append(board)
                    counts[split] += 1
                    if len(waiting[split]) == BOARDS_A_FILE:
                        write_file(split)
            for split in filter(waiting.get, waiting):
                write_file(split)
            os.replace(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return counts


def export_levels(
    folder: str | Path,
    out: str | Path,
    board_filter: BoardFilter = NO_FILTER,
    on_progress: OnProgress | None = None,
) -> int:
    """Write boards of a finished dataset to one level file, in their order; returns their number.

    A board's title is its model, seed and number, its comment its verdict and rating. A file whose checksum differs is
    an error.
    """
    count = 0

    def levels() -> Iterator[Level]:
        nonlocal count
        for rows in _matching(Dataset(Path(folder)), board_filter, on_progress):
            for batch in rows.to_batches(max_chunksize=1000):
                yield from map(_level, batch.to_pylist())
                count += len(batch)

    each = levels()
    write(
        out, chain([next(each)], each)
    )  # a dataset that has no such board is an error before anything is written
    return count


def _matching(
    dataset: Dataset, board_filter: BoardFilter, on_progress: OnProgress | None
) -> Iterator[pa.Table]:
    """The rows that match, by the columns of the dataset; one shard at a time. No matching row is an error."""
    check_filter(board_filter)
    found = False
    for shard in dataset.shards(on_progress):
        rows = dataset.read(shard)
        if board_filter.only_solvable or board_filter.difficulty:
            rows = rows.filter(pc.equal(rows["verdict"], "solved"))
        if board_filter.difficulty:
            rows = rows.filter(pc.equal(rows["rating"], board_filter.difficulty))
        if board_filter.boxes is not None and len(rows):
            boards = np.stack([_level(row).tokens for row in rows.to_pylist()])
            rows = rows.filter(pa.array(BoardFilter(boxes=board_filter.boxes).matches(boards)))
        if len(rows):
            found = True
            yield rows
    if not found:
        matches = f"matches ({board_filter})" if board_filter else "is in it"
        raise MaskobanError(f"{dataset.path}: no board {matches}; nothing was exported")


def _level(row: dict[str, Any]) -> Level:
    height = row["board"].count("\n") + 1
    return Level(
        np.array(row["tokens"], np.uint8).reshape(height, -1),
        title=f"{row['model']} {row['seed']}-{row['number']}",
        comment=", ".join(filter(None, [row["verdict"], row["rating"]])),
        solutions=(row["solution"] or "",),
    )


def _split(one_id: str, valid: float, test: float) -> str:
    """The split of a puzzle.

    >>> _split("00" * 16, 0.05, 0.05), _split("ff" * 16, 0.05, 0.05)
    ('valid', 'train')
    """
    share = int(one_id[:8], 16) / 2**32
    return "valid" if share < valid else "test" if share < valid + test else "train"
