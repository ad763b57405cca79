"""Boards and sheets of boards as SVG, from the same shapes as the pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    shared = _shared_rows([tokens])
    body = _tiles([tokens], shared) + _board(tokens, marks, shared)
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
    shared = _shared_rows(boards)
    body = [f'<rect width="{layout.width}" height="{layout.height}" fill="{palette.PAGE}"/>']
    body.append(_tiles(boards, shared))
    for i, board in enumerate(boards):
        left, top, right, bottom = layout.card(i)
        body.append(
            f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" '
            f'rx="{layout.radius}" fill="{palette.CARD}"/>'
        )
        x, y = layout.origin(i)
        drawn = _board(board, marks[i] if marks else (), shared)
        body.append(f'<g transform="translate({x} {y}) scale({cell})">{drawn}</g>')
        for line, (x, y, ink) in layout.caption(i):
            # Text is placed by its baseline, about a third of its size below its middle.
            middle = y + layout.text_size * 0.35
            size = f'font-size="{layout.text_size}"{_length(line, layout)}'
            body.append(f'<text x="{x}" y="{middle:.1f}" {size} fill="{ink}">{escape(line)}</text>')
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
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {_FONT}>{body}</svg>\n'


class Run(NamedTuple):
    """Equal cells side by side."""

    token: int
    look: int
    length: int

    @property
    def name(self) -> str:
        one = f"t{self.token}-{self.look}"  # short, because a sheet of boards has thousands of them
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


#: The runs of a row, each with its first column; cells outside have none.
Row = tuple[tuple[Run, int], ...]


def _rows(tokens: Tokens) -> list[Row]:
    return [
        tuple((Run(token, look, n), column) for (token, look), column, n in _spans(line) if look != OUTSIDE)
        for line in np.stack([tokens, looks(tokens)], -1).tolist()
    ]


def _shared_rows(boards: Sequence[Tokens]) -> dict[Row, str]:
    """Names for the rows of several runs that occur more than once; frames of one game share most of theirs."""
    counts = Counter(row for board in boards for row in _rows(board))
    shared = [row for row, count in counts.items() if count > 1 and len(row) > 1]
    return {row: f"r{number}" for number, row in enumerate(shared)}


def _tiles(boards: Sequence[Tokens], shared: Mapping[Row, str]) -> str:
    """The definitions of all runs, of the tiles in them, and of the shared rows."""
    used = {run for board in boards for row in _rows(board) for run, _ in row}
    used |= {run._replace(length=1) for run in used}
    rows = (f'<g id="{name}">{_row(row)}</g>' for row, name in shared.items())
    return f"<defs>{''.join(run.svg() for run in sorted(used))}{''.join(rows)}</defs>"


def _row(row: Row, y: int = 0) -> str:
    return "".join(_use(run.name, column, y) for run, column in row)


def _board(tokens: Tokens, marks: Sequence[Mark], shared: Mapping[Row, str]) -> str:
    """The board's cells, one unit each."""
    # One shape behind all cells, or hairlines of the page shine through when scaled.
    backing = "".join(
        f"M{column} {row}h{width}v{height}h-{width}z"
        for line, row, height in _spans((looks(tokens) != OUTSIDE).tolist())
        for drawn, column, width in _spans(line)
        if drawn
    )
    parts = [f'<path d="{backing}" fill="{palette.WALL_SEAM}"/>']
    for y, row in enumerate(_rows(tokens)):
        parts.append(_use(shared[row], 0, y) if row in shared else _row(row, y))
    parts += [_mark(mark) for mark in marks]
    return "".join(parts)


def _mark(mark: Mark) -> str:
    drawn = shapes_svg(mark.shapes())
    if mark.text:
        # Browsers round letters smaller than a unit, so the text is scaled apart: 100 units a cell.
        size, middle = 100 * Mark.TEXT_SIZE, 100 * Mark.TEXT_MIDDLE
        place = f'x="50" y="{middle + 0.35 * size:g}" font-size="{size:g}" transform="scale(0.01)"'
        drawn += f'<text {place} fill="{palette.MARK_TEXT}">{escape(mark.text)}</text>'
    return f'<g transform="translate({mark.column} {mark.row})">{drawn}</g>'
