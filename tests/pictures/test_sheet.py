"""Many boards on one sheet."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import ImageColor

from maskoban.boards import Level, MaskobanError
from maskoban.pictures import palette, sheet
from maskoban.pictures.sheet import Layout
from tests.pictures.boards import HOUSE, SOLVED_IN_TWO

BOARDS = [HOUSE.tokens, SOLVED_IN_TWO.tokens, HOUSE.tokens]


def test_cards_fill_rows_from_the_left() -> None:
    layout = Layout.of(BOARDS, columns=2)
    (left, top, right, _), second, third = (layout.card(i) for i in range(3))
    assert second[0] > right
    assert second[1] == top
    assert third[0] == left
    assert third[1] > top


def test_a_sheet_is_about_as_wide_as_high_unless_told() -> None:
    assert [Layout.of([HOUSE.tokens] * n).columns for n in (1, 2, 4, 9, 10)] == [1, 2, 2, 3, 4]
    assert Layout.of(BOARDS, columns=7).columns == 3


def test_boards_lie_on_their_cards_and_filler_shows_the_card() -> None:
    layout = Layout.of(BOARDS, columns=3)
    picture = sheet(BOARDS, columns=3)
    assert picture.size == (layout.width, layout.height)
    assert picture.getpixel((1, 1)) == ImageColor.getrgb(palette.PAGE)
    for i, board in enumerate(BOARDS):
        x, y = layout.origin(i, board)
        wall = ImageColor.getrgb(palette.WALL_TOP if i == 1 else palette.CARD)
        assert picture.getpixel((x + 16, y + 16)) == wall


def test_captions_are_written_below_in_two_inks() -> None:
    layout = Layout.of(BOARDS[:1], ["strong\nsoft"])
    picture = sheet(BOARDS[:1], ["strong\nsoft"])
    blank = sheet(BOARDS[:1], ["\n\n"])
    for line, (x, y, ink) in layout.caption(0):
        box = (x - 40, y - layout.line // 2, x + 40, y + layout.line // 2)
        colours = {colour for _, colour in picture.crop(box).getcolors(65536) or []}
        assert line in ("strong", "soft")
        assert ImageColor.getrgb(ink) in colours
        assert len(blank.crop(box).getcolors(65536) or []) == 1
    assert [ink for _, (_, _, ink) in layout.caption(0)] == [palette.INK, palette.INK_SOFT]


def test_a_caption_too_long_for_its_card_is_cut() -> None:
    ((line, _),) = Layout.of([SOLVED_IN_TWO.tokens], ["long " * 40]).caption(0)
    assert line.startswith("long long")
    assert line.endswith("...")
    assert len(line) < 60


@pytest.mark.parametrize(
    ("boards", "captions", "sentence"),
    [
        ([], None, "a sheet needs at least one board"),
        (BOARDS, ["only one"], "1 captions for 3 boards"),
        (
            [np.zeros((64, 64), np.uint8)] * 100,
            None,
            "a sheet of 100 boards at 32 pixels a cell is too large to draw; take fewer boards at a time",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said(
    boards: list[np.ndarray], captions: list[str] | None, sentence: str
) -> None:
    with pytest.raises(MaskobanError) as raised:
        sheet(boards, captions)
    assert str(raised.value) == sentence


def test_one_tile_makes_a_sheet() -> None:
    assert sheet([Level.parse("@").tokens], cell=8).width > 8
