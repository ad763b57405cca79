"""The package as a whole: what it exports, what it loads, and which way its imports point."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import maskoban

SOURCE = Path(maskoban.__file__).parent

# A board travels one way, and the folders are the stations on that way: each imports only those before it.
STATIONS = [
    "_core",
    "errors",
    "_util",
    "boards",
    "solving",
    "pictures",
    "diffusion",
    "nn",
    "training",
    "evaluation",
    "studio",
    "site",
    "bulk",
    "environment",
    "cli",
]

# The package itself, which exports names of all stations.
OUTSIDE = {"__init__", "__main__"}

MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.stem not in OUTSIDE or path.parent != SOURCE)


def imports(module: Path, everywhere: bool) -> Iterator[str]:
    """The names a module imports: at module level, or also inside functions."""
    tree = ast.parse(module.read_text())
    for node in ast.walk(tree) if everywhere else at_module_level(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def at_module_level(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        type_checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not function and not type_checking:
            yield node
            yield from at_module_level(node)


def station(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "maskoban" and len(parts) > 1 else None


def ids(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("module", MODULES, ids=ids)
def test_imports_point_only_upwards(module: Path) -> None:
    here = module.relative_to(SOURCE).parts[0].removesuffix(".py")
    allowed = STATIONS[: STATIONS.index(here) + 1]
    for name in imports(module, everywhere=True):
        if (here, station(name)) == ("diffusion", "nn"):
            assert module.name == "loading.py"  # which loads torch's runtime when another device is wanted
        elif station(name) in STATIONS:
            assert station(name) in allowed, f"{here} imports {name}"


def module_name(path: Path) -> str:
    return ".".join(["maskoban", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")


def test_no_module_imports_itself_by_way_of_others() -> None:
    paths = {module_name(path): path for path in MODULES}
    graph = {
        name: {found for each in imports(path, everywhere=False)
               if (found := each if each in paths else each.rpartition(".")[0]) in paths and found != name}
        for name, path in paths.items()
    }  # fmt: skip
    assert sum(map(len, graph.values())) > len(graph)
    list(TopologicalSorter(graph).static_order())  # raises CycleError


@pytest.mark.parametrize("module", MODULES, ids=ids)
def test_only_networks_and_training_import_torch(module: Path) -> None:
    if module.relative_to(SOURCE).parts[0] not in ("nn", "training"):
        heavy = {"torch", "triton", "safetensors", "onnx"}
        assert not {name.partition(".")[0] for name in imports(module, everywhere=False)} & heavy


def test_everything_but_training_works_where_torch_is_not_installed(tmp_path: Path) -> None:
    code = """
        import sys
        sys.modules["torch"] = None  # an import of it fails from now on
        import maskoban
        from typer.testing import CliRunner
        from maskoban.cli.app import app

        level = maskoban.load().generate(1, seed=7, sampler="fast", only_solvable=True)[0]
        assert maskoban.solve(level).solved
        maskoban.write("level.sok", [level])
        for command in ["complete level.sok", "solve level.sok", "repair level.sok", "rate level.sok",
                        "show level.sok --out level.png", "convert level.sok level.npz", "corpus info level.npz"]:
            done = CliRunner().invoke(app, command.split(), catch_exceptions=False)
            assert done.exit_code == 0, (command, done.output)
        done = CliRunner().invoke(app, ["train", "--preset", "tiny"])
        assert done.exit_code == 2 and "needs torch: pip install 'maskoban[train]'" in done.stderr, done.stderr
        try:
            maskoban.load("best", device="cuda")
        except maskoban.MaskobanError as error:
            assert "needs torch" in str(error)
        else:
            raise AssertionError("a model on a GPU without torch")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def loaded_by(code: str) -> set[str]:
    """The modules a fresh interpreter has after running the code."""
    script = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not {"numpy", "torch", "rich", "typer", "PIL", "onnxruntime"} & loaded_by("import maskoban")


def test_importing_the_command_line_loads_no_numpy_so_that_help_is_quick() -> None:
    assert not {"numpy", "torch", "PIL", "onnxruntime"} & loaded_by("import maskoban.cli.app")


def test_solving_needs_no_torch() -> None:
    used = "import maskoban\nassert maskoban.solve(maskoban.Level.parse('@$.')).solved"
    assert not {"torch", "PIL", "onnxruntime"} & loaded_by(used)


def test_drawing_needs_no_torch() -> None:
    assert "torch" not in loaded_by("import maskoban\nmaskoban.load().sample(1, sampler='fast')")


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
