"""A shipped model that a package came without is fetched from a folder or an address, with checksums."""

from __future__ import annotations

import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from maskoban.boards import download
from maskoban.cli.app import app
from maskoban.diffusion import loading
from maskoban.diffusion.loading import WEIGHTS, fetch_model, load, model_folder, shipped_models
from maskoban.errors import MaskobanError

ANY = str(WEIGHTS / "any")


@pytest.fixture
def without_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package without the model, and an empty cache."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "best").symlink_to(WEIGHTS / "best")
    monkeypatch.setattr(loading, "WEIGHTS", tmp_path / "package")
    monkeypatch.setattr(download, "PAUSE", 0)
    monkeypatch.setenv("MASKOBAN_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_package_without_it_says_how_to_get_it(without_any: Path) -> None:
    assert shipped_models() == ["best"]
    done = CliRunner().invoke(app, ["generate", "--size", "6x7", "-n", "1"])
    assert done.exit_code == 2
    expected = (
        "model 'any' did not come with this package: maskoban fetch any --from src/maskoban/weights/any"
    )
    assert expected in " ".join(done.stderr.split())


def test_from_a_folder_it_goes_to_the_cache_where_every_command_finds_it(without_any: Path) -> None:
    done = CliRunner().invoke(app, ["fetch", "any", "--from", ANY], catch_exceptions=False)
    folder = without_any / "cache" / "weights" / "any"
    assert done.stdout.split() == [str(folder)]
    assert model_folder("any") == folder
    assert shipped_models() == ["any", "best"]
    made, expected = (load(each).given((6, 7), 2).sample(2, 1, "fast") for each in ("any", Path(ANY)))
    assert np.array_equal(made, expected)


def test_from_an_address(without_any: Path) -> None:
    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=ANY))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        folder = fetch_model("any", f"http://127.0.0.1:{server.server_port}/", without_any / "here")
    finally:
        server.shutdown()
        server.server_close()
    assert (folder / "model.safetensors").read_bytes() == (WEIGHTS / "any" / "model.safetensors").read_bytes()


def test_a_changed_or_missing_file_is_refused(without_any: Path) -> None:
    shutil.copytree(ANY, without_any / "changed")
    with open(without_any / "changed" / "model.onnx", "r+b") as file:
        file.seek(1000)
        file.write(b"x")
    with pytest.raises(MaskobanError, match=r"model\.onnx: its SHA-256 is not the one in the manifest"):
        fetch_model("any", str(without_any / "changed"))
    assert not (without_any / "cache" / "weights" / "any" / "model.onnx").exists()
    (without_any / "empty").mkdir()
    with pytest.raises(MaskobanError, match="cannot download file:"):
        fetch_model("any", str(without_any / "empty"))
    with pytest.raises(MaskobanError, match="expected a folder with the files of the model"):
        fetch_model("any", str(without_any / "nowhere"))
    with pytest.raises(MaskobanError, match="no model 'other' to fetch: expected one of any"):
        fetch_model("other", ANY)
