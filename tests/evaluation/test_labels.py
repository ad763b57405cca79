"""The words of every chart say what its data says: tick labels, axes, legends, captions, read from the SVG."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import combinations
from math import log
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from maskoban.evaluation import charts, figures, theme
from maskoban.evaluation.measures.board_measures import AXES
from maskoban.evaluation.measures.difficulty import Difficulty, Spread
from maskoban.evaluation.measures.patterns import PatternMatch
from maskoban.evaluation.measures.repairs import Mending, measure_repairs
from maskoban.evaluation.measures.samplers import Setting
from maskoban.evaluation.measures.share import Mean, share_of
from maskoban.evaluation.page import render
from maskoban.evaluation.report import Comparison, Report, read_report
from maskoban.evaluation.results import CAPTIONS
from maskoban.evaluation.theme import svg_and_png

REPORTS = Path(__file__).parents[2] / "docs" / "reports"
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"

#: Figures with axes, and the words on them.
CHARTS = {
    "outcomes": {"solvable", "one wall", "two walls", "broken", "the paper's"},
    "culprits": {"share of the walls"},
    "patterns": {"3x3 pattern divergence from the corpus (JSD, bits)", "ratio to held-out levels", "boards",
                 "held-out levels", "these boards"},
    "distances": {"share of boards", "cells that differ from the nearest training level", "held-out levels"},
    "difficulty": {"share of the solvable boards", "effort (states)", "fewest pushes", "these boards"},
    "quarters": {"share of the solvable boards", "easy", "medium", "hard", "expert"},
    "temperature": {"solvable", "walls a board", "temperature", "the paper's", "training levels"},
    "cost": {"solvable", "network evaluations a board", "fewer, coarser steps"},
    "training": {"loss", "training steps"},
}  # fmt: skip

FIGURES = sorted(path for path in REPORTS.glob("*/figures/*.svg") if path.stem in CHARTS)


@dataclass
class Tick:
    label: str
    place: float  # in pixels along its axis


def ticks(svg: str) -> dict[tuple[str, str], list[Tick]]:
    """The labelled ticks of every axis of every panel."""
    found: dict[tuple[str, str], list[Tick]] = {}
    root = ElementTree.fromstring(svg)
    for panel in root.iter(f"{SVG}g"):
        if not re.fullmatch(r"axes_\d+", panel.get("id", "")):
            continue
        for axis, along in (("x", "x"), ("y", "y")):
            for group in panel.iter(f"{SVG}g"):
                if not re.fullmatch(rf"{axis}tick_\d+", group.get("id", "")):
                    continue
                texts = [text for text in group.iter(f"{SVG}text") if text.text]
                marks = list(group.iter(f"{SVG}use")) or [
                    use for use in group.iter(f"{SVG}path") if use.get("d")
                ]
                if texts and marks:
                    mark = marks[0]
                    place = mark.get(along) if mark.tag == f"{SVG}use" else _place(mark.get("d", ""), axis)
                    found.setdefault((panel.get("id", ""), axis), []).append(
                        Tick(texts[0].text or "", float(place or 0))
                    )
    return found


def _place(path: str, axis: str) -> str:
    numbers = re.findall(r"-?[\d.]+", path)
    return numbers[0 if axis == "x" else 1]


def number(label: str) -> float | None:
    text = label.replace("−", "-").replace(" %", "").replace(",", "")
    scale = 1000 if text.endswith("k") else 1
    try:
        return float(text.removesuffix("k")) * scale
    except ValueError:
        return None


def check_axis(marks: list[Tick]) -> None:
    """Numbers on an axis lie where they say, on a linear or a logarithmic scale."""
    values = [number(mark.label) for mark in marks]
    if None in values or len(values) < 3:
        return
    places = np.array([mark.place for mark in marks])
    scales = [np.array(values, float)]
    if min(values) > 0:  # type: ignore[type-var]
        scales.append(np.array([log(value) for value in values]))  # type: ignore[arg-type]
    errors = []
    for scale in scales:
        slope, offset = np.polyfit(scale, places, 1)
        errors.append(np.abs(slope * scale + offset - places).max())
    assert min(errors) < 0.5, [(mark.label, mark.place) for mark in marks]  # pixels


def words(svg: str) -> set[str]:
    return {text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text") if text.text}


def test_the_check_would_have_found_rounded_labels() -> None:
    right = [Tick("77.5 %", 300), Tick("80 %", 200), Tick("82.5 %", 100), Tick("85 %", 0)]
    check_axis(right)
    rounded = [Tick("78 %", 300), Tick("80 %", 200), Tick("82 %", 100), Tick("85 %", 0)]
    with pytest.raises(AssertionError):
        check_axis(rounded)


@pytest.mark.parametrize("name", [*CHARTS, "range-walls-effort", "range-pushes-box_changes"])
def test_tick_labels_stand_at_their_numbers(whole_report: tuple[Path, Report], name: str) -> None:
    found = ticks((whole_report[0] / "figures" / f"{name}.svg").read_text())
    assert found
    for marks in found.values():
        check_axis(marks)


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_charts_in_the_repository_are_labelled_as_their_data_says(path: Path) -> None:
    svg = path.read_text()
    assert words(svg) >= CHARTS[path.stem]
    for marks in ticks(svg).values():
        check_axis(marks)
    data = json.loads(path.with_suffix(".json").read_text())
    check_data(path.stem, data, svg)


def check_data(name: str, data: Any, svg: str) -> None:
    """Ticks, legends and numbers in a chart are those of its JSON."""
    labels = {mark.label for marks in ticks(svg).values() for mark in marks}
    if name == "temperature":
        assert labels >= {f"{each['temperature']:g}" for each in data["settings"]}
        assert not any("effort" in word for word in words(svg) | {CAPTIONS[name].lower()})
    elif name == "cost":
        assert labels >= {f"{each['evaluations']:g}" for each in data["steps"] + data["sweeps"]}
        assert ("no or one sweep, then a critic" in words(svg)) == bool(data["critic"])
    elif name == "patterns":
        sizes = [int(size) for size in data["these boards"]["held_out"]]
        assert labels >= {f"{size / 1000:g}k" if size >= 1000 else str(size) for size in sizes}
    elif name == "culprits":
        legend = {
            f"culprit walls, median {data['median']:.2f}",
            f"other interior walls, median {data['other_median']:.2f}",
        }
        assert words(svg) >= legend
        last = any("in the last sweep" in word for word in words(svg))
        assert last == data["last_commit"]
    elif name == "difficulty":
        assert data["these boards"]["against"] in words(svg)
        assert ("decomposed effort" in words(svg)) == bool(data["these boards"]["decomposed"])
    elif name == "quarters":
        digits = 0 if data["decomposed_quarters"] else 1
        assert words(svg) >= {f"{each['share'] * 100:.{digits}f} %" for each in data["quarters"].values()}
        assert data["against"] in words(svg)
    elif name == "outcomes":
        for bar in data.values():
            assert (
                f"{(bar['effective']['count'] - bar['one_wall']['count']) / bar['effective']['total'] * 100:.1f} %"
                in words(svg)
            )
    elif name == "training":
        assert ("solvable" in words(svg)) == bool(data["solvability"])


@pytest.mark.parametrize("name", CHARTS)
def test_charts_of_a_new_report_are_labelled_as_their_data_says(
    whole_report: tuple[Path, Report], name: str
) -> None:
    folder = whole_report[0] / "figures"
    svg = (folder / f"{name}.svg").read_text()
    assert words(svg) >= CHARTS[name]
    check_data(name, json.loads((folder / f"{name}.json").read_text()), svg)


@pytest.mark.parametrize("failures", [8, 10, 12, 30])
def test_a_number_is_written_only_where_its_segment_has_room(failures: int) -> None:
    fates = np.array([0] * (100 - failures) + [1] * failures, np.uint8)
    rates = measure_repairs(Mending(fates, np.zeros((100, 3, 3), bool)))
    figure = charts.outcomes({"these boards": rates})
    figure.draw_without_rendering()
    (axes,) = figure.axes
    bars = [bar.get_window_extent() for bar in axes.patches]
    assert axes.texts
    for text in axes.texts:
        box = text.get_window_extent()
        assert any(
            bar.x0 <= box.x0 and box.x1 <= bar.x1 and bar.y0 <= box.y0 and box.y1 <= bar.y1 for bar in bars
        )
    written = {text.get_text() for text in axes.texts}
    assert (f"{failures}.0 %" in written) == (failures == 30)


def setting(ratio: float | None) -> Setting:
    return Setting(1.0, "uniform", 16, 0, 16.0, 20, share_of(9, 20), Mean(5, 4, 6), 12.0, None, None, ratio)


@pytest.mark.parametrize(("ratio", "panels"), [(None, 1), (1.1, 2)])
def test_there_is_no_panel_without_data(ratio: float | None, panels: int) -> None:
    settings = [setting(ratio), replace(setting(ratio), steps=32, evaluations=32.0)]
    svg = svg_and_png(charts.cost, charts.CostData(settings, settings, []))[0]
    assert len(set(re.findall(r'id="(axes_\d+)"', svg))) == panels
    assert any("divergence" in word for word in words(svg)) == (ratio is not None)


@pytest.mark.parametrize(
    ("x", "y"), [("walls", "effort"), ("pushes", "box_changes"), ("moves", "decomposed_effort")]
)
def test_any_two_measures_are_the_axes_of_an_expressive_range(x: str, y: str) -> None:
    rng = np.random.default_rng(0)
    points = {name: rng.integers(1, 400, (50, 2)).tolist() for name in ("one", "other")}
    svg = svg_and_png(charts.expressive_range, charts.RangeData(x, y, points))[0]
    assert words(svg) >= {AXES[x], AXES[y], "one: 50 boards", "other: 50 boards"}
    for marks in ticks(svg).values():
        check_axis(marks)


def test_what_a_page_shows_it_says(whole_report: tuple[Path, Report]) -> None:
    """That the nine boards are solvable ones, and which of several walls is outlined."""
    page = (whole_report[0] / "report.html").read_text()
    gallery = page[page.index('<section id="gallery">') :]
    assert "the first nine of the sample that are solvable; unsolvable ones are left out" in gallery
    assert "The first nine solvable boards at six points" in gallery
    assert "the one with the lowest probability is outlined, not the first found" in page
    assert "the first solvable one" in page[: page.index("<nav>")]


def test_held_out_distances_ship_and_are_shown_without_a_corpus(whole_report: tuple[Path, Report]) -> None:
    page = render(replace(whole_report[1], distances=None, notes={"distances": "no corpus"}), [])
    for text in ("11.33", "7.5 %", "Not measured: no corpus."):
        assert text in page
    row = page[page.index("held-out levels: mean cells") :]
    assert row.index("11.33") < row.index("</tr>")


def test_old_probabilities_are_not_set_beside_the_papers_without_a_word() -> None:
    best = read_report(REPORTS / "best" / "report.json")
    assert isinstance(best, Report)
    page = render(best, [])
    assert "the paper’s are those of the first commit, so the two do not compare" in page
    assert page.count("(in the last sweep)") == 4  # two medians in both tables


def drawn(chart: Any, data: Any) -> Figure:
    with mpl.rc_context(theme.STYLE):  # type: ignore[arg-type]
        figure: Figure = chart(data)
        figure.draw_without_rendering()
    return figure


def collisions(figure: Figure) -> list[str]:
    """Words that a line of the data crosses, that touch other words, or that leave the figure."""
    hidden = set()  # ticks outside the panel are not drawn
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            hidden |= {tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text not in hidden]
    found = [name for name, box in boxes if not (figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1)]
    for (one, box), (other, another) in combinations(boxes, 2):
        if box.padded(-1).overlaps(another.padded(-1)):
            found.append(f"{one} on {other}")
    for axes in figure.axes:
        for line in axes.lines:
            path = line.get_path().transformed(line.get_transform())
            for name, box in boxes:
                inside = Bbox.intersection(box.padded(-1), axes.bbox)
                if inside and path.intersects_bbox(inside, filled=False):
                    found.append(f"{name} crossed")
    return found


@pytest.mark.parametrize("path", sorted(REPORTS.glob("*/report.json")), ids=lambda path: path.parent.name)
def test_no_words_are_crossed_or_touch(path: Path) -> None:
    report = read_report(path)
    reports = report.generators if isinstance(report, Comparison) else {figures.THESE: report}
    for name in CHARTS:
        if data := figures.FIGURES[name].data(reports):
            assert collisions(drawn(getattr(charts, name), data)) == [], name


@pytest.mark.parametrize("ratio", [0.9, 1.0, 1.05, 1.3, 3.5, 40.0])
def test_the_papers_ratio_is_written_where_no_line_is(ratio: float) -> None:
    floor = {250: 0.2, 500: 0.16, 1000: 0.12}
    found = PatternMatch(
        {size: ratio * jsd for size, jsd in floor.items()}, floor, dict.fromkeys(floor, ratio), -0.5, -0.5
    )
    figure = drawn(charts.patterns, {"one": found, "another": found})
    assert collisions(figure) == []
    low, high = figure.axes[1].get_ylim()
    assert low < ratio < high


@pytest.mark.parametrize("share", [0, 2_150, 2_500, 2_800, 9_000])
def test_shares_of_quarters_are_not_crossed_by_the_line_at_a_quarter(share: int) -> None:
    shares = {name: share_of(share, 10_000) for name in ("easy", "medium", "hard", "expert")}
    for decomposed in ({}, shares):
        data = Difficulty(None, None, shares, decomposed_quarters=decomposed)
        assert collisions(drawn(charts.quarters, data)) == []


def test_long_names_of_generators_leave_no_figure() -> None:
    spread = Spread(list(range(101)), 50.0, list(range(101)), 50.0)
    names = [f"a-generator-with-a-long-name-{number}" for number in range(6)]
    data = {name: Difficulty(spread, spread, {}) for name in names}
    assert collisions(drawn(charts.difficulty, data)) == []
