"""Is a dataset what it says it is: checksums, counts, and a sample judged anew."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from maskoban.bars import Progress
from maskoban.boards import TILES, MaskobanError, Tokens, exact_ids, ids
from maskoban.boards.rows import texts
from maskoban.bulk.dataset import Dataset, Receipt, described
from maskoban.solving import Limits, count, solve_many, solves


def verify(
    folder: str | Path, sample: int = 1000, seed: int = 0, progress: Progress | None = None
) -> list[str]:
    """What is wrong with a finished dataset, a sentence each; nothing is said where all is well.

    Every file is read and compared with the manifest, and its totals with all of them and with the settings;
    ``sample`` boards, chosen by ``seed``, are solved again, and their solutions are replayed.

    >>> verify("dataset")  # doctest: +SKIP
    []
    """
    dataset = Dataset(Path(folder))
    manifest = dataset.finished()
    shards = manifest["shards"]
    settings = dataset.settings()
    problems = [f"{name}: in data/ and not in the manifest" for name in _strangers(dataset, shards)]
    names = Counter(shard["name"] for shard in shards)
    problems += [f"{name}: {n} times in the manifest" for name, n in names.items() if n > 1]
    chosen = _chosen(shards, sample, seed)
    found = []
    done = 0
    for shard in shards:
        try:
            rows, receipt = dataset.as_written(shard)
        except MaskobanError as error:
            problems.append(str(error))
        else:
            found.append(receipt)
            problems += _problems(rows, receipt, shard, settings, chosen.get(shard["name"], []))
        done += shard["rows"]
        if progress is not None:
            progress(done, manifest["boards"])
    if len(found) == len(shards):  # else the totals must differ
        problems += _miscounted(manifest, described(found))
    if manifest["boards"] != settings["count"] and "without_duplicates_of" not in settings:
        problems.append(
            f"manifest.json: {manifest['boards']:,} boards, and job.json says {settings['count']:,}"
        )
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
    rows: pa.Table, receipt: Receipt, shard: dict[str, Any], settings: dict[str, Any], chosen: list[int]
) -> Iterator[str]:
    name = shard["name"]
    if (receipt.rows, receipt.bytes) != (shard["rows"], shard["bytes"]):
        told = f"{shard['rows']:,} in {shard['bytes']:,}"
        yield f"{name}: {receipt.rows:,} boards in {receipt.bytes:,} bytes, and the manifest says {told}"
    elif chosen:
        yield from (f"{name}, {problem}" for problem in _contradicted(rows.take(chosen), settings))


def _miscounted(manifest: dict[str, Any], counted: dict[str, Any]) -> Iterator[str]:
    """Where the manifest's totals are not those of its files."""
    for name in ("boards", "bytes", "verdicts", "ratings"):
        if manifest[name] != counted[name]:
            yield f"manifest.json: {name} {manifest[name]}, and by the files {counted[name]}"


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
