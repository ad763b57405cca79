"""Boxoban, downloaded into the user's cache: resumed, verified, and in its own layout.

What a whole download looks like (the size, the SHA-256 and the levels of every file) is shipped beside this
file as ``boxoban_manifest.json``, made from a checkout of the original repository by

    python -m maskoban.training.fetch --make-manifest FOLDER > src/maskoban/training/boxoban_manifest.json

A file is downloaded under the name ``000.txt.part`` and gets its own name once its checksum is right, so a
file under its own name is either whole or was damaged later, which the next fetch notices and mends.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from maskoban.boards.errors import MaskobanError

SPLITS = ("medium/train", "medium/valid", "hard", "unfiltered/test")
BASE_URL = "https://raw.githubusercontent.com/google-deepmind/boxoban-levels/master"
LICENCE_NOTE = """\
These levels are Boxoban (https://github.com/google-deepmind/boxoban-levels), made in 2018 at DeepMind by
Arthur Guez, Mehdi Mirza, Karol Gregor, Rishabh Kabra, Sebastien Racaniere, Theophane Weber, David Raposo,
Adam Santoro, Laurent Orseau, Tom Eccles, Greg Wayne, David Silver, Timothy Lillicrap and Victor Valdes, and
licensed under the Apache License, Version 2.0 (https://www.apache.org/licenses/LICENSE-2.0).
They are unchanged.
"""

MANIFEST = Path(__file__).with_name("boxoban_manifest.json")
CONNECTIONS = 4
ATTEMPTS = 4
PAUSE = 0.5  # seconds before the second attempt; doubled before each further one
TIMEOUT = 15.0  # seconds without a byte
CHUNK = 1 << 14


class FetchError(MaskobanError):
    """A download that could not be finished; what came so far is kept, and fetching again continues."""


def cache_folder() -> Path:
    """Where maskoban keeps what it downloads and packs: ``MASKOBAN_CACHE``, else the platform's own place.

    >>> (cache_folder() / "boxoban" / "medium" / "train").parts[-3:]
    ('boxoban', 'medium', 'train')
    """
    if chosen := os.environ.get("MASKOBAN_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "maskoban"


def fetch(
    folder: str | Path | None = None,
    splits: Sequence[str] = SPLITS,
    base_url: str = BASE_URL,
    *,
    progress: bool = False,
) -> Path:
    """Download Boxoban's ``splits`` into ``folder`` (the user's cache by default); returns that folder.

    Finished files are verified and kept, partial ones continued. ``base_url`` may name a mirror with the same
    layout. Raises `FetchError` with one sentence; Ctrl-C raises ``KeyboardInterrupt`` with one.

    >>> fetch(splits=["medium/valid"]).name  # doctest: +SKIP
    'boxoban'
    """
    for split in splits:
        if split not in SPLITS:
            raise FetchError(f"Boxoban has no split '{split}' here; there are {', '.join(SPLITS)}")
    if "://" not in base_url:
        raise FetchError(f"'{base_url}' is not a web address to download from")
    folder = cache_folder() / "boxoban" if folder is None else Path(folder)
    files = [file for split in splits for file in _manifest()[split]]
    with _on_disk(folder):
        for split in splits:
            (folder / split).mkdir(parents=True, exist_ok=True)
        (folder / "LICENCE-NOTE").write_text(LICENCE_NOTE, encoding="utf-8")

    stop = threading.Event()
    with _bar(sum(file.size for file in files), progress) as show:
        pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="fetch")
        jobs: list[Future[None]] = []
        try:  # also around the submitting: the first files come while the others wait for their turn
            for file in files:
                jobs.append(pool.submit(_fetch_file, file, folder, base_url, show, stop))
            wait(jobs, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            finished = sum(job.done() for job in jobs)
            raise KeyboardInterrupt(
                f"stopped with {finished} of {len(files)} files in {folder}; fetching again continues"
            ) from None
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    for job in jobs:
        if not job.cancelled():
            job.result()  # raises what went wrong in it
    return folder


def fetched(split: str) -> Path | None:
    """The folder of a split in the user's cache, if every file of it has been fetched.

    >>> fetched("medium/train")  # doctest: +SKIP
    PosixPath('/home/ann/.cache/maskoban/boxoban/medium/train')
    """
    folder = cache_folder() / "boxoban"
    return folder / split if all((folder / file.name).exists() for file in _manifest()[split]) else None


@dataclass(frozen=True)
class _File:
    """What the manifest says of one file."""

    name: str  # "medium/train/000.txt"
    size: int
    levels: int
    sha256: str

    def problem(self, data: bytes) -> str:
        """What is wrong with a finished download, or nothing."""
        if len(data) != self.size:
            return f"it has {len(data):,} bytes and not {self.size:,}"
        if hashlib.sha256(data).hexdigest() != self.sha256:
            return "its SHA-256 checksum is not the manifest's"
        if (levels := _count_levels(data)) != self.levels:
            return f"it holds {levels:,} levels and not {self.levels:,}"
        return ""


class _Stopped(Exception):
    """Another file failed, or the user pressed Ctrl-C: leave quietly, keeping the partial file."""


def _fetch_file(
    file: _File, folder: Path, base_url: str, show: Callable[[int], None], stop: threading.Event
) -> None:
    target = folder / file.name
    partial = target.with_name(target.name + ".part")
    with _on_disk(target):
        if target.exists() and not file.problem(target.read_bytes()):
            show(file.size)
            return
    url = f"{base_url.rstrip('/')}/{file.name}"
    shown = 0
    for attempt in range(ATTEMPTS):
        if stop.wait(PAUSE * 2 ** (attempt - 1) if attempt else 0):
            return
        trouble = ""
        try:
            _download(url, partial, file.size, stop)
        except _Stopped:
            return
        except urllib.error.HTTPError as error:
            error.close()
            trouble = f"the server answered {error.code} {error.reason}"
            if error.code < 500 and error.code not in (408, 416, 429):  # asking again would not help
                break
            if error.code == 416:  # the partial file is longer than the server's: begin again
                with _on_disk(partial):
                    partial.unlink(missing_ok=True)
        except (OSError, http.client.HTTPException) as error:
            trouble = f"the connection failed ({getattr(error, 'reason', error) or type(error).__name__})"
        with _on_disk(target):
            data = partial.read_bytes() if partial.exists() else b""
            show(len(data) - shown)
            shown = len(data)
            problem = file.problem(data)
            if not problem:
                partial.replace(target)
                return
            if len(data) >= file.size:  # complete but wrong: no part of it can be trusted
                partial.unlink()
        trouble = trouble or f"what came is not the file, {problem}"
    raise FetchError(f"could not fetch {url}: {trouble}")


def _download(url: str, partial: Path, size: int, stop: threading.Event) -> None:
    """Append to ``partial`` what is missing of it, or write it anew where the server knows no ranges."""
    with _on_disk(partial):
        have = partial.stat().st_size if partial.exists() else 0
    if have >= size:
        return
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        continues = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        missing = size - have if continues else size
        came = bytearray()
        try:
            # One byte more than is missing is enough to know that this is another file.
            while len(came) <= missing and (chunk := response.read1(CHUNK)):
                came += chunk
                if stop.is_set():
                    raise _Stopped
        finally:  # a connection cut halfway leaves what came before the cut
            with _on_disk(partial), partial.open("ab" if continues else "wb") as out:
                out.write(came)


def _manifest() -> dict[str, list[_File]]:
    """The shipped manifest: the files of each split."""
    splits = json.loads(MANIFEST.read_text(encoding="utf-8"))["splits"]
    return {
        split: [_File(f"{split}/{name}", *entry) for name, entry in files.items()]
        for split, files in splits.items()
    }


def make_manifest(folder: str | Path) -> str:
    """The manifest of a checkout of boxoban-levels, as the JSON text that is shipped: one line a file.

    >>> len(json.loads(make_manifest("boxoban-levels"))["splits"]["hard"])  # doctest: +SKIP
    4
    """
    splits = []
    for split in SPLITS:
        lines = []
        for path in sorted((Path(folder) / split).glob("*.txt")):
            data = path.read_bytes()
            entry = [len(data), _count_levels(data), hashlib.sha256(data).hexdigest()]
            lines.append(f"{json.dumps(path.name)}: {json.dumps(entry)}")
        if not lines:
            raise FetchError(
                f"{folder} has no level files in {split}: a checkout of boxoban-levels was expected"
            )
        splits.append(f"{json.dumps(split)}: {{\n" + ",\n".join(lines) + "\n}")
    made_by = "python -m maskoban.training.fetch --make-manifest FOLDER"
    head = f'"made_by": {json.dumps(made_by)},\n"file": ["bytes", "levels", "sha256"],\n'
    return "{\n" + head + '"splits": {\n' + ",\n".join(splits) + "\n}\n}\n"


def _count_levels(data: bytes) -> int:
    """Boxoban numbers every level on a line of its own that starts with a semicolon."""
    return data.count(b";")


@contextmanager
def _on_disk(path: Path) -> Iterator[None]:
    """Turn what the disk refuses into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FetchError(f"no space left on the disk for {path}; fetching again continues") from None
        raise FetchError(f"cannot use {path}: {error.strerror or error}") from None


@contextmanager
def _bar(total: int, visible: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar in bytes on stderr; yields the function that advances it."""
    if not visible:
        yield lambda _: None
        return
    # Imported here, so that training runs where only NumPy and torch are.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("Boxoban"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "--make-manifest":
        sys.exit("usage: python -m maskoban.training.fetch --make-manifest FOLDER")
    sys.stdout.write(make_manifest(sys.argv[2]))
