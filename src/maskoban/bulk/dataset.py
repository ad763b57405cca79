"""The folder of a dataset: shards, what they are checked against, and the settings they are made with.

``job.json`` is written first and never changes once a shard is made; ``data/`` holds a Parquet file a shard, written
beside and renamed; ``README.md`` describes the dataset; ``manifest.json`` is written last, so a folder that has one is
finished. Until then ``.receipts.jsonl`` remembers the checksum of every shard that was made.
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

from maskoban.boards import MaskobanError, said, whole_file
from maskoban.bulk.card import card
from maskoban.bulk.job import Job, difference
from maskoban.bulk.table import parquet_bytes, read_rows


@dataclass(frozen=True)
class Receipt:
    """What is known of a shard's file once it is written."""

    name: str
    rows: int
    bytes: int
    sha256: str
    verdicts: dict[str, int]
    ratings: dict[str, int]


@dataclass(frozen=True)
class Dataset:
    """A dataset's folder.

    >>> Dataset(Path("nowhere")).manifest() is None
    True
    """

    path: Path

    @property
    def data(self) -> Path:
        """Where the shards are."""
        return self.path / "data"

    @contextmanager
    def begun(self, settings: dict[str, Any]) -> Iterator[None]:
        """The folder, made or found with these very settings, and nobody else at work in it."""
        with ExitStack() as held:
            with said(self.path, "written"):
                self.path.mkdir(parents=True, exist_ok=True)
                _lock(self.path, held)
                self._begin(settings)
            self.tidy()
            try:
                yield
            finally:
                self.tidy()

    def settings(self) -> dict[str, Any]:
        """What the dataset is made with."""
        kept = _read_json(
            self.path / "job.json", {"model": str, "count": int, "states": int, "shard_size": int}
        )
        if kept is None:
            raise MaskobanError(f"{self.path}: no dataset there (expected job.json)")
        # What it was called in datasets of before.
        return {"only_solvable" if name == "solvable_only" else name: value for name, value in kept.items()}

    def _begin(self, settings: dict[str, Any]) -> None:
        """Write the settings down, or hold them against those that were: once a shard is made they stay."""
        # What a process killed at its very start left of the settings does not count.
        there = {path.name for path in self.path.iterdir() if not path.match(".job.json.*.part")}
        if there and "job.json" not in there:
            raise MaskobanError(f"{self.path}: holds something else; expected a new or an empty folder")
        differs = difference(self.settings(), json.loads(json.dumps(settings))) if there else None
        if differs is not None and (there - {"job.json", "data"} or any(self.data.glob("*"))):
            raise MaskobanError(
                f"{self.path} was begun with {differs}: give the same settings again, or another folder"
            )
        if differs is not None or not there:
            _write_json(self.path / "job.json", settings)
        self.data.mkdir(exist_ok=True)

    def tidy(self) -> None:
        """Take away what a killed process had begun to write, and what a finished dataset no longer needs."""
        for left_behind in [*self.path.glob(".*.part"), *self.data.glob(".*.part")]:
            if left_behind.is_dir():
                shutil.rmtree(left_behind, ignore_errors=True)
            else:
                left_behind.unlink(missing_ok=True)
        if self.manifest() is not None:
            self._receipts.unlink(missing_ok=True)

    def put(self, name: str, rows: pa.Table) -> Receipt:
        """Write a shard: all of it is there afterwards, or nothing."""
        data = parquet_bytes(rows)
        with whole_file(self.data / name) as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        return _receipt(name, data, rows)

    def rows(self, name: str) -> pa.Table:
        """The rows of a shard."""
        return read_rows(self._bytes(name), str(self.data / name))

    def as_written(self, shard: dict[str, Any]) -> tuple[pa.Table, Receipt]:
        """The rows and the receipt of a shard of the manifest; refused where its file is another one now."""
        name = shard["name"]
        data = self._bytes_as_written(shard)
        rows = read_rows(data, str(self.data / name))
        return rows, _receipt(name, data, rows)

    def check_files(self) -> None:
        """Refuse a finished dataset of which a file is another one now."""
        for shard in self.finished()["shards"]:
            self._bytes_as_written(shard)

    def note(self, receipt: Receipt) -> None:
        """Remember a receipt, should this process be killed before the dataset is finished."""
        with said(self._receipts, "written"), open(self._receipts, "a", encoding="utf-8") as journal:
            # The newline comes first: what a killed process left of its last line spoils no other.
            journal.write("\n" + json.dumps(asdict(receipt)))

    def whole(self) -> dict[str, Receipt]:
        """The receipts of the shards that are there as they were written, by name."""
        if not self._receipts.exists():
            return {}
        with said(self._receipts, "read"):
            lines = self._receipts.read_text(encoding="utf-8").splitlines()
        noted = {receipt.name: receipt for line in lines if (receipt := _read_receipt(line)) is not None}
        there = {path.name for path in self.data.glob("*")}
        return {
            name: receipt
            for name, receipt in noted.items()
            if name in there and self.sum_of(name) == receipt.sha256
        }

    @property
    def _receipts(self) -> Path:
        return self.path / ".receipts.jsonl"

    def sum_of(self, name: str) -> str:
        """The checksum of a shard's file as it is now."""
        return sha256(self._bytes(name)).hexdigest()

    def finish(self, receipts: Iterable[Receipt]) -> dict[str, Any]:
        """Describe what was made; from now on the dataset is finished."""
        manifest = described(receipts)
        with whole_file(self.path / "README.md") as out:
            out.write(card(self.settings(), manifest).encode())
        _write_json(self.path / "manifest.json", manifest)
        return manifest

    def manifest(self) -> dict[str, Any] | None:
        """What a finished dataset holds; None while it is being made."""
        file = self.path / "manifest.json"
        kept = _read_json(
            file, {"boards": int, "bytes": int, "verdicts": dict, "ratings": dict, "shards": list}
        )
        for shard in kept["shards"] if kept is not None else []:
            _checked(shard, {"name": str, "rows": int, "bytes": int, "sha256": str}, file)
        return kept

    def complete(self) -> dict[str, Any] | None:
        """What a finished dataset holds; None where files are missing, by their sizes: then it is unfinished again."""
        manifest = self.manifest()
        if manifest is None or all(
            self._size(shard["name"]) == shard["bytes"] for shard in manifest["shards"]
        ):
            return manifest
        for shard in manifest["shards"]:
            try:
                _, receipt = self.as_written(shard)
            except MaskobanError:  # it will be made again
                continue
            self.note(receipt)
        (self.path / "manifest.json").unlink()
        return None

    def finished(self) -> dict[str, Any]:
        """What is in it, or the sentence that says it is not finished."""
        settings = self.settings()
        manifest = self.manifest()
        if manifest is None:
            too_few = self._too_few(settings)
            raise MaskobanError(
                f"{self.path} is not finished: the command that began it "
                + (f"gave up, for {too_few}" if too_few else "goes on where it stopped")
            )
        return manifest

    def _too_few(self, settings: dict[str, Any]) -> str | None:
        """Why this dataset is never finished, where all that may be drawn for it is drawn; else None."""
        if "without_duplicates_of" in settings:
            return None
        wishes = ("count", "only_solvable", "difficulty", "boxes", "shard_size")
        job = Job(**{name: settings[name] for name in wishes if name in settings})
        made = self.whole() if job.filtered else {}
        rows = sum(receipt.rows for receipt in made.values())
        return job.too_few(rows) if len(made) == job.most_shards and rows < job.count else None

    def fingerprint(self) -> str:
        """A hash of all that a finished dataset holds."""
        sums = "".join(shard["sha256"] for shard in self.finished()["shards"])
        return sha256(sums.encode()).hexdigest()[:16]

    def _size(self, name: str) -> int | None:
        file = self.data / name
        return file.stat().st_size if file.is_file() else None

    def _bytes_as_written(self, shard: dict[str, Any]) -> bytes:
        data = self._bytes(shard["name"])
        if sha256(data).hexdigest() != shard["sha256"]:
            raise MaskobanError(f"{shard['name']}: not the file that was written, by its checksum")
        return data

    def _bytes(self, name: str) -> bytes:
        with said(self.data / name, "read"):
            return (self.data / name).read_bytes()


def described(receipts: Iterable[Receipt]) -> dict[str, Any]:
    """The manifest of these shards: what they hold in all, and the file of each.

    >>> described([Receipt("a", 2, 99, "f00d", {"solved": 2}, {"easy": 1})])["verdicts"]
    {'solved': 2}
    """
    shards = [asdict(receipt) for receipt in receipts]
    totals = {
        "boards": sum(shard["rows"] for shard in shards),
        "bytes": sum(shard["bytes"] for shard in shards),
        "verdicts": _sums(shard.pop("verdicts") for shard in shards),
        "ratings": _sums(shard.pop("ratings") for shard in shards),
    }
    return {**totals, "shards": shards}


def _receipt(name: str, data: bytes, rows: pa.Table) -> Receipt:
    verdicts, ratings = (Counter(rows[column].to_pylist()) for column in ("verdict", "rating"))
    del verdicts[None], ratings[None]
    return Receipt(name, rows.num_rows, len(data), sha256(data).hexdigest(), dict(verdicts), dict(ratings))


def _read_receipt(line: str) -> Receipt | None:
    try:
        return Receipt(**json.loads(line))
    except (ValueError, TypeError):  # a line cut short
        return None


def _sums(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))


def _read_json(file: Path, kinds: dict[str, type]) -> dict[str, Any] | None:
    """What a file says, these names and kinds of values at least; None where there is no such file."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise MaskobanError(f"{file}: cannot be read: {error}") from None
    return _checked(kept, kinds, file)


def _checked(value: Any, kinds: dict[str, type], file: Path) -> dict[str, Any]:
    if isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in kinds.items()):
        return value
    raise MaskobanError(f"{file}: not as maskoban writes it: expected {', '.join(kinds)}")


def _write_json(file: Path, value: dict[str, Any]) -> None:
    with whole_file(file) as out:
        out.write((json.dumps(value, indent=1) + "\n").encode())


def _lock(folder: Path, held: ExitStack) -> None:
    """Nobody else may work in this folder while this is held. Its files are replaced, so it is locked itself."""
    try:
        import fcntl
    except ImportError:  # Windows; two jobs would only do each other's work again
        return
    # Closed by whoever holds it, and by the system when we are killed.
    descriptor = os.open(folder, os.O_RDONLY)
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MaskobanError(f"{folder}: another process is making this dataset right now") from None
    except OSError:  # a file system without locks
        return
