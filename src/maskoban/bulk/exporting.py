"""Export to the folders of Boxoban, ``unfiltered/train/000.txt`` and so on, or to one level file.

Programs that learn to play read Boxoban's layout, a thousand boards a file. Which split a board goes to is decided by
its id, so no puzzle, turned or mirrored, is in two of them.
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

from maskoban.bars import Progress
from maskoban.boards import Level, MaskobanError, said, write
from maskoban.boards.formats.boxoban import A_FILE
from maskoban.bulk.dataset import Dataset
from maskoban.solving.picking import Wishes

ALL = Wishes()


def export(
    folder: str | Path,
    out: str | Path,
    name: str = "unfiltered",
    valid: float = 0.05,
    test: float = 0.05,
    progress: Progress | None = None,
    wishes: Wishes = ALL,
) -> dict[str, int]:
    """Write the solved boards of a finished dataset to ``out/name/train``, ``valid`` and ``test``; counts them.

    Of all boards, or of those that are as wished. A file that is not as it was written is refused, by its checksum.

    >>> export("dataset", "boxoban-levels")  # doctest: +SKIP
    {'train': 74321, 'valid': 4112, 'test': 4098}
    """
    if min(valid, test) < 0 or valid + test > 1:
        raise MaskobanError(f"the shares of valid and test are 0 to 1 together, not {valid:g} and {test:g}")
    if name in ("", "..") or Path(name).name != name:
        raise MaskobanError(f"the name of the set is the name of one folder, not {name!r}")
    dataset = Dataset(Path(folder))
    dataset.finished()
    target = Path(out) / name
    part = target.with_name(f".{name}.part")
    if target.exists():
        raise MaskobanError(f"{target}: there is something already; expected a new folder")
    try:
        with said(target, "written"):
            shutil.rmtree(part, ignore_errors=True)
            splits = {split: _Split(part / split) for split in ("train", "valid", "test")}
            for rows in _wished(dataset, replace(wishes, only_solvable=True), progress):
                for one_id, board in zip(*rows.select(["id", "board"]).to_pydict().values(), strict=True):
                    splits[_split(one_id, valid, test)].add(board)
            for split in splits.values():
                split.write()
            if not part.exists():
                asked = replace(wishes, only_solvable=True)
                raise MaskobanError(
                    f"{folder}: no board is as asked ({asked}), so there is nothing to export"
                )
            os.replace(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return {name: split.count for name, split in splits.items()}


def export_levels(
    folder: str | Path, out: str | Path, progress: Progress | None = None, wishes: Wishes = ALL
) -> int:
    """Write the boards of a finished dataset that are as wished to one level file, in their order; counts them.

    Each has its model, seed and number for a title, its verdict and rating for a comment, and its solution. A file
    that is not as it was written is refused, by its checksum.

    >>> export_levels("dataset", "levels.sok")  # doctest: +SKIP
    100000
    """
    dataset = Dataset(Path(folder))
    dataset.finished()
    count = 0

    def levels() -> Iterator[Level]:
        nonlocal count
        for rows in _wished(dataset, wishes, progress):
            for some in rows.to_batches(max_chunksize=1000):
                yield from (_level(row) for row in some.to_pylist())
                count += len(some)

    each = levels()
    first = next(each, None)
    if first is None:
        which = f"is as asked ({wishes})" if wishes else "is in it"
        raise MaskobanError(f"{folder}: no board {which}, so there is nothing to export")
    write(out, chain([first], each))
    return count


def _wished(dataset: Dataset, wishes: Wishes, progress: Progress | None) -> Iterator[pa.Table]:
    """The rows of a dataset that are as wished, by what they say themselves; one shard is in memory at a time."""
    manifest, done = dataset.finished(), 0
    for shard in manifest["shards"]:
        rows, _ = dataset.as_written(shard)
        if wishes.only_solvable or wishes.difficulty:
            rows = rows.filter(pc.equal(rows["verdict"], "solved"))
        if wishes.difficulty:
            rows = rows.filter(pc.equal(rows["rating"], wishes.difficulty))
        if wishes.boxes is not None and len(rows):
            height = rows["board"][0].as_py().count("\n") + 1
            boards = np.array(rows["tokens"].to_pylist(), np.uint8).reshape(len(rows), height, -1)
            rows = rows.filter(pa.array(Wishes(boxes=wishes.boxes).met(boards)))
        yield rows
        done += shard["rows"]
        if progress is not None:
            progress(done, manifest["boards"])


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


class _Split:
    """The files of one split, each written when it is full."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        self._waiting: list[str] = []

    def add(self, board: str) -> None:
        self._waiting.append(f"; {len(self._waiting)}\n{board}\n\n")
        self.count += 1
        if len(self._waiting) == A_FILE:
            self.write()

    def write(self) -> None:
        """Write what is waiting, if anything is."""
        if self._waiting:
            self.folder.mkdir(parents=True, exist_ok=True)
            number = (self.count - 1) // A_FILE
            (self.folder / f"{number:03}.txt").write_text("".join(self._waiting), encoding="ascii")
            self._waiting.clear()
