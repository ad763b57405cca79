"""Many boards on one sheet, each on a card with its caption below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from PIL import Image, ImageDraw

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import Tokens
from maskoban.pictures import palette
from maskoban.pictures.board import Mark, board_image
from maskoban.pictures.lettering import font, spelled, text_width
from maskoban.pictures.shapes import SUPERSAMPLING

#: More than this many pixels make a picture nobody can open.
MAX_PIXELS = 100_000_000

Place = tuple[int, int, str]


@dataclass(frozen=True)
class Layout:
    """Where everything on a sheet goes, in pixels; all cards are as large as the largest board needs."""

    count: int
    columns: int
    cell: int
    board_width: int
    board_height: int
    captions: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls,
        boards: Sequence[Tokens],
        captions: Sequence[str] | None = None,
        columns: int | None = None,
        cell: int = 32,
    ) -> Layout:
        """The layout of these boards; ``columns`` defaults to a sheet about as wide as high.

        >>> import numpy as np
        >>> Layout.of([np.zeros((3, 3), np.uint8)] * 6).columns
        3
        """
        if not len(boards):
            raise MaskobanError("a sheet needs at least one board")
        if captions is not None and len(captions) != len(boards):
            raise MaskobanError(f"{len(captions)} captions for {len(boards)} boards")
        layout = cls(
            count=len(boards),
            columns=min(len(boards), columns or ceil(sqrt(len(boards)))),
            cell=cell,
            board_width=max(board.shape[1] for board in boards) * cell,
            board_height=max(board.shape[0] for board in boards) * cell,
            captions=tuple(tuple(caption.splitlines()) for caption in captions or [""] * len(boards)),
        )
        if layout.width * layout.height > MAX_PIXELS:
            raise MaskobanError(
                f"a sheet of {layout.count} boards at {cell} pixels a cell is too large to draw; "
                "take fewer boards at a time"
            )
        return layout

    @property
    def gap(self) -> int:
        """Between cards, and around the sheet."""
        return round(self.cell * 0.6)

    @property
    def padding(self) -> int:
        """Between a card's edge and its board."""
        return round(self.cell * 0.5)

    @property
    def radius(self) -> int:
        """Of a card's corners."""
        return round(self.cell * 0.45)

    @property
    def text(self) -> int:
        """Size of the captions' letters."""
        return max(12, round(self.cell * 0.5))

    @property
    def line(self) -> int:
        """Height of a line of caption."""
        return round(self.text * 1.35)

    @property
    def card_width(self) -> int:
        return self.board_width + 2 * self.padding

    @property
    def caption_width(self) -> int:
        """The widest that a line of caption may be."""
        return self.card_width - self.padding

    @property
    def card_height(self) -> int:
        lines = max(len(caption) for caption in self.captions)
        caption = lines * self.line + self.padding // 2 if lines else 0
        return self.board_height + 2 * self.padding + caption

    @property
    def width(self) -> int:
        return self.gap + self.columns * (self.card_width + self.gap)

    @property
    def height(self) -> int:
        return self.gap + ceil(self.count / self.columns) * (self.card_height + self.gap)

    def card(self, index: int) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of a card."""
        row, column = divmod(index, self.columns)
        left = self.gap + column * (self.card_width + self.gap)
        top = self.gap + row * (self.card_height + self.gap)
        return left, top, left + self.card_width, top + self.card_height

    def origin(self, index: int, board: Tokens) -> tuple[int, int]:
        """The board's upper left corner: boards smaller than their card sit in its middle."""
        left, top, _, _ = self.card(index)
        height, width = board.shape
        return (
            left + self.padding + (self.board_width - width * self.cell) // 2,
            top + self.padding + (self.board_height - height * self.cell) // 2,
        )

    def caption(self, index: int) -> list[tuple[str, Place]]:
        """Each line of the caption, its middle and its ink: the first line strong, the others soft."""
        left, top, right, _ = self.card(index)
        first = top + self.board_height + round(1.5 * self.padding) + self.line // 2
        placed = []
        for i, line in enumerate(self.captions[index]):
            ink = palette.INK_SOFT if i else palette.INK
            fitted = _fitted(line, self.text, self.caption_width)
            placed.append((fitted, ((left + right) // 2, first + i * self.line, ink)))
        return placed


def _fitted(line: str, size: int, room: int) -> str:
    """The line, cut with dots where it is wider than its card."""
    if text_width(line, size) <= room:
        return line
    while line and text_width(line + "...", size) > room:
        line = line[:-1]
    return line.rstrip() + "..."


def sheet(
    boards: Sequence[Tokens],
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    cell: int = 32,
    marks: Sequence[Sequence[Mark]] | None = None,
) -> Image.Image:
    """Many boards with captions (lines of text, the first one strong) as one picture.

    >>> import numpy as np
    >>> sheet([np.zeros((3, 3), np.uint8)] * 4, ["a", "b", "c", "d"]).mode
    'RGB'
    """
    layout = Layout.of(boards, captions, columns, cell)
    picture = _empty_cards(layout)
    draw = ImageDraw.Draw(picture)
    letters = font(layout.text)
    for i, board in enumerate(boards):
        image = board_image(board, cell, marks[i] if marks else ())
        picture.paste(image, layout.origin(i, board), image)
        for line, (x, y, ink) in layout.caption(i):
            draw.text((x, y), spelled(line), ink, letters, anchor="mm")
    return picture


def _empty_cards(layout: Layout) -> Image.Image:
    width, height = layout.card_width, layout.card_height
    corners = Image.new("L", (width * SUPERSAMPLING, height * SUPERSAMPLING))
    ImageDraw.Draw(corners).rounded_rectangle(
        (0, 0, corners.width - 1, corners.height - 1), layout.radius * SUPERSAMPLING, 255
    )
    shape = corners.reduce(SUPERSAMPLING)
    picture = Image.new("RGB", (layout.width, layout.height), palette.PAGE)
    for i in range(layout.count):
        picture.paste(palette.CARD, layout.card(i), shape)
    return picture
