"""Verify a dataset: checksums, totals, and a sample of boards that is solved again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from maskoban._util.progress import OnProgress
from maskoban.boards import TILES, Tokens, exact_ids, ids
from maskoban.boards.tiles import board_texts
from maskoban.bulk.dataset import Dataset, Manifest, ShardFile, totals
from maskoban.errors import MaskobanError
from maskoban.solving import Limits, count, solve, solves


def verify(
    folder: str | Path, sample: int = 1000, seed: int = 0, on_progress: OnProgress | None = None
) -> list[str]:
    """The problems of a finished dataset, a sentence each.

    Every file is compared with the manifest, and the manifest with the settings. ``sample`` boards, chosen by ``seed``,
    are solved again, and their solutions are replayed.
    """
    dataset = Dataset(Path(folder))
    manifest, settings = dataset.finished(), dataset.settings()
    names = Counter(shard.name for shard in manifest.shards)
    problems = [
        f"{path.name}: in data/, but not in the manifest"
        for path in sorted(dataset.data.glob("*"))
        if path.name not in names
    ]
    problems += [f"{name}: {n} times in the manifest" for name, n in names.items() if n > 1]
    unread = []

    def tables() -> Iterator[pa.Table]:
        chosen_rows = _chosen_rows(manifest, sample, seed)
        for shard, chosen in zip(dataset.shards(on_progress), chosen_rows, strict=True):
            try:
                rows = dataset.read(shard)
            except MaskobanError as error:
                unread.append(str(error))
            else:
                size = (dataset.data / shard.name).stat().st_size
                problems.extend(_problems(rows, size, shard, chosen, settings["states"]))
                yield rows

    counted = totals(manifest.shards, tables())
    problems += unread
    if not unread:  # else the totals differ, too
        problems += [
            f"manifest.json: {name} {getattr(manifest, name)}, expected {expected} by the files"
            for name, expected in vars(counted).items()
            if getattr(manifest, name) != expected
        ]
    if manifest.boards != settings["count"] and "without_duplicates_of" not in settings:
        problems.append(
            f"manifest.json: {manifest.boards:,} boards, expected {settings['count']:,} by job.json"
        )
    return problems


def _chosen_rows(manifest: Manifest, sample: int, seed: int) -> list[list[int]]:
    """The rows to solve again, by shard."""
    ends = np.cumsum([shard.rows for shard in manifest.shards])
    total = sum(shard.rows for shard in manifest.shards)
    places = np.array(sorted(random.Random(seed).sample(range(total), min(sample, total))), np.int64)
    parts = np.split(places, np.searchsorted(places, ends))[:-1]
    firsts = [end - shard.rows for end, shard in zip(ends, manifest.shards, strict=True)]
    return [(part - first).tolist() for part, first in zip(parts, firsts, strict=True)]


def _problems(rows: pa.Table, size: int, shard: ShardFile, chosen: list[int], states: int) -> Iterator[str]:
    if (rows.num_rows, size) != (shard.rows, shard.bytes):
        expected = f"{shard.rows:,} in {shard.bytes:,}"
        yield f"{shard.name}: {rows.num_rows:,} boards in {size:,} bytes, expected {expected} by the manifest"
        return
    for row in rows.take(chosen).to_pylist() if chosen else []:
        yield from (
            f"{shard.name}, board {row['number']}: {problem}" for problem in _row_problems(row, states)
        )


def _row_problems(row: dict[str, Any], states: int) -> Iterator[str]:
    """What is wrong with one row, by solving its board again."""
    lines, tokens = (row["board"] or "").split("\n"), row["tokens"] or []
    if not len(tokens) == len(lines) * len(lines[0]) > 0 or not set(tokens) <= set(range(TILES)):
        yield "text and tokens are not of the same board"
        return
    board = np.array(tokens, np.uint8).reshape(len(lines), -1)
    stack = board[None]
    if (row["id"], row["exact_id"], row["board"]) != (
        ids(stack)[0],
        exact_ids(stack)[0],
        board_texts(stack)[0],
    ):
        yield "board, tokens and ids are not of the same board"
    verdict = solve(board, limits=Limits(states=states)).verdict
    if row["verdict"] != verdict:
        yield f"verdict {row['verdict']}, expected {verdict}"
    elif verdict == "solved":
        yield from _solution_problems(board, row)


def _solution_problems(board: Tokens, row: dict[str, Any]) -> Iterator[str]:
    if row["solution"] is None:
        yield "solved, but without a solution"
        return
    try:
        if not solves(board, row["solution"]):
            yield "the solution leaves boxes off their goals"
    except MaskobanError as error:
        yield f"the solution breaks the rules: {error}"
        return
    counts = count(row["solution"])
    for name in ("pushes", "moves", "box_lines"):
        if row.get(name, getattr(counts, name)) != getattr(counts, name):
            yield f"{name} {row[name]}, expected {getattr(counts, name)} by the solution"
