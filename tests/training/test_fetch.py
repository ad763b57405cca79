"""Fetching Boxoban from a real HTTP server on this machine, well behaved and otherwise."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from maskoban.training import fetch as fetching
from maskoban.training.fetch import SPLITS, FetchError, cache_folder, fetch, fetched, make_manifest

LEVEL = "#####\n#@$.#\n#####\n"


class Mirror(ThreadingHTTPServer):
    """Serves a folder; ``faults[file]`` says what goes wrong, in order, when that file is asked for."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.folder = folder
        self.ranges = True
        self.faults: dict[str, list[str]] = {}
        self.asked: list[tuple[str, str | None]] = []  # (file, the Range it was asked with)
        self.released = threading.Event()  # ends a stall

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def asked_for(self, name: str) -> list[str | None]:
        return [range_ for asked, range_ in self.asked if asked == name]


class Answer(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        name, wanted = self.path.lstrip("/"), self.headers.get("Range")
        self.server.asked.append((name, wanted))
        fault = (self.server.faults.get(name) or ["none"]).pop(0)
        if fault.isdigit():
            self.send_error(int(fault))
            return
        body = (self.server.folder / name).read_bytes()
        if fault == "wrong bytes":
            body = body.replace(b"@$.", b"@.$")
        if fault == "shorter file":
            body = body[:100]
        if fault == "longer file":
            body = body * 1000
        if wanted and self.server.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            body = body[start:]
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault in ("cut", "stall"):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if fault == "stall":
                self.server.released.wait(10)
        else:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A small Boxoban with three files a split, the manifest of it, and a server for it."""
    source = tmp_path / "source"
    for split in SPLITS:
        for number in range(3):
            path = source / split / f"{number:03}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"; {i}\n{LEVEL}\n" for i in range(10 + number)))
    manifest = tmp_path / "manifest.json"
    manifest.write_text(make_manifest(source))
    monkeypatch.setattr(fetching, "MANIFEST", manifest)
    monkeypatch.setattr(fetching, "PAUSE", 0.01)
    with Mirror(source) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def tree(folder: Path) -> dict[str, bytes]:
    """Every level file under the folder, partial ones too."""
    return {str(p.relative_to(folder)): p.read_bytes() for split in SPLITS for p in folder.glob(f"{split}/*")}


FILE = "medium/train/001.txt"


def test_everything_arrives_in_the_original_layout_with_the_licence_note(
    mirror: Mirror, tmp_path: Path
) -> None:
    folder = fetch(tmp_path / "out", base_url=mirror.url, progress=True)
    assert folder == tmp_path / "out"
    assert tree(folder) == tree(mirror.folder)
    assert "Apache License, Version 2.0" in (folder / "LICENCE-NOTE").read_text()


def test_only_the_splits_asked_for_go_to_the_cache(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKOBAN_CACHE", str(tmp_path / "cache"))
    folder = fetch(splits=["hard"], base_url=mirror.url + "/")
    assert folder == tmp_path / "cache" / "boxoban"
    assert sorted(tree(folder)) == ["hard/000.txt", "hard/001.txt", "hard/002.txt"]
    assert fetched("hard") == folder / "hard"
    assert fetched("medium/train") is None


def test_finished_files_are_kept_and_a_damaged_one_is_fetched_again(mirror: Mirror, tmp_path: Path) -> None:
    fetch(tmp_path, base_url=mirror.url)
    mirror.asked.clear()
    (tmp_path / FILE).write_text(LEVEL)
    fetch(tmp_path, base_url=mirror.url)
    assert mirror.asked == [(FILE, None)]
    assert tree(tmp_path) == tree(mirror.folder)


def test_a_connection_cut_halfway_continues_from_there(mirror: Mirror, tmp_path: Path) -> None:
    half = (mirror.folder / FILE).stat().st_size // 2
    mirror.faults[FILE] = ["cut"]
    fetch(tmp_path, base_url=mirror.url)
    assert mirror.asked_for(FILE) == [None, f"bytes={half}-"]
    assert tree(tmp_path) == tree(mirror.folder)


def test_where_the_server_knows_no_ranges_a_cut_file_starts_again(mirror: Mirror, tmp_path: Path) -> None:
    mirror.ranges = False
    mirror.faults[FILE] = ["cut"]
    fetch(tmp_path, base_url=mirror.url)
    assert tree(tmp_path) == tree(mirror.folder)


def test_a_partial_file_of_an_earlier_fetch_is_continued(mirror: Mirror, tmp_path: Path) -> None:
    partial = tmp_path / f"{FILE}.part"
    partial.parent.mkdir(parents=True)
    partial.write_bytes((mirror.folder / FILE).read_bytes()[:33])
    fetch(tmp_path, base_url=mirror.url)
    assert mirror.asked_for(FILE) == ["bytes=33-"]
    assert tree(tmp_path) == tree(mirror.folder)


@pytest.mark.parametrize("old", [b"stale", b"stale" * 1000], ids=["short", "longer than the file"])
def test_a_stale_partial_file_is_noticed_and_replaced(mirror: Mirror, tmp_path: Path, old: bytes) -> None:
    partial = tmp_path / f"{FILE}.part"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(old)
    fetch(tmp_path, base_url=mirror.url)
    assert tree(tmp_path) == tree(mirror.folder)


@pytest.mark.parametrize(
    "fault", ["500", "503", "429", "416", "cut", "wrong bytes", "shorter file", "longer file"]
)
def test_what_goes_wrong_once_is_asked_for_again(mirror: Mirror, tmp_path: Path, fault: str) -> None:
    mirror.faults[FILE] = [fault]
    fetch(tmp_path, base_url=mirror.url)
    assert len(mirror.asked_for(FILE)) == 2
    assert tree(tmp_path) == tree(mirror.folder)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("404", "the server answered 404 Not Found"),
        ("500", "the server answered 500 Internal Server Error"),
        ("wrong bytes", "what came is not the file, its SHA-256 checksum is not the manifest's"),
        ("shorter file", "what came is not the file, it has 100 bytes and not 254"),
    ],
)
def test_what_keeps_going_wrong_is_one_sentence_and_the_other_files_stay(
    mirror: Mirror, tmp_path: Path, fault: str, sentence: str
) -> None:
    mirror.ranges = False
    mirror.faults[FILE] = [fault] * 10
    with pytest.raises(FetchError) as caught:
        fetch(tmp_path, base_url=mirror.url)
    assert str(caught.value) == f"could not fetch {mirror.url}/{FILE}: {sentence}"
    assert len(mirror.asked_for(FILE)) == (1 if fault == "404" else fetching.ATTEMPTS)
    assert not (tmp_path / FILE).exists()
    mirror.faults.clear()
    fetch(tmp_path, base_url=mirror.url)
    assert tree(tmp_path) == tree(mirror.folder)


def test_without_a_network(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(
        FetchError, match=r"could not fetch http://127.0.0.1:1/.*: the connection failed \(.*\)$"
    ):
        fetch(tmp_path, base_url="http://127.0.0.1:1")


def test_a_server_that_falls_silent_counts_as_a_failed_connection(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT", 0.2)
    mirror.faults[FILE] = ["stall"]
    fetch(tmp_path, base_url=mirror.url)
    assert tree(tmp_path) == tree(mirror.folder)


def test_a_full_disk_is_one_sentence(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(
        FetchError, match=r"^no space left on the disk for .*\.txt; fetching again continues$"
    ):
        fetch(tmp_path, base_url=mirror.url)


def test_a_folder_that_cannot_be_written(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FetchError, match=r"cannot use .*file: "):
        fetch(tmp_path / "file", base_url=mirror.url)


def test_unknown_splits_and_addresses_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="no split 'easy' here; there are medium/train, medium/valid, hard"):
        fetch(tmp_path / "out", splits=["easy"])
    with pytest.raises(FetchError, match="'nowhere' is not a web address"):
        fetch(tmp_path / "out", base_url="nowhere")
    assert not (tmp_path / "out").exists()


def test_ctrl_c_keeps_what_came_and_the_next_fetch_continues(mirror: Mirror, tmp_path: Path) -> None:
    mirror.faults[FILE] = ["stall"]
    program = f"""
import sys
from pathlib import Path
from maskoban.training import fetch as fetching
fetching.MANIFEST, fetching.TIMEOUT = Path({str(fetching.MANIFEST)!r}), 0.5
try:
    fetching.fetch({str(tmp_path)!r}, ["medium/train"], {mirror.url!r})
except KeyboardInterrupt as stop:
    sys.exit(str(stop))
"""
    child = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while (FILE, None) not in mirror.asked and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    assert said.strip().endswith("fetching again continues")
    assert "Traceback" not in said
    assert (tmp_path / f"{FILE}.part").stat().st_size > 0
    fetch(tmp_path, base_url=mirror.url)
    assert tree(tmp_path) == tree(mirror.folder)


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x/cache"}, "/x/cache/maskoban"),
        ("linux", {"HOME": "/home/ann"}, "/home/ann/.cache/maskoban"),
        ("darwin", {"HOME": "/Users/ann"}, "/Users/ann/Library/Caches/maskoban"),
        ("win32", {"LOCALAPPDATA": "/ann/Local"}, "/ann/Local/maskoban"),
        ("linux", {"HOME": "/home/ann", "MASKOBAN_CACHE": "~/boards"}, "/home/ann/boards"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(
    platform: str, variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "MASKOBAN_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == Path(folder)


def test_the_shipped_manifest_is_the_real_corpus(boxoban: Path) -> None:
    assert make_manifest(boxoban) == fetching.MANIFEST.read_text()


def test_the_shipped_manifest_counts_what_boxoban_says_it_holds() -> None:
    counts = {split: sum(file.levels for file in files) for split, files in fetching._manifest().items()}
    assert counts == {
        "medium/train": 450_000,
        "medium/valid": 50_000,
        "hard": 3_332,
        "unfiltered/test": 1_000,
    }
    digests = [file.sha256 for files in fetching._manifest().values() for file in files]
    assert len(set(digests)) == 505
    assert {len(digest) for digest in digests} == {hashlib.sha256().digest_size * 2}


def test_a_folder_without_levels_makes_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="has no level files in medium/train"):
        make_manifest(tmp_path)
