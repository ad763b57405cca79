"""A figure is a function of its data: drawn again from its JSON it is the same file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from maskoban.errors import MaskobanError
from maskoban.evaluation import theme
from maskoban.evaluation.figures import FIGURES, draw_figures, redraw, save_figure
from maskoban.evaluation.measure import Plan
from maskoban.evaluation.report import Report, Source

Whole = tuple[Path, Report]

#: Of a report of one generator, with the expressive range plots of the default plan.
NAMES = [*FIGURES, *(f"range-{x}-{y}" for x, y in Plan.axes)]


@pytest.mark.parametrize("name", NAMES)
def test_drawn_again_from_its_data_it_is_the_same(whole_report: Whole, name: str) -> None:
    figures = whole_report[0] / "figures"
    again = redraw(figures / f"{name}.json")
    assert again.svg == (figures / f"{name}.svg").read_text()
    assert again.png == (figures / f"{name}.png").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_whole(whole_report: Whole, name: str) -> None:
    figures = whole_report[0] / "figures"
    svg = ElementTree.parse(figures / f"{name}.svg").getroot()
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme: dark" in "".join(svg.itertext())
    with Image.open(figures / f"{name}.png") as picture:
        assert min(picture.size) > 100


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_fetched(whole_report: Whole, name: str) -> None:
    svg = (whole_report[0] / "figures" / f"{name}.svg").read_text()
    assert set(re.findall(r"https?://[^\"' ]+", svg)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/TR/REC-html40",
    }


def test_all_ink_of_a_chart_has_a_colour_by_night(whole_report: Whole) -> None:
    """Whatever is nearly black by day must have a rule, or it is lost on a dark page."""
    for name in ("patterns", "temperature", "training", "distances", "difficulty", "cost", "quarters"):
        svg = (whole_report[0] / "figures" / f"{name}.svg").read_text()
        colours = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg))
        dark = {colour for colour in colours if sum(bytes.fromhex(colour[1:])) < 3 * 0x60}
        assert dark <= set(theme.NIGHT), name


def test_a_report_without_measures_has_only_the_key() -> None:
    assert [picture.name for picture in draw_figures(Report("1", Source("nothing", 0)))] == ["key"]


def test_data_lies_beside_the_picture(tmp_path: Path) -> None:
    (key,) = draw_figures(Report("1", Source("nothing", 0)))
    folder = tmp_path / "new"
    save_figure(key, folder)
    assert json.loads((folder / "key.json").read_text())[2] == "player @"
    assert sorted(path.name for path in folder.iterdir()) == ["key.json", "key.png", "key.svg"]


def test_a_figure_nobody_knows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "piechart.json").write_text("{}")
    with pytest.raises(MaskobanError, match="no figure is called 'piechart'"):
        redraw(tmp_path / "piechart.json")
