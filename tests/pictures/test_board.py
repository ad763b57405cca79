"""One board as pixels."""

from __future__ import annotations

from PIL import Image, ImageColor

from maskoban.pictures import Mark, board_image, palette
from tests.pictures.boards import HOUSE

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


def test_filler_is_transparent_and_nothing_else_is() -> None:
    picture = board_image(HOUSE.tokens, CELL)
    assert at(picture, 0, 0) == at(picture, 0, 8) == at(picture, 5, 8) == ""
    filler = 3 + 2 + 2 + 2
    assert picture.getchannel("A").histogram()[0] == filler * CELL * CELL
    assert picture.getchannel("A").histogram()[255] == (9 * 6 - filler) * CELL * CELL


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
