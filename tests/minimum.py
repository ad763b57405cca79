"""The lowest versions that pyproject.toml allows, as a constraints file for pip: ``make test-minimum``.

    python -m tests.minimum > constraints-minimum.txt

The versions stand in pyproject.toml alone, so the two cannot differ. torch is the exception: its CPU builds come from
another index, and only the version in constraints.txt was tried.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def minima() -> dict[str, str]:
    """Name and lowest version of every dependency, those of the build and of all extras included."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = pyproject["project"]
    extras = project["optional-dependencies"].values()
    lowest: dict[str, str] = {}
    for requirement in [*pyproject["build-system"]["requires"], *project["dependencies"], *sum(extras, [])]:
        found = re.match(r"([\w.-]+)(?:\[\w+\])?>=([\d.]+)", requirement)
        if not found:
            raise SystemExit(f"pyproject.toml: {requirement}: expected NAME>=VERSION")
        name, version = found.groups()
        if lowest.setdefault(name, version) != version:
            raise SystemExit(f"pyproject.toml: {name}>={lowest[name]} and {name}>={version}; expected one version")
    (lowest["torch"],) = re.findall(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    return lowest


if __name__ == "__main__":
    print(*(f"{name}=={version}" for name, version in minima().items()), sep="\n")
