"""The static site on a plain file server, in a folder of it, with the real model or with the known one."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from maskoban.boards import MASK
from maskoban.diffusion.model import Model
from maskoban.site.build import JS, NATIVE, build, missing
from maskoban.studio.sampling import facts
from tests.studio.serving import FIRST_UNSURE, Known, known_model

#: The folder of the file server in which the site is.
FOLDER = "some/folder"

ROOT = Path(__file__).parents[2]

_NETWORK = """
const LOGITS = {logits}, FIRST = {first};
let allowed = {allowed}, goOn = () => {{}};
new BroadcastChannel("allow").onmessage = ({{ data }}) => ((allowed += data), goOn());
export const loadNetworks = async () => {{
  const logits = async (rows, cells) => {{
    while (allowed === 0) await new Promise((resolve) => (goOn = resolve));
    allowed -= 1;
    return Float32Array.from(cells.flat().flatMap((cell) => LOGITS[cell]));
  }};
  const scores = async (rows) => rows.map((row) => (row[FIRST] === 0 ? -Infinity : 0));
  const network = async () => ({{ batch: 16, logits, scores }});
  return {{ int8: network, fp32: network }};
}};
"""


def built_site() -> Path:
    """The site of these sources, in the folder of builds; built if it is not there yet."""
    lack = missing()
    if lack is not None:
        if os.environ.get("CI"):
            pytest.fail(lack)
        pytest.skip(lack)
    sources = [
        *JS.iterdir(),
        *NATIVE[1].glob("*"),
        *(ROOT / "src/maskoban/studio").rglob("*.*"),
        *(ROOT / "src/maskoban/solving").glob("*.json"),
        JS.parent / "build.py",
    ]
    digest = sha256()
    for path in sorted(sources):
        if path.suffix != ".pyc":
            digest.update(path.name.encode() + path.read_bytes())
    site = ROOT / "build" / "site" / digest.hexdigest()[:12]
    if not site.exists():
        site.parent.mkdir(parents=True, exist_ok=True)
        with _Lock(site.parent / "lock"):
            if not site.exists():
                for older in site.parent.glob("*/"):
                    shutil.rmtree(older)
                build(site)
    return site


class _Lock:
    """Test processes build one after another."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def __enter__(self) -> None:
        import fcntl

        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def known_site(site: Path, folder: Path, allowed: int = -1, model: Callable[[], Model] = known_model) -> Path:
    """A copy of the site whose network is the known one of the server's tests, so that both sample the same boards.

    Evaluations beyond ``allowed`` wait for a message that allows more; with -1 none do. The page describes ``model``.
    """
    shutil.copytree(site, folder, ignore=shutil.ignore_patterns("files"))
    logits = Known().logits(np.full((1, 64), MASK, np.uint8), np.array([1]), np.arange(64)[None])[0]
    network = _NETWORK.format(logits=json.dumps(logits.tolist()), first=FIRST_UNSURE, allowed=allowed)
    (folder / "network.js").write_text(network, "utf-8")
    found = json.loads((site / "site.json").read_text("utf-8"))
    found |= {"model": facts(model()).model_dump() | {"sizes": None}, "files": {}, "bound": 1.0, "first": []}
    (folder / "site.json").write_text(json.dumps(found), "utf-8")
    return folder


@contextmanager
def file_server(root: Path) -> Iterator[tuple[str, ThreadingHTTPServer]]:
    """A server of these files, and its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{FOLDER}", server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def cut_off(page: Page) -> None:
    """Wait until the browser keeps the page, then take its network away."""
    page.evaluate(
        """async () => {
            const { serviceWorker } = navigator;
            await serviceWorker.ready;
            if (!serviceWorker.controller)
                await new Promise((resolve) => serviceWorker.addEventListener("controllerchange", resolve));
        }"""
    )
    page.context.set_offline(True)
