"""All figures of a report: each a function from data to a picture, saved as SVG and PNG with its data as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from maskoban._util.files import atomic_file
from maskoban.boards import SYMBOLS
from maskoban.boards.tiles import NAMES, parse_rows
from maskoban.errors import MaskobanError
from maskoban.evaluation import charts
from maskoban.evaluation.measures.board_measures import AXES
from maskoban.evaluation.measures.culprits import Culprits
from maskoban.evaluation.measures.difficulty import Difficulty
from maskoban.evaluation.measures.patterns import PatternMatch
from maskoban.evaluation.measures.repairs import RepairRates
from maskoban.evaluation.measures.training import Training
from maskoban.evaluation.report import Comparison, Plate, RepairedBoard, Report
from maskoban.evaluation.stages import from_plain, plain
from maskoban.evaluation.theme import FONT, svg_and_png, with_night
from maskoban.pictures import Mark, palette, sheet, sheet_svg
from maskoban.pictures.tileset import PLAIN, shapes_svg, sprite, tile

Reports = Mapping[str, Report]

#: What a chart calls the boards of a report of one generator.
THESE = "these boards"

#: Pixels a cell in the PNG for each in the SVG.
SHARPER = 2


@dataclass(frozen=True)
class Picture:
    """A figure as it is saved; ``data`` is all that went into it."""

    name: str
    data: Any
    svg: str
    png: bytes


@dataclass(frozen=True)
class Kind:
    """How a figure is made: the type of its data, the data in reports (falsy where there is none), its drawing."""

    type: Any
    data: Callable[[Reports], Any]
    draw: Callable[[Any], tuple[str, bytes]]


def draw_figures(report: Report | Comparison, axes: Sequence[tuple[str, str]] = ()) -> Iterator[Picture]:
    """Every figure that the report has data for, and an expressive range plot for each pair of measures.

    >>> from maskoban.evaluation.report import Source
    >>> [picture.name for picture in draw_figures(Report("1", Source("best", 3)))]
    ['key']
    """
    reports = report.generators if isinstance(report, Comparison) else {THESE: report}
    for name, kind in FIGURES.items():
        data = kind.data(reports)
        if data:
            yield Picture(name, data, *kind.draw(data))
    measured = {name: each.board_measures for name, each in reports.items() if each.board_measures}
    for x, y in axes if measured else ():
        points = {}
        for name, each in measured.items():
            pairs = zip(getattr(each, x), getattr(each, y), strict=True)
            points[name] = [[a, b] for a, b in pairs if a is not None and b is not None]
        data = charts.RangeData(x, y, points)
        yield Picture(f"range-{x}-{y}", data, *RANGE.draw(data))
    if isinstance(report, Comparison):
        for number, generator in enumerate(report.generators.values()):
            first = generator.gallery.first
            if first:
                yield Picture(f"boards-{number}", first, *BOARDS.draw(first))


def save_figure(
    picture: Picture, folder: str | Path, keep: Callable[[str], bool] = lambda file: True
) -> None:
    """Write ``name.svg``, ``name.png`` and ``name.json`` into a folder, or those of them to ``keep``."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    data = json.dumps(plain(picture.data), ensure_ascii=False).encode()
    for ending, content in (("svg", picture.svg.encode()), ("png", picture.png), ("json", data)):
        if keep(f"{picture.name}.{ending}"):
            with atomic_file(Path(folder) / f"{picture.name}.{ending}") as file:
                file.write(content)


def redraw(path: str | Path) -> Picture:
    """A figure again from the JSON that was saved beside it.

    >>> redraw("report/figures/patterns.json").svg  # doctest: +SKIP
    """
    name, kind = Path(path).stem, _kind(Path(path).stem)
    if kind is None:
        raise MaskobanError(f"{path}: no figure is called {name!r}; expected one of {', '.join(FIGURES)}")
    data = from_plain(kind.type, json.loads(Path(path).read_text(encoding="utf-8")))
    return Picture(name, data, *kind.draw(data))


def is_figure(name: str) -> bool:
    """Whether a report may have a figure of this name.

    >>> is_figure("patterns"), is_figure("range-walls-effort"), is_figure("mine")
    (True, True, False)
    """
    return _kind(name) is not None


def _kind(name: str) -> Kind | None:
    first, _, rest = name.partition("-")
    if first == "range" and set(rest.split("-")) <= set(AXES):
        return RANGE
    return BOARDS if first == "boards" and rest.isdecimal() else FIGURES.get(name)


def draw_boards(data: Plate) -> tuple[str, bytes]:
    """Boards with captions, so many a row.

    >>> svg, png = draw_boards(Plate(1, [["#@#"]], ["alone"]))
    >>> "alone" in svg, png[1:4]
    (True, b'PNG')
    """
    return _sheet(data.boards, data.captions or None, data.columns, 12)


def draw_repaired(data: list[RepairedBoard]) -> tuple[str, bytes]:
    """Boards with the wall to remove outlined, and its probability where it is known."""
    known = ["" if each.probability is None else f"{each.probability:.2f}" for each in data]
    marks = [[Mark(each.row, each.column, text)] for each, text in zip(data, known, strict=True)]
    captions = [f"probability {text}" if text else "set by a sweep" for text in known] if any(known) else None
    return _sheet([each.board for each in data], captions, 3, 24, marks)


def draw_key(data: list[str]) -> tuple[str, bytes]:
    """Every tile with its name and its letter.

    >>> draw_key(["wall #", "floor"])[0].count("<text")
    2
    """
    cell, columns, width, height = 40, 4, 130, 88
    size = (columns * width, -(-len(data) // columns) * height)
    parts = []
    picture = Image.new("RGB", (size[0] * SHARPER, size[1] * SHARPER), palette.PAGE)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(13 * SHARPER)
    for token, name in enumerate(data):
        row, column = divmod(token, columns)
        middle, top = column * width + width // 2, row * height + 12
        left = middle - cell // 2
        parts.append(
            f'<g transform="translate({left} {top}) scale({cell})">{shapes_svg(tile(token, PLAIN))}</g>'
            f'<text x="{middle}" y="{top + cell + 20}" font-size="13" text-anchor="middle" '
            f'font-family="{FONT}" fill="{palette.INK}">{name}</text>'
        )
        picture.paste(sprite(token, PLAIN, cell * SHARPER), (left * SHARPER, top * SHARPER))
        draw.text((middle * SHARPER, (top + cell + 16) * SHARPER), name, palette.INK, font, anchor="mm")
    box = f'width="{size[0]}" height="{size[1]}" viewBox="0 0 {size[0]} {size[1]}"'
    return with_night(f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}</svg>\n'), _png(
        picture
    )


def _sheet(
    texts: list[list[str]],
    captions: list[str] | None,
    columns: int,
    cell: int,
    marks: list[list[Mark]] | None = None,
) -> tuple[str, bytes]:
    shown = [parse_rows(text) for text in texts]
    picture = sheet(shown, captions, columns, cell * SHARPER, marks)
    return with_night(sheet_svg(shown, captions, columns, cell, marks)), _png(picture)


def _png(picture: Image.Image) -> bytes:
    out = BytesIO()
    picture.save(out, "PNG", optimize=True)
    return out.getvalue()


def _one(find: Callable[[Report], Any]) -> Callable[[Reports], Any]:
    """Of a report of one generator."""
    return lambda reports: find(reports[THESE]) if THESE in reports else None


def _each(find: Callable[[Report], Any]) -> Callable[[Reports], dict[str, Any]]:
    """By generator, where it was measured."""
    return lambda reports: {name: found for name, each in reports.items() if (found := find(each))}


def _distances(reports: Reports) -> charts.DistanceData | None:
    found = _each(lambda r: r.distances)(reports)
    held_out = next(iter(reports.values())).held_out
    return charts.DistanceData(held_out, found) if held_out and (found or THESE in reports) else None


def _temperature(report: Report) -> Any:
    walls = report.corpus.tiles["wall"] if report.corpus else 0
    return report.temperature and charts.TemperatureData(report.temperature, walls)


def _cost(report: Report) -> Any:
    accepted = [each for each in report.critic if each.critic]
    return report.steps and charts.CostData(report.steps, report.sweeps, accepted)


def _tiles(reports: Reports) -> list[str]:
    names = (*NAMES, "masked")
    return [f"{name} {letter}".rstrip() for name, letter in zip(names, SYMBOLS, strict=True)]


def _chart(kind: Any, data: Callable[[Reports], Any], chart: Callable[[Any], Any]) -> Kind:
    return Kind(kind, data, partial(svg_and_png, chart))


#: By name, in the order of the report.
FIGURES = {
    "strip": Kind(Plate, _one(lambda r: r.gallery.strip), draw_boards),
    "key": Kind(list[str], _tiles, draw_key),
    "outcomes": _chart(dict[str, RepairRates], _each(lambda r: r.repairs), charts.outcomes),
    "repaired": Kind(list[RepairedBoard], _one(lambda r: r.gallery.repaired), draw_repaired),
    "culprits": _chart(
        Culprits, _one(lambda r: r.culprits if r.culprits and r.culprits.walls else None), charts.culprits
    ),
    "patterns": _chart(dict[str, PatternMatch], _each(lambda r: r.patterns), charts.patterns),
    "distances": _chart(charts.DistanceData, _distances, charts.distances),
    "difficulty": _chart(
        dict[str, Difficulty],
        _each(lambda r: r.difficulty if r.difficulty and r.difficulty.effort else None),
        charts.difficulty,
    ),
    "quarters": _chart(Difficulty, _one(lambda r: r.difficulty), charts.quarters),
    "denoising": Kind(Plate, _one(lambda r: r.gallery.denoising), draw_boards),
    "solutions": Kind(Plate, _one(lambda r: r.gallery.solutions), draw_boards),
    "temperature": _chart(charts.TemperatureData, _one(_temperature), charts.temperature),
    "cost": _chart(charts.CostData, _one(_cost), charts.cost),
    "training": _chart(Training, _one(lambda r: r.training), charts.training),
}

#: The figures of which a report has several.
RANGE = _chart(charts.RangeData, lambda reports: None, charts.expressive_range)
BOARDS = Kind(Plate, lambda reports: None, draw_boards)
