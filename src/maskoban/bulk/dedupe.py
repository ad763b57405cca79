"""A dataset without duplicates: of all boards with one id, the first of the sequence is kept.

DuckDB finds the first board of each id within a limit of memory, and uses the disk for the rest. Shards are then
copied one at a time.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from maskoban._util.progress import OnProgress
from maskoban.boards import ids, stream
from maskoban.boards.corpus import load
from maskoban.boards.level import level_ids
from maskoban.bulk.dataset import Dataset, Manifest
from maskoban.errors import MaskobanError

# The rows of files given by these names. Without the option, a folder called id=5 would be a column.
_ROWS, _OTHERS = (f"read_parquet(${name}, hive_partitioning = false)" for name in ("files", "others"))


def dedupe(
    folder: str | Path,
    out: str | Path,
    megabytes: int = 1024,
    against: Sequence[str | Path] = (),
    on_progress: OnProgress | None = None,
) -> Manifest:
    """Write a finished dataset without its duplicates to another folder.

    Puzzles that ``against`` holds are left out, too: other datasets, level files, folders of them, or corpora by name.
    A file whose checksum differs is an error.
    """
    source, target = Dataset(Path(folder).resolve()), Dataset(Path(out).resolve())
    if source.path == target.path:
        raise MaskobanError(f"{out}: expected another folder than that of the dataset")
    settings = source.settings() | {"without_duplicates_of": source.fingerprint()}
    known_ids, known_files, names = _known(against)
    if names:
        settings |= {"without_puzzles_of": ", ".join(sorted(names))}
    with target.opened(settings):
        complete = target.complete()
        if complete is not None:
            return complete
        source.check_files()  # DuckDB does not compare checksums
        shards = []
        scratch = target.path / ".sorting.part"
        with _first_numbers(source, known_ids, known_files, scratch, megabytes) as first_numbers:
            for shard in source.shards(on_progress):
                rows = source.read(shard)
                if rows.num_rows:
                    ends = pc.min_max(rows["number"]).as_py()
                    rows = rows.filter(pc.is_in(rows["number"], first_numbers(ends["min"], ends["max"])))
                shards.append(target.write(shard.name, rows))
        return target.finish(shards)


def _known(sources: Sequence[str | Path]) -> tuple[set[str], list[str], list[str]]:
    """Puzzles to leave out: ids of levels, files of datasets, and a name with a fingerprint for every source."""
    levels: set[str] = set()
    files, names = [], []
    for source in sources:
        path = Path(source).resolve()
        if (path / "job.json").is_file():
            dataset = Dataset(path)
            dataset.check_files()
            files += _files(dataset)
            fingerprint = dataset.fingerprint()
        else:
            found = _ids_of_levels(source)
            levels |= found
            fingerprint = sha256("".join(sorted(found)).encode()).hexdigest()[:16]
        names.append(f"{path.name} ({fingerprint})")
    return levels, files, names


def _ids_of_levels(source: str | Path) -> set[str]:
    """The ids of all levels of a file, a folder or a corpus known by name."""
    if str(source) != "-" and not Path(source).exists():
        return set(ids(load(source)))
    return set(level_ids(list(stream(source))))


@contextmanager
def _first_numbers(
    source: Dataset, known_ids: set[str], known_files: list[str], scratch: Path, megabytes: int
) -> Iterator[Callable[[int, int], Any]]:
    """A function from a range of numbers to those in it that are the first with their id, and not known."""
    scratch.mkdir()
    firsts = scratch / "firsts.parquet"
    config = {
        "memory_limit": f"{megabytes}MB", "temp_directory": str(scratch), "preserve_insertion_order": False
    }  # fmt: skip
    try:
        with duckdb.connect(config=config) as database:  # type: ignore[arg-type]
            database.register("known", pa.table({"id": pa.array(sorted(known_ids), pa.string())}))
            not_in_others = f" ANTI JOIN (SELECT id FROM {_OTHERS}) USING (id)" if known_files else ""
            out = str(firsts).replace("'", "''")
            # Sorted, so that the numbers of a shard are stored together.
            database.execute(
                f"COPY (SELECT min(number) AS number FROM {_ROWS} ANTI JOIN known USING (id){not_in_others}"
                f" GROUP BY id ORDER BY number) TO '{out}' (FORMAT parquet)",
                {"files": _files(source)} | ({"others": known_files} if known_files else {}),
            )

            def between(low: int, high: int) -> Any:
                query = f"SELECT number FROM {_ROWS} WHERE number BETWEEN $low AND $high"
                found = database.execute(query, {"files": _escaped(firsts), "low": low, "high": high})
                return pa.array(found.fetchnumpy()["number"])

            yield between
    except duckdb.OutOfMemoryException:
        raise MaskobanError(f"--megabytes: {megabytes} MB are not enough to find duplicates") from None
    except duckdb.Error as error:
        raise MaskobanError(f"{source.path}: cannot be deduplicated: {str(error).splitlines()[0]}") from None


def _files(dataset: Dataset) -> list[str]:
    return [_escaped(dataset.data / shard.name) for shard in dataset.shards()]


def _escaped(path: Path) -> str:
    """The path of one file, even where its name looks like a pattern.

    >>> _escaped(Path("run[1]"))
    'run[[]1]'
    """
    return glob.escape(str(path))
