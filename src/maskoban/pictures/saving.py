"""Pictures reach their file whole or not at all, in the kind that its name ends with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from maskoban.boards import MaskobanError, check_place, whole_file
from maskoban.boards.tiles import Tokens
from maskoban.pictures.board import Mark, board_image
from maskoban.pictures.sheet import Layout, sheet
from maskoban.pictures.svg import board_svg, sheet_svg


def check_picture(path: str | Path) -> None:
    """Raise now what :func:`save_picture` would say later about the name or the place.

    >>> check_picture("board.bmp")
    Traceback (most recent call last):
        ...
    maskoban.boards.errors.MaskobanError: board.bmp: which kind of picture? expected a name that ends with ...
    """
    if Path(path).suffix.lower() not in (".png", ".svg"):
        raise MaskobanError(f"{path}: which kind of picture? expected a name that ends with .png or .svg")
    check_place(path)


def save_picture(
    path: str | Path,
    boards: Sequence[Tokens],
    captions: Sequence[str] | None = None,
    marks: Sequence[Sequence[Mark]] | None = None,
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
    cell = 32 if alone else _largest_cell(boards, captions)
    with whole_file(path) as file:
        if Path(path).suffix.lower() == ".svg":
            first = marks[0] if marks else ()
            text = (
                board_svg(boards[0], cell, first) if alone else sheet_svg(boards, captions, None, cell, marks)
            )
            file.write(text.encode())
        elif alone:
            board_image(boards[0], cell, marks[0] if marks else ()).save(file, "PNG")
        else:
            sheet(boards, captions, None, cell, marks).save(file, "PNG")


def _largest_cell(boards: Sequence[Tokens], captions: Sequence[str] | None) -> int:
    """The largest cells with which the sheet can still be opened by everyone."""
    for cell in (32, 24, 16, 12):
        try:
            Layout.of(boards, captions, None, cell)
        except MaskobanError:
            continue
        return cell
    return 8
