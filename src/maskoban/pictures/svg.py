"""Boards and sheets of boards as SVG, from the same shapes as the pixels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple, TypeVar

import numpy as np

from maskoban.boards.tiles import Tokens
from maskoban.pictures import palette
from maskoban.pictures.layout import Layout, Mark, text_width
from maskoban.pictures.tileset import OUTSIDE, looks, shapes_svg, tile

_FONT = 'font-family="system-ui, sans-serif" text-anchor="middle"'

Kind = TypeVar("Kind")


def board_svg(tokens: Tokens, cell: int = 32, marks: Sequence[Mark] = ()) -> str:
    """The board as an SVG document at ``cell`` pixels a cell, transparent outside its walls.

    >>> import numpy as np
    >>> board_svg(np.zeros((3, 5), np.uint8), cell=16)[:60]
    '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="4'
    """
    height, width = tokens.shape
    body = _tiles([tokens]) + _board(tokens, marks)
    return _document(width * cell, height * cell, f"0 0 {width} {height}", body)


def sheet_svg(
    boards: Sequence[Tokens],
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    cell: int = 32,
    marks: Sequence[Sequence[Mark]] | None = None,
) -> str:
    """Several boards with captions as one SVG document, arranged as by ``sheet``.

    >>> import numpy as np
    >>> sheet_svg([np.zeros((3, 3), np.uint8)], ["no way in"]).count("no way in")
    1
    """
    layout = Layout(boards, captions, columns, cell)
    body = [f'<rect width="{layout.width}" height="{layout.height}" fill="{palette.PAGE}"/>', _tiles(boards)]
    for i, board in enumerate(boards):
        left, top, right, bottom = layout.card(i)
        body.append(
            f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" '
            f'rx="{layout.radius}" fill="{palette.CARD}"/>'
        )
        x, y = layout.origin(i)
        drawn = _board(board, marks[i] if marks else ())
        body.append(f'<g transform="translate({x} {y}) scale({cell})">{drawn}</g>')
        for line, (x, y, ink) in layout.caption(i):
            # Text is placed by its baseline, about a third of its size below its middle.
            middle = y + layout.text_size * 0.35
            size = f'font-size="{layout.text_size}"{_length(line, layout)}'
            body.append(f'<text x="{x}" y="{middle:.1f}" {_FONT} {size} fill="{ink}">{escape(line)}</text>')
    return _document(layout.width, layout.height, f"0 0 {layout.width} {layout.height}", "".join(body))


def _length(line: str, layout: Layout) -> str:
    """The width of a line where it could leave its card, because viewers choose the font.

    Their letters may be half as wide again as those measured, and narrow letters as wide as a typewriter's.
    """
    measured = text_width(line, layout.text_size)
    if max(1.5 * measured, 0.7 * layout.text_size * len(line)) <= layout.caption_width:
        return ""
    return f' textLength="{measured:.0f}" lengthAdjust="spacingAndGlyphs"'


def _document(width: int, height: int, view: str, body: str) -> str:
    size = f'width="{width}" height="{height}" viewBox="{view}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{body}</svg>\n'


class Run(NamedTuple):
    """Equal cells side by side."""

    token: int
    look: int
    length: int

    @property
    def name(self) -> str:
        one = f"tile-{self.token}-{self.look}"
        return one if self.length == 1 else f"{one}-{self.length}"

    def svg(self) -> str:
        """Its definition; a longer run refers to that of one cell."""
        if self.length == 1:
            return f'<g id="{self.name}">{shapes_svg(tile(self.token, self.look))}</g>'
        one = self._replace(length=1).name
        return f'<g id="{self.name}">{"".join(_use(one, x) for x in range(self.length))}</g>'


def _use(name: str, x: int, y: int = 0) -> str:
    place = "".join(f' {axis}="{value}"' for axis, value in (("x", x), ("y", y)) if value)
    return f'<use href="#{name}"{place}/>'


def _spans(line: Iterable[Kind]) -> Iterator[tuple[Kind, int, int]]:
    """Runs of equal values: the value, its first index and its length."""
    start = 0
    for kind, cells in groupby(line):
        length = len(list(cells))
        yield kind, start, length
        start += length


def _runs(tokens: Tokens) -> Iterator[tuple[Run, int, int]]:
    """The runs of a board, each with its first column and its row; cells outside have none."""
    for row, line in enumerate(np.stack([tokens, looks(tokens)], -1).tolist()):
        for (token, look), column, length in _spans(line):
            if look != OUTSIDE:
                yield Run(token, look, length), column, row


def _tiles(boards: Sequence[Tokens]) -> str:
    """The definitions of all runs, and of the tiles in them."""
    used = {run for board in boards for run, *_ in _runs(board)}
    used |= {run._replace(length=1) for run in used}
    return f"<defs>{''.join(run.svg() for run in sorted(used))}</defs>"


def _board(tokens: Tokens, marks: Sequence[Mark]) -> str:
    """The board's cells, one unit each."""
    # One shape behind all cells, or hairlines of the page shine through when scaled.
    backing = "".join(
        f"M{column} {row}h{length}v1h-{length}z"
        for row, line in enumerate((looks(tokens) != OUTSIDE).tolist())
        for drawn, column, length in _spans(line)
        if drawn
    )
    parts = [f'<path d="{backing}" fill="{palette.WALL_SEAM}"/>']
    parts += [_use(run.name, column, row) for run, column, row in _runs(tokens)]
    parts += [_mark(mark) for mark in marks]
    return "".join(parts)


def _mark(mark: Mark) -> str:
    drawn = shapes_svg(mark.shapes())
    if mark.text:
        # Browsers round letters smaller than a unit, so the text is scaled apart: 100 units a cell.
        size, middle = 100 * Mark.TEXT_SIZE, 100 * Mark.TEXT_MIDDLE
        place = f'x="50" y="{middle + 0.35 * size:g}" font-size="{size:g}" transform="scale(0.01)"'
        drawn += f'<text {place} {_FONT} fill="{palette.MARK_TEXT}">{escape(mark.text)}</text>'
    return f'<g transform="translate({mark.column} {mark.row})">{drawn}</g>'
