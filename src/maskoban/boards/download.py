"""Downloads Boxoban into the user's cache, in its original layout.

``boxoban_manifest.json`` beside this file lists the size, the number of levels and the SHA-256 of every file. It
is made from a checkout of the original repository:

    python -m maskoban.boards.download --make-manifest FOLDER > src/maskoban/boards/boxoban_manifest.json

A file appears under its name only with the right checksum. Files that are there already are verified and kept, so
an interrupted download continues with the next file.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from maskoban._util.files import atomic_file, file_errors
from maskoban._util.progress import OnProgress
from maskoban.errors import MaskobanError

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


def cache_folder() -> Path:
    """Where maskoban keeps downloads and packed corpora: ``MASKOBAN_CACHE``, else the platform's cache folder.

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


def download(
    folder: str | Path | None = None,
    splits: Sequence[str] = SPLITS,
    base_url: str = BASE_URL,
    on_progress: OnProgress | None = None,
) -> Path:
    """Download Boxoban's ``splits`` into ``folder`` (the user's cache by default) and return the folder.

    ``base_url`` may be a mirror with the same layout. ``on_progress`` counts files.

    >>> download(splits=["medium/valid"]).name  # doctest: +SKIP
    'boxoban'
    """
    for split in splits:
        if split not in SPLITS:
            raise MaskobanError(f"Boxoban has no split {split!r}; expected one of {', '.join(SPLITS)}")
    if "://" not in base_url:
        raise MaskobanError(f"{base_url!r} is not a web address; expected one that starts with https://")
    folder = cache_folder() / "boxoban" if folder is None else Path(folder)
    files = [file for split in splits for file in _manifest()[split]]
    with file_errors(folder, "written"):
        for split in splits:
            (folder / split).mkdir(parents=True, exist_ok=True)
        (folder / "LICENCE-NOTE").write_text(LICENCE_NOTE, encoding="utf-8")

    stop = threading.Event()
    pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="download")
    done = 0
    try:
        jobs = [pool.submit(download_file, file, folder, base_url, stop) for file in files]
        for job in as_completed(jobs):
            job.result()
            done += 1
            if on_progress:
                on_progress(done, len(files))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted with {done} of {len(files)} files in {folder}; the same command continues"
        ) from None
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
    return folder


def downloaded(split: str) -> Path | None:
    """The folder of a split in the user's cache, or None if a file of it is missing.

    >>> downloaded("medium/train")  # doctest: +SKIP
    PosixPath('/home/ann/.cache/maskoban/boxoban/medium/train')
    """
    folder = cache_folder() / "boxoban"
    return folder / split if all((folder / file.name).exists() for file in _manifest()[split]) else None


@dataclass(frozen=True)
class File:
    """A file to download, as a manifest describes it."""

    name: str  # "medium/train/000.txt"
    size: int
    levels: int
    sha256: str

    def problem(self, data: bytes) -> str:
        """What is wrong with the downloaded data; empty if nothing is."""
        if len(data) != self.size:
            return f"expected {self.size:,} bytes, got {len(data):,}"
        if hashlib.sha256(data).hexdigest() != self.sha256:
            return "its SHA-256 is not the one in the manifest"
        return ""


def download_file(file: File, folder: Path, base_url: str, stop: threading.Event) -> None:
    """Download a file into a folder, unless it is there already."""
    target = folder / file.name
    with file_errors(target, "read"):
        if target.exists() and not file.problem(target.read_bytes()):
            return
    url = f"{base_url.rstrip('/')}/{file.name}"
    for attempt in range(ATTEMPTS):
        if stop.wait(PAUSE * 2 ** (attempt - 1) if attempt else 0):
            return
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
                data = response.read(file.size + 1)  # one byte more shows that this is another file
        except urllib.error.HTTPError as error:
            error.close()
            problem = f"the server answered {error.code} {error.reason}"
            if error.code < 500 and error.code not in (408, 429):  # another attempt would not help
                break
        except (OSError, http.client.HTTPException) as error:
            problem = f"the connection failed ({getattr(error, 'reason', error) or type(error).__name__})"
        else:
            problem = file.problem(data)
            if not problem:
                with atomic_file(target) as out:
                    out.write(data)
                return
    raise MaskobanError(f"cannot download {url}: {problem}")


def _manifest() -> dict[str, list[File]]:
    """The files of each split."""
    splits = json.loads(MANIFEST.read_text(encoding="utf-8"))["splits"]
    return {
        split: [File(f"{split}/{name}", *entry) for name, entry in files.items()]
        for split, files in splits.items()
    }


def make_manifest(folder: str | Path) -> str:
    """The manifest of a checkout of boxoban-levels, as JSON with one line a file.

    >>> len(json.loads(make_manifest("boxoban-levels"))["splits"]["hard"])  # doctest: +SKIP
    4
    """
    splits = []
    for split in SPLITS:
        lines = []
        for path in sorted((Path(folder) / split).glob("*.txt")):
            data = path.read_bytes()
            # Boxoban numbers every level on a line that starts with a semicolon.
            entry = [len(data), data.count(b";"), hashlib.sha256(data).hexdigest()]
            lines.append(f"{json.dumps(path.name)}: {json.dumps(entry)}")
        if not lines:
            raise MaskobanError(f"{folder}: no level files in {split}; expected a checkout of boxoban-levels")
        splits.append(f"{json.dumps(split)}: {{\n" + ",\n".join(lines) + "\n}")
    made_by = "python -m maskoban.boards.download --make-manifest FOLDER"
    head = f'"made_by": {json.dumps(made_by)},\n"file": ["bytes", "levels", "sha256"],\n'
    return "{\n" + head + '"splits": {\n' + ",\n".join(splits) + "\n}\n}\n"


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "--make-manifest":
        sys.exit("usage: python -m maskoban.boards.download --make-manifest FOLDER")
    sys.stdout.write(make_manifest(sys.argv[2]))
