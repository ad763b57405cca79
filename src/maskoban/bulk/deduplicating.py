"""A dataset without the boards it holds twice, or that others hold: of each id the first of the sequence is kept.

DuckDB finds the first of each id over the whole dataset within the memory it is given, and puts aside on disk
what does not fit. The shards are then copied one at a time.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maskoban.bars import Progress
from maskoban.boards import MaskobanError, Tokens, ids, stream
from maskoban.bulk.dataset import Dataset
from maskoban.training.corpus import load

# The rows of the files that a query is given by these names. A folder called id=5 is no column.
_ROWS, _OTHERS = (f"read_parquet(${name}, hive_partitioning = false)" for name in ("files", "others"))


def deduplicate(
    folder: str | Path,
    out: str | Path,
    megabytes: int = 1024,
    progress: Progress | None = None,
    against: Sequence[str | Path] = (),
) -> dict[str, Any]:
    """Write a finished dataset without its duplicates to another folder; returns the manifest of that one.

    A file that is not as it was written is refused, by its checksum. What any of ``against`` holds is left out
    too: other datasets, level files, folders of them, or corpora by name.

    >>> deduplicate("dataset", "unique")["boards"]  # doctest: +SKIP
    99871
    """
    source, target = Dataset(Path(folder).resolve()), Dataset(Path(out).resolve())
    if source.path == target.path:
        raise MaskobanError(f"{folder}: name another folder for the dataset without duplicates")
    manifest = source.finished()
    known = _known(against)
    settings = source.settings() | {"without_duplicates_of": source.fingerprint()}
    if known.names:
        settings |= {"without_puzzles_of": ", ".join(known.names)}
    with target.begun(settings):
        kept = target.complete()
        if kept is not None:
            return kept
        source.check_files()  # DuckDB would take rows for true that are not
        receipts = []
        done = 0
        with _first_numbers(source, known, target.path / ".sorting.part", megabytes) as first_numbers:
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


@dataclass(frozen=True)
class _Known:
    """Puzzles to leave out: ids, files of other datasets that hold more of them, and what to call each source."""

    ids: set[str]
    files: list[str]
    names: list[str]


def _known(sources: Sequence[str | Path]) -> _Known:
    levels: set[str] = set()
    files, names = [], []
    for source in sources:
        path = Path(source).resolve()
        if (path / "job.json").is_file():
            dataset = Dataset(path)
            dataset.check_files()
            files += _files(dataset)
            mark = dataset.fingerprint()
        else:
            found = _ids_of_levels(source)
            levels |= found
            mark = sha256("".join(sorted(found)).encode()).hexdigest()[:16]
        names.append(f"{path.name} ({mark})")
    return _Known(levels, files, sorted(names))


def _ids_of_levels(source: str | Path) -> set[str]:
    """The ids of all levels of a file, a folder or a corpus known by name, whatever their sizes."""
    if str(source) != "-" and not Path(source).exists():
        return set(ids(load(source)))
    of_size: dict[tuple[int, ...], list[Tokens]] = {}
    for level in stream(source):
        of_size.setdefault(level.tokens.shape, []).append(level.tokens)
    return {one_id for boards in of_size.values() for one_id in ids(np.stack(boards))}


@contextmanager
def _first_numbers(
    source: Dataset, known: _Known, scratch: Path, megabytes: int
) -> Iterator[Callable[[int, int], Any]]:
    """A function from a range of numbers to those in it that are the first with their id, and not known."""
    scratch.mkdir()
    firsts = scratch / "firsts.parquet"
    settings: dict[str, Any] = {
        "memory_limit": f"{megabytes}MB",
        "temp_directory": str(scratch),
        "preserve_insertion_order": False,
    }
    try:
        with duckdb.connect(config=settings) as database:
            database.register("known", pa.table({"id": pa.array(sorted(known.ids), pa.string())}))
            others = f" ANTI JOIN (SELECT id FROM {_OTHERS}) USING (id)"
            # Sorted, so that what a shard needs lies together.
            database.execute(
                f"COPY (SELECT min(number) AS number FROM {_ROWS} ANTI JOIN known USING (id)"
                f"{others if known.files else ''} GROUP BY id ORDER BY number)"
                f" TO '{_quoted(firsts)}' (FORMAT parquet)",
                {"files": _files(source)} | ({"others": known.files} if known.files else {}),
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


def _files(dataset: Dataset) -> list[str]:
    """The files of a finished dataset, as DuckDB is told of them."""
    return [_plain(dataset.data / shard["name"]) for shard in dataset.finished()["shards"]]


def _plain(path: Path) -> str:
    """The path of one file, also where its name looks like a pattern.

    >>> _plain(Path("run[1]"))
    'run[[]1]'
    """
    return glob.escape(str(path))


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
