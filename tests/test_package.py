"""The package as a whole: what it exports, what it loads, and which way its imports point."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import maskoban

SOURCE = Path(maskoban.__file__).parent

# A board travels one way, and the folders are the stations on that way: each knows only those before it.
STATIONS = [
    "_core",
    "cores",
    "interrupting",
    "bars",
    "boards",
    "solving",
    "pictures",
    "diffusion",
    "training",
    "evaluation",
    "studio",
    "bulk",
    "environment",
    "console",
    "cli",
]

# The package itself, which hands out names of all stations.
OUTSIDE = {"__init__", "__main__"}


def imports(module: Path) -> Iterator[str]:
    """The names under maskoban that a module imports, wherever in it."""
    package = ["maskoban", *module.relative_to(SOURCE).parts[:-1]]
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            name = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            # `from maskoban import _core` names its station only in what is imported.
            yield from (f"{name}.{alias.name}" for alias in node.names)


def station(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "maskoban" and len(parts) > 1 else None


MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.stem not in OUTSIDE or path.parent != SOURCE)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_only_upwards(module: Path) -> None:
    here = module.relative_to(SOURCE).parts[0].removesuffix(".py")
    allowed = STATIONS[: STATIONS.index(here) + 1]
    for name in imports(module):
        if station(name) in STATIONS:
            assert station(name) in allowed, f"{here} imports {name}"


def loaded_by(code: str) -> set[str]:
    """The modules a fresh interpreter has after running the code."""
    script = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not {"numpy", "torch", "rich", "typer", "PIL", "onnxruntime"} & loaded_by("import maskoban")


def test_importing_the_command_line_loads_no_numpy_so_that_help_is_quick() -> None:
    assert not {"numpy", "torch", "PIL", "onnxruntime"} & loaded_by("import maskoban.cli")


def test_solving_needs_no_torch() -> None:
    used = "import maskoban\nassert maskoban.solve(maskoban.Level.parse('@$.')).solved"
    assert not {"torch", "PIL", "onnxruntime"} & loaded_by(used)


def test_drawing_needs_no_torch() -> None:
    assert "torch" not in loaded_by("import maskoban\nmaskoban.load().sample(1, steps=1)")


@pytest.mark.parametrize("name", maskoban.__all__)
def test_every_export_is_there(name: str) -> None:
    assert getattr(maskoban, name) is not None
    assert name in dir(maskoban)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'maskoban' has no attribute 'slove'"):
        maskoban.slove  # type: ignore[attr-defined]  # noqa: B018


def test_read_solve_write(tmp_path: Path) -> None:
    level = maskoban.Level.parse("######\n#@$ .#\n######")
    maskoban.write(tmp_path / "one.sok", [level])
    (again,) = maskoban.read(tmp_path / "one.sok")
    assert maskoban.solve(again).solution == "RR"
    assert maskoban.solve_many([again, level]).solved.all()
    assert maskoban.repair(again).verdict == "solvable"
    assert maskoban.rate(again).pushes == 2
