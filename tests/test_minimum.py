"""Every dependency has a lowest version, which ``make test-minimum`` installs."""

from __future__ import annotations

from tests.minimum import minima


def test_every_dependency_has_one_lowest_version() -> None:
    lowest = minima()
    assert {"numpy", "typer", "torch", "fastapi", "pyarrow", "pytest", "nanobind"} <= set(lowest)
