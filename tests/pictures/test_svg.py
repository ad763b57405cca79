"""Boards as SVG: the same drawing as the pixels."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from maskoban.boards.tiles import BOX
from maskoban.pictures import Mark, board_svg, palette, sheet_svg
from maskoban.pictures.layout import Layout
from maskoban.pictures.tileset import OUTSIDE, looks, tile
from tests.pictures.boards import HOUSE, SOLVED_IN_TWO

SVG = "{http://www.w3.org/2000/svg}"


def tiles(root: ElementTree.Element) -> dict[tuple[int, int], str]:
    """The tile at every (row, column), where it is used for itself or in a run of its kind."""
    runs = {group.get("id"): group for group in root.iter(SVG + "g") if group.get("id")}
    found: dict[tuple[int, int], str] = {}

    def follow(use: ElementTree.Element, left: int, top: int) -> None:
        x, y, name = left + int(use.get("x", 0)), top + int(use.get("y", 0)), use.get("href", "")[1:]
        inner = runs[name].findall(SVG + "use")
        for part in inner:
            follow(part, x, y)
        if not inner:
            assert (y, x) not in found
            found[y, x] = name

    for use in root.findall(SVG + "use"):
        follow(use, 0, 0)
    return found


def test_every_cell_inside_uses_its_tile() -> None:
    root = ElementTree.fromstring(board_svg(HOUSE.tokens, cell=20))
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("180", "120", "0 0 9 6")
    look = looks(HOUSE.tokens)
    assert tiles(root) == {
        (row, column): f"t{HOUSE.tokens[row, column]}-{look[row, column]}"
        for row in range(6)
        for column in range(9)
        if look[row, column] != OUTSIDE
    }


def test_every_tile_used_is_defined_once_with_all_its_shapes() -> None:
    root = ElementTree.fromstring(board_svg(HOUSE.tokens))
    defined = {group.get("id"): group for group in root.iter(SVG + "g") if group.get("id")}
    ids = [group.get("id") for group in root.iter(SVG + "g") if group.get("id")]
    assert len(ids) == len(defined)
    assert {f"#{name}" for name in defined} == {use.get("href") for use in root.iter(SVG + "use")}
    assert len(defined[f"t{BOX}-0"]) == len(tile(BOX, 0))


def test_marks_and_their_texts() -> None:
    root = ElementTree.fromstring(board_svg(HOUSE.tokens, marks=[Mark(1, 2), Mark(4, 5, "<1 %")]))
    moved = [group.get("transform") for group in root.iter(SVG + "g") if group.get("transform")]
    assert moved == ["translate(2 1)", "translate(5 4)"]
    assert [text.text for text in root.iter(SVG + "text")] == ["<1 %"]


def test_a_sheet_holds_all_boards_and_captions() -> None:
    drawn = sheet_svg([HOUSE.tokens, SOLVED_IN_TWO.tokens], ["a < b & c\nsoft", "two"], columns=2)
    root = ElementTree.fromstring(drawn)
    assert [text.text for text in root.iter(SVG + "text")] == ["a < b & c", "soft", "two"]
    cards = [rect for rect in root.iter(SVG + "rect") if rect.get("fill") == palette.CARD]
    assert len(cards) == 2
    boards = [group for group in root.findall(SVG + "g") if group.get("transform")]
    assert len(boards) == 2
    for group in boards:
        group.append(root.find(SVG + "defs"))  # type: ignore[arg-type]
    assert sum(len(tiles(group)) for group in boards) == 9 * 6 - 9 + 18


LONG = [
    "A rather long plain ASCII title that goes on and on",
    "WWWWWWWWWWWWWWWWWWWW",
    "illicit illicit ill",
    "Für Élise – Größe, naïve",
    "箱入り娘箱入り娘箱入り娘",
    "short",
]


def test_a_line_that_could_leave_its_card_says_how_wide_it_is() -> None:
    layout = Layout([HOUSE.tokens] * len(LONG), LONG)
    root = ElementTree.fromstring(sheet_svg([HOUSE.tokens] * len(LONG), LONG))
    first, *_, short = [float(text.get("textLength", 0)) for text in root.iter(SVG + "text")]
    assert 0.9 * layout.caption_width < first <= layout.caption_width
    assert short == 0


@pytest.mark.parametrize("font", ["system-ui, sans-serif", "serif", "monospace"])
def test_no_caption_leaves_its_card_whatever_the_font(font: str, browser: Browser) -> None:
    drawn = sheet_svg([HOUSE.tokens] * len(LONG), LONG).replace("system-ui, sans-serif", font)
    page = browser.new_page()
    page.set_content(drawn)
    edges = "all => all.map(each => each.getBoundingClientRect()).map(box => [box.left, box.right])"
    cards = page.eval_on_selector_all(f"rect[fill='{palette.CARD}']", edges)
    captions = page.eval_on_selector_all("text", edges)
    page.close()
    assert len(cards) == len(captions) == len(LONG)
    for (left, right), (first, last) in zip(cards, captions, strict=True):
        assert left < first < last < right
