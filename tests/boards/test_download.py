"""Downloading Boxoban from a real HTTP server on this machine, well behaved and otherwise."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from maskoban.boards import download as module
from maskoban.boards.download import SPLITS, cache_folder, download, downloaded, make_manifest
from maskoban.errors import FileError, MaskobanError
from tests.waiting import LIMIT, wait_for

LEVEL = "#####\n#@$.#\n#####\n"


class Mirror(ThreadingHTTPServer):
    """Serves a folder; ``faults[file]`` lists what goes wrong when that file is requested, in order."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.faults: dict[str, list[str]] = {}
        self.requests: list[str] = []
        self.released = threading.Event()  # ends a stall

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        name = self.path.lstrip("/")
        self.server.requests.append(name)
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
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault in ("cut", "stall"):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if fault == "stall":
                self.server.released.wait(60)
        else:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A small Boxoban with three files a split, its manifest, and a server."""
    source = tmp_path / "source"
    for split in SPLITS:
        for number in range(3):
            path = source / split / f"{number:03}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"; {i}\n{LEVEL}\n" for i in range(10 + number)))
    manifest = tmp_path / "manifest.json"
    manifest.write_text(make_manifest(source))
    monkeypatch.setattr(module, "MANIFEST", manifest)
    monkeypatch.setattr(module, "PAUSE", 0.01)
    with Mirror(source) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def tree(folder: Path) -> dict[str, bytes]:
    """Every file in the folders of the splits, hidden ones too."""
    return {str(p.relative_to(folder)): p.read_bytes() for split in SPLITS for p in folder.glob(f"{split}/*")}


FILE = "medium/train/001.txt"


def test_everything_arrives_in_the_original_layout_with_the_licence_note(
    mirror: Mirror, tmp_path: Path
) -> None:
    progress: list[tuple[int, int]] = []
    folder = download(
        tmp_path / "out", base_url=mirror.url, on_progress=lambda *counts: progress.append(counts)
    )
    assert folder == tmp_path / "out"
    assert tree(folder) == tree(mirror.folder)
    assert "Apache License, Version 2.0" in (folder / "LICENCE-NOTE").read_text()
    assert progress == [(i, 12) for i in range(1, 13)]


def test_some_splits_into_the_cache(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKOBAN_CACHE", str(tmp_path / "cache"))
    folder = download(splits=["hard"], base_url=mirror.url + "/")
    assert folder == tmp_path / "cache" / "boxoban"
    assert sorted(tree(folder)) == ["hard/000.txt", "hard/001.txt", "hard/002.txt"]
    assert downloaded("hard") == folder / "hard"
    assert downloaded("medium/train") is None


def test_finished_files_are_kept_and_a_damaged_one_is_downloaded_again(
    mirror: Mirror, tmp_path: Path
) -> None:
    download(tmp_path, base_url=mirror.url)
    mirror.requests.clear()
    (tmp_path / FILE).write_text(LEVEL)
    download(tmp_path, base_url=mirror.url)
    assert mirror.requests == [FILE]
    assert tree(tmp_path) == tree(mirror.folder)


@pytest.mark.parametrize("fault", ["500", "503", "429", "cut", "wrong bytes", "shorter file", "longer file"])
def test_what_fails_once_is_requested_again(mirror: Mirror, tmp_path: Path, fault: str) -> None:
    mirror.faults[FILE] = [fault]
    download(tmp_path, base_url=mirror.url)
    assert mirror.requests.count(FILE) == 2
    assert tree(tmp_path) == tree(mirror.folder)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("404", "the server answered 404 Not Found"),
        ("500", "the server answered 500 Internal Server Error"),
        ("wrong bytes", "its SHA-256 is not the one in the manifest"),
        ("shorter file", "expected 254 bytes, got 100"),
    ],
)
def test_what_keeps_failing_is_one_sentence_and_the_other_files_stay(
    mirror: Mirror, tmp_path: Path, fault: str, sentence: str
) -> None:
    mirror.faults[FILE] = [fault] * 10
    with pytest.raises(MaskobanError) as caught:
        download(tmp_path, base_url=mirror.url)
    assert str(caught.value) == f"cannot download {mirror.url}/{FILE}: {sentence}"
    assert mirror.requests.count(FILE) == (1 if fault == "404" else module.ATTEMPTS)
    assert not (tmp_path / FILE).exists()
    mirror.faults.clear()
    download(tmp_path, base_url=mirror.url)
    assert tree(tmp_path) == tree(mirror.folder)


def test_without_a_network(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(
        MaskobanError, match=r"cannot download http://127.0.0.1:1/.*: the connection failed \(.*\)$"
    ):
        download(tmp_path, base_url="http://127.0.0.1:1")


def test_a_server_that_falls_silent_counts_as_a_failed_connection(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 1.0)
    mirror.faults[FILE] = ["stall"]
    download(tmp_path, base_url=mirror.url)
    assert tree(tmp_path) == tree(mirror.folder)


def test_a_folder_that_cannot_be_written(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FileError, match=r"file: cannot be written: Not a directory"):
        download(tmp_path / "file", base_url=mirror.url)


def test_unknown_splits_and_addresses_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(
        MaskobanError, match="no split 'easy'; expected one of medium/train, medium/valid, hard"
    ):
        download(tmp_path / "out", splits=["easy"])
    with pytest.raises(MaskobanError, match="'nowhere' is not a web address"):
        download(tmp_path / "out", base_url="nowhere")
    assert not (tmp_path / "out").exists()


def test_ctrl_c_keeps_finished_files_and_the_next_download_continues(mirror: Mirror, tmp_path: Path) -> None:
    mirror.faults[FILE] = ["stall"]
    program = f"""
import sys
from pathlib import Path
from maskoban.boards import download as module
module.MANIFEST, module.TIMEOUT = Path({str(module.MANIFEST)!r}), {LIMIT}
try:
    module.download({str(tmp_path)!r}, ["medium/train"], {mirror.url!r}, lambda *_: print("one", flush=True))
except KeyboardInterrupt as stop:
    sys.exit(str(stop))
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert [child.stdout.readline() for _ in range(2)] == ["one\n"] * 2  # the third file stalls
    wait_for(lambda: FILE in mirror.requests, child)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=LIMIT)
    assert error.strip() == f"interrupted with 2 of 3 files in {tmp_path}; the same command continues"
    assert sorted(tree(tmp_path)) == ["medium/train/000.txt", "medium/train/002.txt"]
    mirror.requests.clear()
    download(tmp_path, splits=["medium/train"], base_url=mirror.url)
    assert mirror.requests == [FILE]


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
    assert make_manifest(boxoban) == module.MANIFEST.read_text()


def test_the_shipped_manifest_counts_what_boxoban_says_it_holds() -> None:
    counts = {split: sum(file.levels for file in files) for split, files in module._manifest().items()}
    assert counts == {
        "medium/train": 450_000,
        "medium/valid": 50_000,
        "hard": 3_332,
        "unfiltered/test": 1_000,
    }
    digests = [file.sha256 for files in module._manifest().values() for file in files]
    assert len(set(digests)) == 505
    assert {len(digest) for digest in digests} == {hashlib.sha256().digest_size * 2}


def test_a_folder_without_levels_makes_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match="no level files in medium/train"):
        make_manifest(tmp_path)
