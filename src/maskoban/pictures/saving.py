"""Pictures reach their file whole or not at all, in the kind that its name ends with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import Tokens
from maskoban.pictures.board import Mark, board_image
from maskoban.pictures.sheet import Layout, sheet
from maskoban.pictures.svg import board_svg, sheet_svg


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write that takes its name only when the block ends well; no half-written file stays.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(folder + "/a") as file:
    ...         _ = file.write(b"board")
    ...     Path(folder, "a").read_bytes()
    b'board'
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, target)
    except OSError as error:
        raise MaskobanError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def save_picture(
    path: str | Path,
    boards: Sequence[Tokens],
    captions: Sequence[str] | None = None,
    marks: Sequence[Sequence[Mark]] | None = None,
) -> None:
    """Save one board alone, or several on a sheet with their captions, as ``.png`` or ``.svg``.

    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_picture(folder + "/board.svg", [np.zeros((3, 3), np.uint8)])
    ...     os.listdir(folder)
    ['board.svg']
    """
    ending = Path(path).suffix.lower()
    if ending not in (".png", ".svg"):
        raise MaskobanError(f"{path}: which kind of picture? expected a name that ends with .png or .svg")
    alone = len(boards) == 1 and not captions
    cell = 32 if alone else _largest_cell(boards, captions)
    with whole_file(path) as file:
        if ending == ".svg":
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
