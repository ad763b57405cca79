"""A dataset without the boards it holds twice: of each id the first of the sequence is kept.

DuckDB finds the first of each id over the whole dataset within the memory it is given, and puts aside on disk
what does not fit. The shards are then copied one at a time.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from maskoban.boards import MaskobanError
from maskoban.bulk.dataset import Dataset

#: Told (boards looked at, boards in all).
Progress = Callable[[int, int], None]

# A folder called id=5 is no column.
_ROWS = "read_parquet($files, hive_partitioning = false)"


def deduplicate(
    folder: str | Path, out: str | Path, megabytes: int = 1024, progress: Progress | None = None
) -> dict[str, Any]:
    """Write a finished dataset without its duplicates to another folder; returns the manifest of that one.

    A file that is not as it was written is refused, by its checksum.

    >>> deduplicate("dataset", "unique")["boards"]  # doctest: +SKIP
    99871
    """
    source, target = Dataset(Path(folder).resolve()), Dataset(Path(out).resolve())
    if source.path == target.path:
        raise MaskobanError(f"{folder}: name another folder for the dataset without duplicates")
    manifest = source.finished()
    with target.begun(source.settings() | {"without_duplicates_of": source.fingerprint()}):
        kept = target.complete()
        if kept is not None:
            return kept
        source.check_files()  # DuckDB would take rows for true that are not
        receipts = []
        done = 0
        with _first_numbers(source, target.path / ".sorting.part", megabytes) as first_numbers:
            for shard in manifest["shards"]:
                rows, _ = source.as_written(shard)
                if rows.num_rows:
                    ends = pc.min_max(rows["number"]).as_py()
                    rows = rows.filter(pc.is_in(rows["number"], first_numbers(ends["min"], ends["max"])))
                receipts.append(target.put(shard["name"], rows))
                done += shard["rows"]
                if progress is not None:
                    progress(done, manifest["boards"])
        return target.finish(receipts)


@contextmanager
def _first_numbers(source: Dataset, scratch: Path, megabytes: int) -> Iterator[Callable[[int, int], Any]]:
    """A function from a range of numbers to those in it that are the first with their id."""
    scratch.mkdir()
    firsts = scratch / "firsts.parquet"
    settings: dict[str, Any] = {
        "memory_limit": f"{megabytes}MB",
        "temp_directory": str(scratch),
        "preserve_insertion_order": False,
    }
    try:
        with duckdb.connect(config=settings) as database:
            # Sorted, so that what a shard needs lies together.
            database.execute(
                f"COPY (SELECT min(number) AS number FROM {_ROWS} GROUP BY id ORDER BY number)"
                f" TO '{_quoted(firsts)}' (FORMAT parquet)",
                {"files": [_plain(source.data / shard["name"]) for shard in source.finished()["shards"]]},
            )

            def between(low: int, high: int) -> Any:
                query = f"SELECT number FROM {_ROWS} WHERE number BETWEEN $low AND $high"
                found = database.execute(query, {"files": _plain(firsts), "low": low, "high": high})
                return pa.array(found.fetchnumpy()["number"])

            yield between
    except duckdb.OutOfMemoryException:
        raise MaskobanError(
            f"{megabytes} MB are not enough to find duplicates; give more with --megabytes"
        ) from None
    except duckdb.Error as error:
        raise MaskobanError(f"{source.path}: cannot be deduplicated: {str(error).splitlines()[0]}") from None


def _plain(path: Path) -> str:
    """The path of one file, also where its name looks like a pattern.

    >>> _plain(Path("run[1]"))
    'run[[]1]'
    """
    return glob.escape(str(path))


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
