"""What raster and SVG share: marks on cells, the places of boards and captions on a sheet, and the letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, sqrt
from string import ascii_letters, digits, punctuation
from typing import ClassVar
from unicodedata import category, east_asian_width, normalize

from PIL import ImageFont

from maskoban.boards.tiles import Tokens
from maskoban.errors import MaskobanError
from maskoban.pictures import palette
from maskoban.pictures.tileset import Rect, Shapes, Stroke

#: Most viewers cannot open larger pictures.
MAX_PIXELS = 100_000_000

#: What Pillow's font has, hardly more than ASCII. Everything else it draws as a box.
LETTERS = frozenset(f"{ascii_letters}{digits}{punctuation} ©«°±´·»‘’“”…‹›⁄™")

# What Unicode does not decompose, and the nearest that the font has.
_NEAREST = {
    **dict.fromkeys("‐‒–—―−", "-"),
    **{"\t": " ", "×": "x", "•": "·", "←": "<-", "→": "->", "‚": "’", "‛": "‘", "′": "'", "„": "”", "‟": "“"},
    **{"ß": "ss", "ẞ": "SS", "Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Þ": "Th", "þ": "th", "ŉ": "'n"},
    **dict(zip("¡¿ʻʼØøŁłĐđÐðĦħıȷŊŋŦŧƏəƁɓƊɗƘƙƐɛƆɔ", "!?‘’OoLlDdDdHhijNnTtEeBbDdKkEeOo", strict=True)),
}


@dataclass(frozen=True)
class Mark:
    """A cell to outline, with an optional short text (a probability, a number) on a label in it."""

    row: int
    column: int
    text: str = ""

    TEXT_MIDDLE: ClassVar[float] = 0.81
    TEXT_SIZE: ClassVar[float] = 0.32

    def shapes(self) -> Shapes:
        """The outline, and the label where there is a text, in the cell's unit square.

        >>> len(Mark(0, 0).shapes()), len(Mark(0, 0, "0.9").shapes())
        (1, 2)
        """
        corners = ((0.05, 0.05), (0.95, 0.05), (0.95, 0.95), (0.05, 0.95), (0.05, 0.05))
        outline = Stroke(corners, 0.1, palette.MARK)
        return (outline, Rect(0, 0.63, 1, 0.37, palette.MARK, radius=0.05)) if self.text else (outline,)


class Layout:
    """The places of everything on a sheet, in pixels; all cards are as large as the largest board needs.

    ``columns`` defaults to a sheet about as wide as high.

    >>> import numpy as np
    >>> Layout([np.zeros((3, 3), np.uint8)] * 6).columns
    3
    """

    def __init__(
        self,
        boards: Sequence[Tokens],
        captions: Sequence[str] | None = None,
        columns: int | None = None,
        cell: int = 32,
    ) -> None:
        if not len(boards):
            raise MaskobanError("a sheet needs at least one board")
        if captions is not None and len(captions) != len(boards):
            raise MaskobanError(f"{len(captions)} captions for {len(boards)} boards")
        self.boards, self.cell = boards, cell
        self.columns = min(len(boards), columns or ceil(sqrt(len(boards))))
        self.captions = [caption.splitlines() for caption in captions or [""] * len(boards)]
        self.gap = round(cell * 0.6)  # between cards, and around the sheet
        self.padding = round(cell * 0.5)  # between a card's edge and its board
        self.radius = round(cell * 0.45)  # of a card's corners
        self.text_size = max(12, round(cell * 0.5))
        self.line_height = round(self.text_size * 1.35)
        self.board_width = max(board.shape[1] for board in boards) * cell
        self.board_height = max(board.shape[0] for board in boards) * cell
        self.card_width = self.board_width + 2 * self.padding
        self.caption_width = self.card_width - self.padding  # the most that a line may take
        lines = max(map(len, self.captions))
        caption_height = lines * self.line_height + self.padding // 2 if lines else 0
        self.card_height = self.board_height + 2 * self.padding + caption_height
        self.width = self.gap + self.columns * (self.card_width + self.gap)
        self.height = self.gap + ceil(len(boards) / self.columns) * (self.card_height + self.gap)
        if self.width * self.height > MAX_PIXELS:
            raise MaskobanError(
                f"a sheet of {len(boards)} boards at {cell} pixels a cell is too large to draw; "
                "take fewer boards at a time"
            )

    def card(self, index: int) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of a card."""
        row, column = divmod(index, self.columns)
        left = self.gap + column * (self.card_width + self.gap)
        top = self.gap + row * (self.card_height + self.gap)
        return left, top, left + self.card_width, top + self.card_height

    def origin(self, index: int) -> tuple[int, int]:
        """The board's upper left corner: boards smaller than their card are centred."""
        left, top, _, _ = self.card(index)
        height, width = self.boards[index].shape
        return (
            left + self.padding + (self.board_width - width * self.cell) // 2,
            top + self.padding + (self.board_height - height * self.cell) // 2,
        )

    def caption(self, index: int) -> list[tuple[str, tuple[int, int, str]]]:
        """Each line of the caption, its middle and its colour: the first line strong, the others soft."""
        left, top, right, _ = self.card(index)
        first = top + self.board_height + round(1.5 * self.padding) + self.line_height // 2
        return [
            (
                _fitted(line, self.text_size, self.caption_width),
                ((left + right) // 2, first + i * self.line_height, palette.INK_SOFT if i else palette.INK),
            )
            for i, line in enumerate(self.captions[index])
        ]


def _fitted(line: str, size: int, room: int) -> str:
    """The line, cut with dots where it is wider than its card."""
    if text_width(line, size) <= room:
        return line
    while line and text_width(line + "...", size) > room:
        line = line[:-1]
    return line.rstrip() + "..."


@lru_cache(maxsize=16)
def font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font of all captions, which comes with Pillow and is the same everywhere."""
    return ImageFont.load_default(size)


def text_width(text: str, size: int) -> float:
    """The width of a text in this font; East Asian wide characters count as wide as high.

    >>> text_width("iii", 16) < text_width("mmm", 16) < text_width("箱箱箱", 16) == 48
    True
    """
    narrow = "".join(character for character in text if east_asian_width(character) not in "WF")
    return font(size).getlength(transliterate(narrow)) + size * (len(text) - len(narrow))


def transliterate(text: str) -> str:
    """The text in letters that the font has: without accents where necessary, and ? for what has no equivalent.

    >>> transliterate("Für Élise – Größe, 箱")
    'Fur Elise - Grosse, ?'
    """
    return "".join(map(_transliterate, text))


def _transliterate(character: str) -> str:
    if character in LETTERS:
        return character
    # A combining accent or a joiner leaves nothing.
    parts = [part for part in normalize("NFKD", character) if category(part) not in ("Mn", "Me", "Cf")]
    nearest = "".join(_NEAREST.get(part, part) for part in parts)
    return nearest if LETTERS.issuperset(nearest) else "?"
