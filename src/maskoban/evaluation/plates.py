"""Pictures of boards in a report, from rows of text."""

from __future__ import annotations

from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from maskoban.boards.tiles import parse_rows
from maskoban.evaluation.report import Plate, RepairedBoard
from maskoban.evaluation.theme import FONT, with_night
from maskoban.pictures import Mark, palette, sheet, sheet_svg
from maskoban.pictures.tileset import PLAIN, shapes_svg, sprite, tile

#: Pixels a cell in the PNG for each in the SVG.
SHARPER = 2

Drawn = tuple[str, bytes]


def boards(data: Plate) -> Drawn:
    """Boards with captions, so many a row.

    >>> svg, png = boards(Plate(1, [["#@#"]], ["alone"]))
    >>> "alone" in svg, png[1:4]
    (True, b'PNG')
    """
    return _sheet(data.boards, data.captions or None, data.columns, 12)


def repaired(data: list[RepairedBoard]) -> Drawn:
    """Boards with the wall to remove outlined, and its probability where it is known."""
    known = ["" if each.probability is None else f"{each.probability:.2f}" for each in data]
    marks = [[Mark(each.row, each.column, text)] for each, text in zip(data, known, strict=True)]
    captions = (
        [f"committed at {text}" if text else "set by a sweep" for text in known] if any(known) else None
    )
    return _sheet([each.board for each in data], captions, 3, 24, marks)


def key(data: list[str]) -> Drawn:
    """Every tile with its name and its letter.

    >>> key(["wall #", "floor"])[0].count("<text")
    2
    """
    cell, columns, width, height = 40, 4, 130, 88
    size = (columns * width, -(-len(data) // columns) * height)
    parts = []
    picture = Image.new("RGB", (size[0] * SHARPER, size[1] * SHARPER), palette.PAGE)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(13 * SHARPER)
    for token, name in enumerate(data):
        row, column = divmod(token, columns)
        middle, top = column * width + width // 2, row * height + 12
        left = middle - cell // 2
        parts.append(
            f'<g transform="translate({left} {top}) scale({cell})">{shapes_svg(tile(token, PLAIN))}</g>'
            f'<text x="{middle}" y="{top + cell + 20}" font-size="13" text-anchor="middle" '
            f'font-family="{FONT}" fill="{palette.INK}">{name}</text>'
        )
        picture.paste(sprite(token, PLAIN, cell * SHARPER), (left * SHARPER, top * SHARPER))
        draw.text((middle * SHARPER, (top + cell + 16) * SHARPER), name, palette.INK, font, anchor="mm")
    box = f'width="{size[0]}" height="{size[1]}" viewBox="0 0 {size[0]} {size[1]}"'
    return with_night(f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}</svg>\n'), _png(
        picture
    )


def _sheet(
    texts: list[list[str]],
    captions: list[str] | None,
    columns: int,
    cell: int,
    marks: list[list[Mark]] | None = None,
) -> Drawn:
    shown = [parse_rows(text) for text in texts]
    picture = sheet(shown, captions, columns, cell * SHARPER, marks)
    return with_night(sheet_svg(shown, captions, columns, cell, marks)), _png(picture)


def _png(picture: Image.Image) -> bytes:
    out = BytesIO()
    picture.save(out, "PNG", optimize=True)
    return out.getvalue()
