"""Extension points: what plugins register is found by name, from any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from maskoban._util.registry import PLUGINS, Registry
from maskoban.errors import MaskobanError


def test_a_name_is_registered_once() -> None:
    colours = Registry("colour", {"red": 1})
    with pytest.raises(MaskobanError, match="a colour is already called 'red'"):
        colours.register("red", 2)
    assert colours["red"] == 1


def test_a_plugin_loads_when_a_name_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "sigmoids.py").write_text(
        "print('loaded')\n"
        "from maskoban.diffusion.schedule import register_schedule\n"
        "register_schedule('squared', lambda u: 1 - u * u)\n"
    )
    script = (
        "from maskoban.diffusion.schedule import SCHEDULES, alpha\n"
        "print(alpha('linear', 1, 4), alpha('squared', 1, 2), list(SCHEDULES))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {PLUGINS: str(tmp_path / "sigmoids.py")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "loaded\n0.75 0.75 ['linear', 'cosine', 'squared']\n"


@pytest.mark.parametrize("source", ["no_such_module", "nowhere/plugin.py"])
def test_a_plugin_that_cannot_be_imported_is_an_error(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLUGINS, source)
    with pytest.raises(MaskobanError, match=f"^{PLUGINS}: {source} cannot be imported: No module named"):
        Registry("colour", {"red": 1})["blue"]
