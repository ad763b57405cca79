"""Is a dataset what it says it is: checksums, counts, and a sample judged anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from maskoban.boards import TILES, MaskobanError, Tokens, exact_ids, ids
from maskoban.bulk.dataset import Dataset
from maskoban.bulk.pipeline import texts
from maskoban.solving import Limits, count, solve_many, solves

#: Told (boards checked, boards in all).
Progress = Callable[[int, int], None]


def verify(
    folder: str | Path, sample: int = 1000, seed: int = 0, progress: Progress | None = None
) -> list[str]:
    """What is wrong with a finished dataset, a sentence each; nothing is said where all is well.

    Every file is read and compared with the manifest; ``sample`` boards, chosen by ``seed``, are solved
    again, and their solutions are replayed.

    >>> verify("dataset")  # doctest: +SKIP
    []
    """
    dataset = Dataset(Path(folder))
    manifest = dataset.finished()
    shards = manifest["shards"]
    settings = dataset.settings()
    problems = [f"{name}: in data/ and not in the manifest" for name in _strangers(dataset, shards)]
    chosen = _chosen(shards, sample, seed)
    done = 0
    for shard in shards:
        problems += _problems(dataset, shard, settings, chosen.get(shard["name"], []))
        done += shard["rows"]
        if progress is not None:
            progress(done, manifest["boards"])
    total = sum(shard["rows"] for shard in shards)
    if total != manifest["boards"]:
        problems.append(f"manifest.json: {manifest['boards']:,} boards in all, and {total:,} in its shards")
    return problems


def _strangers(dataset: Dataset, shards: list[dict[str, Any]]) -> list[str]:
    known = {shard["name"] for shard in shards}
    return sorted(path.name for path in dataset.data.glob("*") if path.name not in known)


def _chosen(shards: list[dict[str, Any]], sample: int, seed: int) -> dict[str, list[int]]:
    """Which rows of which shards are judged anew."""
    total = sum(shard["rows"] for shard in shards)
    places = sorted(random.Random(seed).sample(range(total), min(sample, total)))
    chosen: dict[str, list[int]] = {}
    first = at = 0
    for shard in shards:
        last = first + shard["rows"]
        while at < len(places) and places[at] < last:
            chosen.setdefault(shard["name"], []).append(places[at] - first)
            at += 1
        first = last
    return chosen


def _problems(
    dataset: Dataset, shard: dict[str, Any], settings: dict[str, Any], chosen: list[int]
) -> Iterator[str]:
    name = shard["name"]
    try:
        if dataset.sum_of(name) != shard["sha256"]:
            yield f"{name}: not the file that was written, by its checksum"
            return
        rows = dataset.rows(name)
    except MaskobanError as error:
        yield str(error)
        return
    if rows.num_rows != shard["rows"]:
        yield f"{name}: {rows.num_rows:,} boards, and the manifest says {shard['rows']:,}"
        return
    if chosen:
        yield from (f"{name}, {problem}" for problem in _contradicted(rows.take(chosen), settings))


def _contradicted(rows: pa.Table, settings: dict[str, Any]) -> Iterator[str]:
    """What another look at these boards contradicts."""
    by_shape: dict[tuple[int, int] | None, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        by_shape.setdefault(_shape(row), []).append(row)
    for shape, told in by_shape.items():
        if shape is None:
            yield from (
                f"board {row['number']}: its text and its tokens are not of one board" for row in told
            )
        else:
            yield from _judged_anew(told, shape, settings)


def _shape(row: dict[str, Any]) -> tuple[int, int] | None:
    """Height and width of a board; None where text and tokens cannot be of one."""
    lines, tokens = (row["board"] or "").split("\n"), row["tokens"] or []
    height, width = len(lines), len(lines[0])
    sound = len(tokens) == height * width > 0 and set(tokens) <= set(range(TILES))
    return (height, width) if sound else None


def _judged_anew(
    told: list[dict[str, Any]], shape: tuple[int, int], settings: dict[str, Any]
) -> Iterator[str]:
    boards = np.array([row["tokens"] for row in told], np.uint8).reshape(-1, *shape)
    found = solve_many(boards, limits=Limits(states=settings["states"]))
    again = zip(told, found, ids(boards), exact_ids(boards), texts(boards), strict=True)
    for board, (row, result, one_id, exact_id, text) in zip(boards, again, strict=True):
        where = f"board {row['number']}"
        if (row["id"], row["exact_id"], row["board"]) != (one_id, exact_id, text):
            yield f"{where}: board, tokens and ids do not belong together"
        if row["verdict"] != result.verdict:
            yield f"{where}: {row['verdict']}, and judged anew {result.verdict}"
        elif row["verdict"] == "solved":
            yield from (f"{where}: {problem}" for problem in _replayed(board, row))


def _replayed(board: Tokens, row: dict[str, Any]) -> Iterator[str]:
    if row["solution"] is None:
        yield "solved, and there is no solution"
        return
    try:
        if not solves(board, row["solution"]):
            yield "its solution leaves boxes off their goals"
    except MaskobanError as error:
        yield f"its solution breaks the rules at {error}"
        return
    counts = count(row["solution"])
    if (row["pushes"], row["moves"]) != (counts.pushes, counts.moves):
        told = f"{row['pushes']} pushes and {row['moves']} moves"
        yield f"{told}, and its solution has {counts.pushes} and {counts.moves}"
