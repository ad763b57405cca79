"""One board as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from PIL import Image, ImageDraw

from maskoban.boards.tiles import Tokens
from maskoban.pictures import palette
from maskoban.pictures.lettering import font, spelled
from maskoban.pictures.shapes import Rect, Shape, Stroke, rendered
from maskoban.pictures.surroundings import OUTSIDE, looks
from maskoban.pictures.tileset import sprite


@dataclass(frozen=True)
class Mark:
    """A cell to outline, with an optional short text (a probability, a number) on a chip at its foot."""

    row: int
    column: int
    text: str = ""

    TEXT_MIDDLE: ClassVar[float] = 0.81
    TEXT_SIZE: ClassVar[float] = 0.32

    def shapes(self) -> tuple[Shape, ...]:
        """The outline, and the chip where there is a text, in the cell's unit square.

        >>> len(Mark(0, 0).shapes()), len(Mark(0, 0, "0.9").shapes())
        (1, 2)
        """
        corners = ((0.05, 0.05), (0.95, 0.05), (0.95, 0.95), (0.05, 0.95), (0.05, 0.05))
        outline = Stroke(corners, 0.1, palette.MARK)
        return (outline, Rect(0, 0.63, 1, 0.37, palette.MARK, radius=0.05)) if self.text else (outline,)


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


@lru_cache(maxsize=64)
def mark_sprite(shapes: tuple[Shape, ...], cell: int) -> Image.Image:
    """A mark's shapes as a picture of ``cell`` by ``cell`` pixels, drawn once and kept."""
    return rendered(shapes, cell)


def _draw_mark(picture: Image.Image, mark: Mark, cell: int) -> None:
    left, top = mark.column * cell, mark.row * cell
    picture.alpha_composite(mark_sprite(mark.shapes(), cell), (left, top))
    if mark.text:
        place = (left + cell / 2, top + cell * Mark.TEXT_MIDDLE)
        letters = font(cell * Mark.TEXT_SIZE)
        ImageDraw.Draw(picture).text(place, spelled(mark.text), palette.MARK_TEXT, letters, anchor="mm")
