"""Boards and sheets as pixels, and saved pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from maskoban.errors import MaskobanError
from maskoban.pictures import (
    Mark,
    board_image,
    board_svg,
    check_animation,
    check_picture,
    palette,
    save_picture,
    sheet,
)
from maskoban.pictures.layout import Layout
from tests.pictures.boards import HOUSE, SOLVED_IN_TWO

CELL = 32


def at(picture: Image.Image, row: int, column: int, down: float = 0.5, right: float = 0.5) -> str:
    """The colour at a place in a cell, or nothing where the picture is transparent."""
    red, green, blue, alpha = picture.getpixel((int((column + right) * CELL), int((row + down) * CELL)))
    return f"#{red:02x}{green:02x}{blue:02x}" if alpha else ""


def test_each_cell_shows_its_tile() -> None:
    picture = board_image(HOUSE.tokens, CELL)
    assert picture.size == (9 * CELL, 6 * CELL)
    assert at(picture, 0, 3) == palette.WALL_TOP
    assert at(picture, 1, 4) == palette.FLOOR_TILE
    assert at(picture, 3, 2) == palette.CRATE_FRAME  # where the braces cross
    assert at(picture, 2, 3, down=0.25, right=0.5) == palette.DONE_PLANK
    assert at(picture, 3, 3, down=0.7) == palette.COAT
    assert at(picture, 3, 5) == palette.GOAL_MARK
    assert at(picture, 3, 6) == palette.MASK_STAR


def test_the_outside_is_transparent_and_nothing_else_is() -> None:
    picture = board_image(HOUSE.tokens, CELL)
    assert at(picture, 0, 0) == at(picture, 0, 8) == at(picture, 5, 8) == ""
    outside = 3 + 2 + 2 + 2
    assert picture.getchannel("A").histogram()[0] == outside * CELL * CELL
    assert picture.getchannel("A").histogram()[255] == (9 * 6 - outside) * CELL * CELL


def test_marked_cells_are_outlined_and_others_left_alone() -> None:
    plain = board_image(HOUSE.tokens, CELL)
    marked = board_image(HOUSE.tokens, CELL, [Mark(1, 1), Mark(4, 2, "0.93")])
    for down, right in [(0.04, 0.5), (0.96, 0.5), (0.5, 0.04), (0.5, 0.96)]:
        assert at(marked, 1, 1, down, right) == palette.MARK
    assert at(marked, 1, 1) == at(plain, 1, 1)
    chip = marked.crop((2 * CELL, round(4.7 * CELL), 3 * CELL, 5 * CELL)).convert("RGB")
    colours = {colour for _, colour in chip.getcolors(4096) or []}
    assert ImageColor.getrgb(palette.MARK) in colours
    assert max(min(colour) for colour in colours) > 200  # white letters
    whole = (0, 2 * CELL, 9 * CELL, 4 * CELL)
    assert marked.crop(whole).tobytes() == plain.crop(whole).tobytes()


BOARDS = [HOUSE.tokens, SOLVED_IN_TWO.tokens, HOUSE.tokens]


def test_boards_lie_on_their_cards_and_the_outside_shows_the_card() -> None:
    layout = Layout(BOARDS, columns=3)
    picture = sheet(BOARDS, columns=3)
    assert picture.size == (layout.width, layout.height)
    assert picture.getpixel((1, 1)) == ImageColor.getrgb(palette.PAGE)
    for i in range(len(BOARDS)):
        x, y = layout.origin(i)
        wall = ImageColor.getrgb(palette.WALL_TOP if i == 1 else palette.CARD)
        assert picture.getpixel((x + 16, y + 16)) == wall


def test_captions_are_written_below_in_two_inks() -> None:
    layout = Layout(BOARDS[:1], ["strong\nsoft"])
    picture = sheet(BOARDS[:1], ["strong\nsoft"])
    blank = sheet(BOARDS[:1], ["\n\n"])
    for line, (x, y, ink) in layout.caption(0):
        box = (x - 40, y - layout.line_height // 2, x + 40, y + layout.line_height // 2)
        colours = {colour for _, colour in picture.crop(box).getcolors(65536) or []}
        assert line in ("strong", "soft")
        assert ImageColor.getrgb(ink) in colours
        assert len(blank.crop(box).getcolors(65536) or []) == 1
    assert [ink for _, (_, _, ink) in layout.caption(0)] == [palette.INK, palette.INK_SOFT]


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
def test_bad_sheets_are_refused(boards: list[np.ndarray], captions: list[str] | None, sentence: str) -> None:
    with pytest.raises(MaskobanError) as raised:
        sheet(boards, captions)
    assert str(raised.value) == sentence


def test_one_board_is_saved_alone_and_several_on_a_sheet(tmp_path: Path) -> None:
    save_picture(tmp_path / "one.png", [HOUSE.tokens])
    save_picture(tmp_path / "two.png", [HOUSE.tokens, SOLVED_IN_TWO.tokens], ["a", "b"])
    with Image.open(tmp_path / "one.png") as one, Image.open(tmp_path / "two.png") as two:
        assert one.size == (9 * 32, 6 * 32)
        assert two.size == sheet([HOUSE.tokens, SOLVED_IN_TWO.tokens], ["a", "b"]).size


def test_the_suffix_chooses_svg(tmp_path: Path) -> None:
    save_picture(tmp_path / "one.SVG", [HOUSE.tokens])
    assert (tmp_path / "one.SVG").read_text() == board_svg(HOUSE.tokens)


def test_cells_shrink_where_a_sheet_would_be_too_large_to_open(tmp_path: Path) -> None:
    save_picture(tmp_path / "many.svg", [np.zeros((10, 10), np.uint8)] * 900)
    assert "scale(24)" in (tmp_path / "many.svg").read_text()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("board.jpg", "expected a name that ends with .png or .svg"),
        ("nowhere/board.png", "cannot be written: No such file or directory"),
    ],
)
def test_a_path_that_cannot_be_written_is_named(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(MaskobanError) as raised:
        save_picture(tmp_path / name, [HOUSE.tokens])
    assert str(raised.value) == f"{tmp_path / name}: {sentence}"


def test_name_and_folder_can_be_checked_before_any_work(tmp_path: Path) -> None:
    check_picture(tmp_path / "board.png")
    check_animation(tmp_path / "board.gif")
    for check, name in [(check_picture, "board.gif"), (check_animation, "board.png")]:
        with pytest.raises(MaskobanError, match="expected a name that ends with"):
            check(tmp_path / name)
        with pytest.raises(MaskobanError, match="cannot be written: No such file or directory"):
            check(tmp_path / "nowhere" / Path(name).with_suffix(".svg" if check is check_picture else ".gif"))
    assert list(tmp_path.iterdir()) == []
