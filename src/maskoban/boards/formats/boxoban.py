"""Boxoban text: ``; N`` above each board, a thousand boards a file, whole folders of files.

The reader is that of all text. What is here writes such files, and reads boards of one size without making
a level of each, a few hundred thousand a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import numpy as np

from ..level import Level
from ..rows import NO_TILE, TOKEN_OF
from ..tiles import FLOOR, MASK, MAX_SIDE, WALL, Tokens
from .xsb import board_lines

#: How many boards Boxoban keeps in one file.
A_FILE = 1000


def write_boxoban(out: BinaryIO, levels: Iterable[Level]) -> None:
    """Boards under ``; N`` and nothing else; N is the title where that is a number, else counted from 0.

    >>> import io
    >>> write_boxoban(out := io.BytesIO(), [Level.parse("#@#")])
    >>> out.getvalue()
    b'; 0\\n#@#\\n\\n'
    """
    for i, level in enumerate(levels):
        number = level.title if level.title.isascii() and level.title.isdigit() else str(i)
        out.write(("\n".join([f"; {number}", *board_lines(level)]) + "\n\n").encode("ascii"))


def boards_of_text(data: bytes) -> Tokens | None:
    """The boards ``(n, h, w)`` of a text file as regular as Boxoban's, or None if it is not.

    Regular: lines behind ``;``, blank lines, and boards of one size in plain tiles, nothing else. What
    stands behind ``;`` is not looked at.

    >>> boards_of_text(b"; 0\\n###\\n#@#\\n\\n; 1\\n#.#\\n#@#\\n\\n").shape
    (2, 2, 3)
    >>> boards_of_text(b"Level 1\\n###\\n") is None
    True
    """
    letters = np.frombuffer(data.replace(b"\r\n", b"\n").removeprefix(b"\xef\xbb\xbf") + b"\n\n", np.uint8)
    if ((letters < ord(" ")) & (letters != ord("\n"))).any():
        return None
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts
    is_row = (lengths > 0) & (letters[starts] != ord(";"))
    rows = np.flatnonzero(is_row)
    if len(rows) == 0:
        return None
    width = int(lengths[rows[0]])
    # A board ends where the next line is no row; the last line is none, for two newlines were added.
    heights = np.diff(np.flatnonzero(~is_row[rows + 1]), prepend=-1)
    height = int(heights[0])
    if not (lengths[rows] == width).all() or not (heights == height).all():
        return None
    if not (1 <= height <= MAX_SIDE and width <= MAX_SIDE):
        return None
    boards = TOKEN_OF[letters[starts[rows][:, None] + np.arange(width)]].reshape(-1, height, width)
    # What the careful reader would call text, or a blank line, is left to the careful reader.
    drawn = ((boards == WALL) | (boards == MASK)).any(axis=(1, 2)).all()
    blank = (boards == FLOOR).all(axis=2).any()
    if not drawn or blank or (boards == NO_TILE).any():
        return None
    return boards
