"""Boards and sheets of boards as pixels, and pictures saved as PNG or SVG."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from maskoban._util.files import atomic_file, check_can_write
from maskoban.boards.tiles import Tokens
from maskoban.errors import MaskobanError
from maskoban.pictures import palette
from maskoban.pictures.layout import Layout, Mark, font, transliterate
from maskoban.pictures.svg import board_svg, sheet_svg
from maskoban.pictures.tileset import OUTSIDE, SUPERSAMPLING, Shapes, looks, render, sprite


def board_image(tokens: Tokens, cell: int = 32, marks: Sequence[Mark] = ()) -> Image.Image:
    """The board at ``cell`` pixels a cell, transparent outside its walls.

    >>> import numpy as np
    >>> board_image(np.zeros((3, 5), np.uint8), cell=16).size
    (80, 48)
    """
    height, width = tokens.shape
    picture = Image.new("RGBA", (width * cell, height * cell))
    for row, (line, line_looks) in enumerate(zip(tokens.tolist(), looks(tokens).tolist(), strict=True)):
        for column, (token, look) in enumerate(zip(line, line_looks, strict=True)):
            if look != OUTSIDE:
                picture.paste(sprite(token, look, cell), (column * cell, row * cell))
    for mark in marks:
        left, top = mark.column * cell, mark.row * cell
        picture.alpha_composite(mark_sprite(mark.shapes(), cell), (left, top))
        if not mark.text:
            continue
        place, letters = (left + cell / 2, top + cell * Mark.TEXT_MIDDLE), font(cell * Mark.TEXT_SIZE)
        ImageDraw.Draw(picture).text(place, transliterate(mark.text), palette.MARK_TEXT, letters, anchor="mm")
    return picture


@lru_cache(maxsize=64)
def mark_sprite(shapes: Shapes, cell: int) -> Image.Image:
    """A mark's shapes as a picture of ``cell`` by ``cell`` pixels, cached: treat it as read-only."""
    return render(shapes, cell)


def sheet(
    boards: Sequence[Tokens],
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    cell: int = 32,
    marks: Sequence[Sequence[Mark]] | None = None,
) -> Image.Image:
    """Several boards with captions (lines of text, the first one strong) as one picture.

    >>> import numpy as np
    >>> sheet([np.zeros((3, 3), np.uint8)] * 4, ["a", "b", "c", "d"]).mode
    'RGB'
    """
    layout = Layout(boards, captions, columns, cell)
    picture = Image.new("RGB", (layout.width, layout.height), palette.PAGE)
    draw, letters, card = ImageDraw.Draw(picture), font(layout.text_size), _card_mask(layout)
    for i, board in enumerate(boards):
        picture.paste(palette.CARD, layout.card(i), card)
        image = board_image(board, cell, marks[i] if marks else ())
        picture.paste(image, layout.origin(i), image)
        for line, (x, y, ink) in layout.caption(i):
            draw.text((x, y), transliterate(line), ink, letters, anchor="mm")
    return picture


def _card_mask(layout: Layout) -> Image.Image:
    """A card with round corners."""
    large = Image.new("L", (layout.card_width * SUPERSAMPLING, layout.card_height * SUPERSAMPLING))
    box = (0, 0, large.width - 1, large.height - 1)
    ImageDraw.Draw(large).rounded_rectangle(box, layout.radius * SUPERSAMPLING, 255)
    return large.reduce(SUPERSAMPLING)


def check_picture(path: str | Path) -> None:
    """Raise before any work what :func:`save_picture` would raise about the name or the folder.

    >>> check_picture("board.bmp")
    Traceback (most recent call last):
        ...
    maskoban.errors.MaskobanError: board.bmp: expected a name that ends with ...
    """
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise MaskobanError(f"{path}: expected a name that ends with .png or .svg")
    check_can_write(path)


def save_picture(
    path: str | Path,
    boards: Sequence[Tokens],
    captions: Sequence[str] | None = None,
) -> None:
    """Save one board alone, or several on a sheet with their captions, as ``.png`` or ``.svg``.

    >>> import os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_picture(folder + "/board.svg", [np.zeros((3, 3), np.uint8)])
    ...     os.listdir(folder)
    ['board.svg']
    """
    check_picture(path)
    alone = len(boards) == 1 and not captions
    shown: tuple[Any, ...] = (boards[0], 32)
    if not alone:
        shown = (boards, captions, None, _largest_cell(boards, captions))
    with atomic_file(path) as file:
        if Path(path).suffix.lower() == ".png":
            (board_image if alone else sheet)(*shown).save(file, "PNG")
        else:
            file.write((board_svg if alone else sheet_svg)(*shown).encode())


def _largest_cell(boards: Sequence[Tokens], captions: Sequence[str] | None) -> int:
    """The largest cells with which the sheet stays within the limit of pixels."""
    for cell in (32, 24, 16, 12):
        try:
            Layout(boards, captions, None, cell)
        except MaskobanError:
            continue
        return cell
    return 8
