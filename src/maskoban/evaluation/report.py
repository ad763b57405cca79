"""A report in a folder: ``report.html``, ``report.json``, and ``figures/`` as SVG, PNG and JSON.

Stages are kept in ``stages/``, so a report that was interrupted goes on from there and comes out the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from maskoban._util.files import atomic_file, file_errors
from maskoban.diffusion.model import Model
from maskoban.errors import MaskobanError
from maskoban.evaluation.measuring import Measuring, Plan
from maskoban.evaluation.stages import Stages


def evaluate(
    source: Model | str | Path,
    out: str | Path,
    plan: Plan | None = None,
    say: Callable[[str], None] = lambda sentence: None,
    progress: bool = False,
) -> dict[str, Any]:
    """Measure a model, or the boards of a file, and write the report; returns what is in ``report.json``.

    ``say`` is told of every stage; ``progress`` shows bars on the error stream.

    >>> evaluate("boards.npz", "report")["measures"]["solvability"]["solvable"]["share"]  # doctest: +SKIP
    0.827
    """
    check_place_and_needs(out)
    from maskoban.evaluation.figures import FIGURES, draw_figures, save_figure
    from maskoban.evaluation.page import render

    folder = Path(out)
    for left_behind in folder.glob("*/.*.part"):  # by a process that was killed while it wrote
        left_behind.unlink()
    stages = Stages(folder / "stages", say)
    report = Measuring(source, plan or Plan(), stages, progress).report()
    figures = folder / "figures"
    svgs = {}
    for picture in draw_figures(report):
        say(f"figure {picture.name}")
        save_figure(picture, figures)
        svgs[picture.name] = picture.svg
    for gone in FIGURES.keys() - svgs.keys():  # of a report that was here before, and had more
        for file in figures.glob(f"{gone}.*"):
            file.unlink()
    _write(folder / "report.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    _write(folder / "report.html", render(report, svgs))
    return report


def check_place_and_needs(out: str | Path) -> None:
    """Say before the long work what is wrong with the place for its result, or missing to draw it.

    >>> check_place_and_needs("/dev/null/report")
    Traceback (most recent call last):
        ...
    maskoban.errors.FileError: /dev/null/report: cannot be written: Not a directory
    """
    if find_spec("matplotlib") is None:
        raise MaskobanError("a report needs matplotlib: pip install 'maskoban[report]'")
    with file_errors(out, "written"):
        (Path(out) / "figures").mkdir(parents=True, exist_ok=True)


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode())
