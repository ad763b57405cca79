"""Boards and sheets of boards as SVG, from the same shapes as the pixels."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from maskoban.boards.tiles import Tokens
from maskoban.pictures import palette, shapes
from maskoban.pictures.board import Mark
from maskoban.pictures.sheet import Layout
from maskoban.pictures.surroundings import OUTSIDE, looks
from maskoban.pictures.tileset import tile

_FONT = 'font-family="system-ui, sans-serif" text-anchor="middle"'


def board_svg(tokens: Tokens, cell: int = 32, marks: Sequence[Mark] = ()) -> str:
    """The board as an SVG document at ``cell`` pixels a cell, transparent where filler lies outside it.

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
    """Many boards with captions as one SVG document; the same arrangement as ``sheet``.

    >>> import numpy as np
    >>> sheet_svg([np.zeros((3, 3), np.uint8)], ["no way in"]).count("no way in")
    1
    """
    layout = Layout.of(boards, captions, columns, cell)
    body = [f'<rect width="{layout.width}" height="{layout.height}" fill="{palette.PAGE}"/>', _tiles(boards)]
    for i, board in enumerate(boards):
        left, top, right, bottom = layout.card(i)
        body.append(
            f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" '
            f'rx="{layout.radius}" fill="{palette.CARD}"/>'
        )
        x, y = layout.origin(i, board)
        drawn = _board(board, marks[i] if marks else ())
        body.append(f'<g transform="translate({x} {y}) scale({cell})">{drawn}</g>')
        for line, (x, y, ink) in layout.caption(i):
            # Text is placed by its baseline, about a third of its size below its middle.
            middle = y + layout.text * 0.35
            size = f'font-size="{layout.text}"'
            body.append(f'<text x="{x}" y="{middle:.1f}" {_FONT} {size} fill="{ink}">{escape(line)}</text>')
    return _document(layout.width, layout.height, f"0 0 {layout.width} {layout.height}", "".join(body))


def _document(width: int, height: int, view: str, body: str) -> str:
    size = f'width="{width}" height="{height}" viewBox="{view}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{body}</svg>\n'


def _name(token: int, look: int) -> str:
    return f"tile-{token}-{look}"


def _tiles(boards: Sequence[Tokens]) -> str:
    """Each tile that occurs, defined once."""
    used: set[tuple[int, int]] = set()
    for board in boards:
        used |= set(zip(board.ravel().tolist(), looks(board).ravel().tolist(), strict=True))
    defined = (
        f'<g id="{_name(token, look)}">{shapes.svg(tile(token, look))}</g>'
        for token, look in sorted(used)
        if look != OUTSIDE
    )
    return f"<defs>{''.join(defined)}</defs>"


def _board(tokens: Tokens, marks: Sequence[Mark]) -> str:
    """The board's cells, one unit each."""
    shown = looks(tokens)
    parts = []
    for row, drawn in enumerate(shown != OUTSIDE):
        # Runs of cells are backed by one rectangle, or hairlines of the page shine through when scaled.
        edges = np.flatnonzero(np.diff(np.pad(drawn, 1).astype(np.int8)))
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            parts.append(
                f'<rect x="{start}" y="{row}" width="{end - start}" height="1" fill="{palette.WALL_SEAM}"/>'
            )
    for row, column in np.argwhere(shown != OUTSIDE).tolist():
        name = _name(tokens[row, column], shown[row, column])
        parts.append(f'<use href="#{name}" x="{column}" y="{row}"/>')
    parts += [_mark(mark) for mark in marks]
    return "".join(parts)


def _mark(mark: Mark) -> str:
    drawn = shapes.svg(mark.shapes())
    if mark.text:
        # Browsers round letters smaller than a unit, so the text gets units of its own, a hundred a cell.
        size, middle = 100 * Mark.TEXT_SIZE, 100 * Mark.TEXT_MIDDLE
        place = f'x="50" y="{middle + 0.35 * size:g}" font-size="{size:g}" transform="scale(0.01)"'
        drawn += f'<text {place} {_FONT} fill="{palette.MARK_TEXT}">{escape(mark.text)}</text>'
    return f'<g transform="translate({mark.column} {mark.row})">{drawn}</g>'
