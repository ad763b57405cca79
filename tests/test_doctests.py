"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import maskoban

SOURCE = Path(__file__).parents[1] / "src"
MODULES = [
    module.name
    for module in pkgutil.walk_packages([str(SOURCE / "maskoban")], "maskoban.")
    if not module.ispkg and not module.name.endswith(("__main__", "._core"))
]


@pytest.mark.parametrize("name", ["maskoban", *MODULES])
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        module = import_module(name)
    except ImportError as error:
        if error.name is None or error.name.startswith("maskoban"):
            raise
        pytest.skip(f"needs {error.name}")
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    assert len([test for test in finder.find(maskoban) if test.examples]) >= 1
