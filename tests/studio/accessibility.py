"""axe-core, from npm. It is fetched into a temporary folder, and never part of this repository."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from playwright.sync_api import Page

PACKAGE = "axe-core@4.10.3"
NO_AXE = f"needs {PACKAGE} from npm, which could not be fetched"


def axe_source(folder: Path) -> str:
    """The script of axe-core; the test is skipped without npm or a network, except in continuous integration."""
    npm = which("npm")
    packed = npm and subprocess.run(
        [npm, "pack", PACKAGE, "--silent", "--pack-destination", str(folder)],
        capture_output=True,
        check=False,
    )
    if not packed or packed.returncode:
        assert os.environ.get("CI") != "true", NO_AXE
        pytest.skip(NO_AXE)
    with tarfile.open(next(folder.glob("axe-core-*.tgz"))) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


def violations(page: Page, axe: str) -> list[Any]:
    """What axe finds wrong on the page: the rule, and where."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(f"() => {{ {axe} }}")
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found["violations"]]
