"""A sheet of boards that change: only the cells that look otherwise than before are drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskoban.boards.tiles import Tokens
from maskoban.pictures import palette
from maskoban.pictures.board import Mark, mark_sprite
from maskoban.pictures.colours import in_shared_colours
from maskoban.pictures.gif import Indexed
from maskoban.pictures.sheet import Layout, sheet
from maskoban.pictures.surroundings import OUTSIDE, looks
from maskoban.pictures.tileset import sprite


class Canvas:
    """The picture ``sheet`` draws, in the colours all animations share; ``pixels`` is drawn upon in place.

    >>> canvas = Canvas([np.zeros((3, 3), np.uint8)], cell=8)
    >>> canvas.show([np.ones((3, 3), np.uint8)])
    >>> bool((canvas.pixels == indexed(sheet([np.ones((3, 3), np.uint8)], cell=8))).all())
    True
    """

    def __init__(
        self,
        boards: Sequence[Tokens],
        captions: Sequence[str] | None = None,
        columns: int | None = None,
        cell: int = 32,
    ) -> None:
        layout = Layout.of(boards, captions, columns, cell)
        self.cell = cell
        self.origins = [layout.origin(i, board) for i, board in enumerate(boards)]
        self.pixels = indexed(sheet(boards, captions, columns, cell))
        self.shown = [_faces(board, looks(board), None) for board in boards]

    def show(
        self,
        boards: Sequence[Tokens],
        marked: Sequence[NDArray[np.bool_]] | None = None,
        seen: Sequence[NDArray[np.uint8]] | None = None,
    ) -> None:
        """Draw the boards as they are now, some cells outlined; ``seen`` are their looks, if already known."""
        cell = self.cell
        for i, (board, (left, top)) in enumerate(zip(boards, self.origins, strict=True)):
            look = looks(board) if seen is None else seen[i]
            faces = _faces(board, look, None if marked is None else marked[i])
            for row, column in np.argwhere(faces != self.shown[i]).tolist():
                y, x = top + row * cell, left + column * cell
                self.pixels[y : y + cell, x : x + cell] = _face(int(faces[row, column]), cell)
            self.shown[i] = faces


def indexed(picture: Image.Image) -> Indexed:
    """The picture as indices into the shared colours.

    >>> indexed(Image.new("RGB", (2, 1))).shape
    (1, 2)
    """
    return np.array(in_shared_colours(picture))


def _faces(board: Tokens, look: NDArray[np.uint8], marked: NDArray[np.bool_] | None) -> NDArray[np.uint8]:
    """One number for all that decides how a cell is drawn: its token, its look, and whether it is outlined."""
    faces: NDArray[np.uint8] = board | look << np.uint8(3)
    if marked is not None:
        faces |= marked.astype(np.uint8) << np.uint8(5)
    return faces


@lru_cache(maxsize=512)
def _face(face: int, cell: int) -> Indexed:
    token, look, marked = face & 7, face >> 3 & 3, face >> 5
    tile = Image.new("RGBA", (cell, cell)) if look == OUTSIDE else sprite(token, look, cell).copy()
    if marked:
        tile.alpha_composite(mark_sprite(Mark(0, 0).shapes(), cell))
    ground = Image.new("RGB", (cell, cell), palette.CARD)
    ground.paste(tile, (0, 0), tile)
    return indexed(ground)
