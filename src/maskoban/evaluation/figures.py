"""All figures of a report: each a function from data to a picture, saved as SVG and PNG with its data as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from maskoban._util.files import atomic_file
from maskoban.boards import SYMBOLS
from maskoban.boards.tiles import NAMES
from maskoban.errors import MaskobanError
from maskoban.evaluation import charts, plates

Report = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A figure as it is saved; ``data`` is all that went into it."""

    name: str
    data: Any
    svg: str
    png: bytes


@dataclass(frozen=True)
class Kind:
    """How a figure is made: its data out of a report (None where there is none), and its drawing."""

    data: Callable[[Report], Any]
    draw: Callable[[Any], tuple[str, bytes]]


def draw_figures(report: Report) -> Iterator[Picture]:
    """Every figure that the report has data for.

    >>> [picture.name for picture in draw_figures({"measures": {}, "gallery": {}})]
    ['key']
    """
    for name, kind in FIGURES.items():
        data = kind.data(report)
        if data:
            yield Picture(name, data, *kind.draw(data))


def save_figure(picture: Picture, folder: str | Path) -> None:
    """Write ``name.svg``, ``name.png`` and ``name.json`` into a folder.

    >>> save_figure(next(draw_figures({"measures": {}, "gallery": {}})), "figures")  # doctest: +SKIP
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    data = json.dumps(picture.data, ensure_ascii=False).encode()
    for ending, content in (("svg", picture.svg.encode()), ("png", picture.png), ("json", data)):
        with atomic_file(Path(folder) / f"{picture.name}.{ending}") as file:
            file.write(content)


def redraw(path: str | Path) -> Picture:
    """A figure again from the JSON that was saved beside it.

    >>> redraw("report/figures/patterns.json").svg  # doctest: +SKIP
    """
    name = Path(path).stem
    if name not in FIGURES:
        raise MaskobanError(f"{path}: no figure is called {name!r}; expected one of {', '.join(FIGURES)}")
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    return Picture(name, data, *FIGURES[name].draw(data))


def _chart(data: Callable[[Report], Any], chart: Callable[[Any], Any]) -> Kind:
    return Kind(data, partial(charts.svg_and_png, chart))


def _measure(name: str) -> Callable[[Report], Any]:
    return lambda report: report["measures"].get(name)


def _gallery(name: str) -> Callable[[Report], Any]:
    return lambda report: report["gallery"].get(name)


def _culprits(report: Report) -> Any:
    found = report["measures"].get("culprits")
    return found if found and found["walls"] else None


def _difficulty(report: Report) -> Any:
    found = report["measures"].get("difficulty")
    return found if found and found["effort"] else None


def _temperature(report: Report) -> Any:
    settings = report["measures"].get("temperature")
    return settings and {"settings": settings, "corpus_walls": report["corpus"]["tiles"]["wall"]}


def _cost(report: Report) -> Any:
    steps, polish, critic = (report["measures"].get(name) for name in ("steps", "polish", "critic"))
    kept = [each for each in critic or [] if each["critic"]]
    return steps and {"steps": steps, "polish": polish} | ({"critic": kept} if kept else {})


def _tiles(report: Report) -> list[str]:
    names = (*NAMES, "not drawn yet")
    return [f"{name} {letter}".rstrip() for name, letter in zip(names, SYMBOLS, strict=True)]


#: By name, in the order of the report.
FIGURES = {
    "strip": Kind(_gallery("strip"), plates.strip),
    "key": Kind(_tiles, plates.key),
    "outcomes": _chart(_measure("repairs"), charts.outcomes),
    "repaired": Kind(_gallery("repaired"), plates.repaired),
    "culprits": _chart(_culprits, charts.culprits),
    "patterns": _chart(_measure("patterns"), charts.patterns),
    "distances": _chart(_measure("distances"), charts.distances),
    "difficulty": _chart(_difficulty, charts.difficulty),
    "quarters": _chart(_measure("difficulty"), charts.quarters),
    "denoising": Kind(_gallery("denoising"), plates.boards),
    "solutions": Kind(_gallery("solutions"), plates.boards),
    "temperature": _chart(_temperature, charts.temperature),
    "cost": _chart(_cost, charts.cost),
    "training": _chart(_measure("training"), charts.training),
}
