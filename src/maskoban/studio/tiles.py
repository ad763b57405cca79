"""The tiles of every picture as one SVG sheet, so that the page shows boards as all other pictures do."""

from __future__ import annotations

from maskoban.boards import TILES
from maskoban.pictures import shapes
from maskoban.pictures.surroundings import OUTSIDE
from maskoban.pictures.tileset import tile

#: Pixels a tile; the page scales the sheet before it draws from it.
SIDE = 64


def tile_sheet() -> str:
    """Every token in a column of its own, every look in a row.

    >>> tile_sheet()[:44]
    '<svg xmlns="http://www.w3.org/2000/svg" widt'
    """
    columns, rows = TILES + 1, OUTSIDE
    cells = (
        f'<svg x="{token}" y="{look}" width="1" height="1" viewBox="0 0 1 1">{shapes.svg(tile(token, look))}</svg>'
        for look in range(rows)
        for token in range(columns)
    )
    size = f'width="{columns * SIDE}" height="{rows * SIDE}" viewBox="0 0 {columns} {rows}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(cells)}</svg>\n'
