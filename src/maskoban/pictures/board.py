"""One board as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from maskoban.boards.tiles import Tokens
from maskoban.pictures import palette
from maskoban.pictures.shapes import SUPERSAMPLING
from maskoban.pictures.surroundings import OUTSIDE, looks
from maskoban.pictures.tileset import sprite


@dataclass(frozen=True)
class Mark:
    """A cell to outline, with an optional short text (a probability, a number) on a chip at its foot."""

    row: int
    column: int
    text: str = ""


def board_image(tokens: Tokens, cell: int = 32, marks: Sequence[Mark] = ()) -> Image.Image:
    """The board at ``cell`` pixels a cell, transparent where filler lies outside it.

    >>> import numpy as np
    >>> board_image(np.zeros((3, 5), np.uint8), cell=16).size
    (80, 48)
    """
    height, width = tokens.shape
    picture = Image.new("RGBA", (width * cell, height * cell))
    shown = looks(tokens)
    for row in range(height):
        for column in range(width):
            look = int(shown[row, column])
            if look != OUTSIDE:
                picture.paste(sprite(int(tokens[row, column]), look, cell), (column * cell, row * cell))
    for mark in marks:
        _draw_mark(picture, mark, cell)
    return picture


def _draw_mark(picture: Image.Image, mark: Mark, cell: int) -> None:
    left, top = mark.column * cell, mark.row * cell
    large, line = cell * SUPERSAMPLING, max(2, round(cell * 0.09)) * SUPERSAMPLING
    outline = Image.new("RGBA", (large, large))
    ImageDraw.Draw(outline).rounded_rectangle(
        (0, 0, large - 1, large - 1), large * 0.14, outline=palette.MARK, width=line
    )
    picture.alpha_composite(outline.reduce(SUPERSAMPLING), (left, top))
    if mark.text:
        draw = ImageDraw.Draw(picture)
        font = ImageFont.load_default(max(8, cell * 0.3))
        centre = (left + cell / 2, top + cell * 0.82)
        x0, y0, x1, y1 = draw.textbbox(centre, mark.text, font, anchor="mm")
        pad = cell * 0.07
        draw.rounded_rectangle((x0 - pad, y0 - pad, x1 + pad, y1 + pad), cell * 0.12, palette.MARK)
        draw.text(centre, mark.text, palette.MARK_TEXT, font, anchor="mm")
