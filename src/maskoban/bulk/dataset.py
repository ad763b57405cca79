"""The folder of a dataset.

``job.json`` holds the settings and is written first. ``data/`` holds one Parquet file a shard, written beside and
renamed. ``README.md`` is the card. ``manifest.json`` is written last, so a folder with one is finished; until then
``.receipts.jsonl`` is a log of the shards' checksums.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from maskoban._util.files import atomic_file, file_errors
from maskoban._util.progress import OnProgress
from maskoban.bulk.job import current_settings, difference
from maskoban.bulk.table import card, parquet_bytes, read_rows
from maskoban.errors import MaskobanError


@dataclass(frozen=True)
class ShardFile:
    """The file of a shard: its name in ``data/``, its size and its checksum."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a finished dataset holds: totals, and every file."""

    boards: int
    bytes: int
    verdicts: dict[str, int]
    ratings: dict[str, int]
    shards: list[ShardFile]


@dataclass(frozen=True)
class Dataset:
    """A dataset's folder."""

    path: Path

    @property
    def data(self) -> Path:
        """The folder of the shards."""
        return self.path / "data"

    @property
    def _log(self) -> Path:
        return self.path / ".receipts.jsonl"

    # --- settings ---------------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """The settings the dataset is made with, those of its model included."""
        kinds = {"model": str, "count": int, "states": int, "shard_size": int}
        found = _read_json(self.path / "job.json", kinds)
        if found is None:
            raise MaskobanError(f"{self.path}: no dataset there; expected a folder with job.json")
        return current_settings(found)

    @contextmanager
    def opened(self, settings: dict[str, Any]) -> Iterator[None]:
        """The folder, new or made with the same settings, locked against other processes."""
        with ExitStack() as stack:
            with file_errors(self.path, "written"):
                self.path.mkdir(parents=True, exist_ok=True)
                _lock(self.path, stack)
                self._start(settings)
            self.remove_temporary_files()
            stack.callback(self.remove_temporary_files)
            yield

    def _start(self, settings: dict[str, Any]) -> None:
        """Write the settings, or compare them with those there. Without any shard they may still change."""
        # A process that was killed while it wrote the settings leaves a temporary file.
        there = {path.name for path in self.path.iterdir() if not path.match(".maskoban-*.part")}
        if there and "job.json" not in there:
            raise MaskobanError(f"{self.path}: the folder holds other files; expected a new or an empty one")
        differs = difference(self.settings(), json.loads(json.dumps(settings))) if there else None
        if differs is not None and (there - {"job.json", "data"} or any(self.data.glob("*"))):
            raise MaskobanError(
                f"{self.path}: the dataset was started with {differs}; give the same settings, or another folder"
            )
        if differs is not None or not there:
            _write_json(self.path / "job.json", settings)
        self.data.mkdir(exist_ok=True)

    def remove_temporary_files(self) -> None:
        """Remove what a killed process had begun to write, and the log of a finished dataset."""
        for left_behind in [*self.path.glob(".*.part"), *self.data.glob(".*.part")]:
            if left_behind.is_dir():
                shutil.rmtree(left_behind, ignore_errors=True)
            else:
                left_behind.unlink(missing_ok=True)
        if self.manifest() is not None:
            self._log.unlink(missing_ok=True)

    # --- shards -----------------------------------------------------------------------------------------------------

    def write(self, name: str, rows: pa.Table) -> ShardFile:
        """Write a shard, whole or not at all."""
        data = parquet_bytes(rows)
        with atomic_file(self.data / name) as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        return ShardFile(name, rows.num_rows, len(data), sha256(data).hexdigest())

    def read(self, shard: ShardFile, columns: list[str] | None = None) -> pa.Table:
        """The rows of a shard, all columns or some. A file whose checksum differs is an error."""
        return read_rows(self._bytes(shard), str(self.data / shard.name), columns)

    def shards(self, on_progress: OnProgress | None = None) -> Iterator[ShardFile]:
        """The shards of a finished dataset; progress is told in boards, after each shard."""
        manifest, done = self.finished(), 0
        for shard in manifest.shards:
            yield shard
            done += shard.rows
            if on_progress is not None:
                on_progress(done, manifest.boards)

    def check_files(self) -> None:
        """Compare the checksum of every file of a finished dataset."""
        for shard in self.shards():
            self._bytes(shard)

    def _bytes(self, shard: ShardFile) -> bytes:
        with file_errors(self.data / shard.name, "read"):
            data = (self.data / shard.name).read_bytes()
        if sha256(data).hexdigest() != shard.sha256:
            raise MaskobanError(
                f"{shard.name}: the checksum is not that of the manifest; the file was changed"
            )
        return data

    def log(self, shards: Iterable[ShardFile]) -> None:
        """Log shards that are written, for the case that the process ends before the dataset is finished."""
        with file_errors(self._log, "written"), open(self._log, "a", encoding="utf-8") as log:
            # The newline comes first: an incomplete last line of a killed process does not damage the next one.
            log.writelines("\n" + json.dumps(asdict(shard)) for shard in shards)

    def logged(self) -> dict[str, ShardFile]:
        """The logged shards whose files are there with the right checksum, by name."""
        if not self._log.exists():
            return {}
        with file_errors(self._log, "read"):
            lines = self._log.read_text(encoding="utf-8").splitlines()
        found = {shard.name: shard for line in lines if (shard := _parse_log_line(line)) is not None}
        return {name: shard for name, shard in found.items() if self._is_whole(shard)}

    def _is_whole(self, shard: ShardFile) -> bool:
        try:
            return len(self._bytes(shard)) == shard.bytes
        except MaskobanError:
            return False

    # --- manifest ---------------------------------------------------------------------------------------------------

    def finish(self, shards: Iterable[ShardFile]) -> Manifest:
        """Write card and manifest: the dataset is finished."""
        shards = list(shards)
        manifest = totals(shards, (self.read(shard, ["verdict", "rating"]) for shard in shards))
        with atomic_file(self.path / "README.md") as out:
            out.write(card(self.settings(), asdict(manifest)).encode())
        _write_json(self.path / "manifest.json", asdict(manifest))
        return manifest

    def manifest(self) -> Manifest | None:
        """The manifest of a finished dataset; None while it is being made."""
        file = self.path / "manifest.json"
        kinds = {"boards": int, "bytes": int, "verdicts": dict, "ratings": dict, "shards": list}
        found = _read_json(file, kinds)
        if found is None:
            return None
        found["shards"] = [_shard_file(_checked(shard, _SHARD_KINDS, file)) for shard in found["shards"]]
        return Manifest(**{name: found[name] for name in kinds})

    def finished(self) -> Manifest:
        """The manifest. An unfinished dataset is an error."""
        self.settings()  # without them the folder is no dataset
        manifest = self.manifest()
        if manifest is None:
            raise MaskobanError(
                f"{self.path}: the dataset is not finished; run the command that made it again"
            )
        return manifest

    def complete(self) -> Manifest | None:
        """The manifest, if all files are there by their sizes. Otherwise the dataset becomes unfinished again."""
        manifest = self.manifest()
        if manifest is not None and not all(self._has_size(shard) for shard in manifest.shards):
            self.log(manifest.shards)
            (self.path / "manifest.json").unlink()
            return None
        return manifest

    def _has_size(self, shard: ShardFile) -> bool:
        file = self.data / shard.name
        return file.is_file() and file.stat().st_size == shard.bytes

    def fingerprint(self) -> str:
        """A hash of all files of a finished dataset."""
        return sha256("".join(shard.sha256 for shard in self.finished().shards).encode()).hexdigest()[:16]


def totals(shards: list[ShardFile], tables: Iterable[pa.Table]) -> Manifest:
    """The manifest of these shards and their rows, one table at a time."""
    counters: dict[str, Counter[str]] = {"verdict": Counter(), "rating": Counter()}
    for rows in tables:
        for column, counter in counters.items():
            for each in pc.value_counts(rows[column].drop_null()).to_pylist():
                counter[each["values"]] += each["counts"]
    verdicts, ratings = (dict(sorted(counter.items())) for counter in counters.values())
    rows_in_all, bytes_in_all = sum(shard.rows for shard in shards), sum(shard.bytes for shard in shards)
    return Manifest(rows_in_all, bytes_in_all, verdicts, ratings, shards)


_SHARD_KINDS = {"name": str, "rows": int, "bytes": int, "sha256": str}


def _shard_file(entry: dict[str, Any]) -> ShardFile:
    return ShardFile(**{name: entry[name] for name in _SHARD_KINDS})


def _parse_log_line(line: str) -> ShardFile | None:
    try:
        return _shard_file(json.loads(line))
    except (ValueError, TypeError, LookupError):  # an incomplete line
        return None


def _read_json(file: Path, kinds: dict[str, type]) -> dict[str, Any] | None:
    """The JSON object a file holds, with at least these names; None where there is no such file."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise MaskobanError(f"{file}: cannot be read: {error}") from None
    return _checked(found, kinds, file)


def _checked(value: Any, kinds: dict[str, type], file: Path) -> dict[str, Any]:
    if isinstance(value, dict) and all(isinstance(value.get(name), kinds[name]) for name in kinds):
        return value
    raise MaskobanError(f"{file}: expected a JSON object with {', '.join(kinds)}")


def _write_json(file: Path, value: dict[str, Any]) -> None:
    with atomic_file(file) as out:
        out.write((json.dumps(value, indent=1) + "\n").encode())


def _lock(folder: Path, stack: ExitStack) -> None:
    """Lock the folder for this process. Its files are replaced, so the lock is on the folder itself."""
    try:
        import fcntl
    except ImportError:  # Windows: two processes would make the same files
        return
    descriptor = os.open(folder, os.O_RDONLY)
    stack.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MaskobanError(f"{folder}: another process is making this dataset") from None
    except OSError:  # a file system without locks
        return
