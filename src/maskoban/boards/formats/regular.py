"""The fast way to the boards alone of text files that are as regular as Boxoban's."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import cast

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.formats.registry import Prefixed, Source
from maskoban.boards.formats.text import read_text
from maskoban.boards.geometry import group_by_shape
from maskoban.boards.tiles import (
    BOX,
    FLOOR,
    MASK,
    MAX_LEVEL_SIDE,
    NO_TILE,
    PLAYER,
    PLAYER_ON_GOAL,
    TOKEN_OF,
    WALL,
    Tokens,
)

_CHUNK_BYTES = 4_000_000
_LEVELS_AT_ONCE = 1000

# A line behind ; that is more than a number.
_NOTE = re.compile(rb"^;(?! *+\d*+ *+\r?$)", re.MULTILINE)


def read_text_boards(source: Source) -> Iterator[Tokens]:
    """The boards of a text file in batches of one size each, fast as long as the file is regular."""
    for chunk, boards in _regular_chunks(source):
        if boards is not None:
            yield boards
            continue
        source.file = io.BufferedReader(Prefixed(chunk, cast(io.BufferedReader, source.file)))
        levels = read_text(source)
        while batch := [level.tokens for level in islice(levels, _LEVELS_AT_ONCE)]:
            yield from (boards for _, boards in group_by_shape(batch))
        return


def text_has_metadata(source: Source) -> bool:
    """Whether a text file is more than boards and their numbers."""
    return any(boards is None or _NOTE.search(chunk) for chunk, boards in _regular_chunks(source))


def _regular_chunks(source: Source) -> Iterator[tuple[bytes, Tokens | None]]:
    """A text file in chunks that end between boards, each with its boards, or None if it is not regular.

    ``source.line`` is the number of the first line of the chunk.
    """
    rest = source.file.read(_CHUNK_BYTES).removeprefix(b"\xef\xbb\xbf")
    while rest:
        more = source.file.read(_CHUNK_BYTES)
        data = rest + more
        end = max(map(data.rfind, (b"\n\n", b"\n\r\n", b"\n;"))) + 1 if more else len(data)
        boards = regular_boards(data[:end]) if end else None
        yield (data if boards is None else data[:end]), boards
        source.line += data.count(b"\n", 0, end)
        rest = data[end:]


def regular_boards(data: bytes) -> Tokens | None:
    """The boards ``(n, h, w)`` of a text as regular as Boxoban's, or None if it is not.

    Regular: lines behind ``;``, blank lines, and boards of one size in plain tiles, nothing else.

    >>> regular_boards(b"; 0\\n###\\n#@#\\n\\n; 1\\n#.#\\n#@#\\n\\n").shape
    (2, 2, 3)
    >>> regular_boards(b"Level 1\\n###\\n") is None
    True
    """
    letters = np.frombuffer(data.replace(b"\r\n", b"\n") + b"\n\n", np.uint8)
    if ((letters < ord(" ")) & (letters != ord("\n"))).any():
        return None
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts
    is_board_row = (lengths > 0) & (letters[starts] != ord(";"))
    rows = np.flatnonzero(is_board_row)
    if len(rows) == 0:
        return None
    width = int(lengths[rows[0]])
    # A board ends where the next line is no row; the last line is none, because two newlines were added.
    heights = np.diff(np.flatnonzero(~is_board_row[rows + 1]), prepend=-1)
    height = int(heights[0])
    if not (lengths[rows] == width).all() or not (heights == height).all():
        return None
    if not (1 <= height <= MAX_LEVEL_SIDE and width <= MAX_LEVEL_SIDE):
        return None
    boards = TOKEN_OF[letters[starts[rows][:, None] + np.arange(width)]].reshape(-1, height, width)
    # What read_text would take for text, or for a blank line, is left to it.
    blank = (boards == FLOOR).all(axis=2).any()
    if blank or (boards == NO_TILE).any() or not _drawn(boards).all():
        return None
    return boards


def _drawn(boards: Tokens) -> NDArray[np.bool_]:
    """Which boards ``is_drawn`` takes surely: one player beside a wall, a box or MASK, or rows that end with walls."""
    closed = (boards[:, :, 0] == WALL).all(axis=1) & (boards[:, :, -1] == WALL).all(axis=1)
    box = (boards == BOX).any(axis=(1, 2))
    drawn: NDArray[np.bool_] = closed & box if min(boards.shape[1:]) > 1 else np.zeros(len(boards), np.bool_)
    if not drawn.all():
        player, on_goal = (np.count_nonzero(boards == tile, axis=(1, 2)) for tile in (PLAYER, PLAYER_ON_GOAL))
        beside = box | ((boards == WALL) | (boards == MASK)).any(axis=(1, 2))
        drawn |= (player == 1) & (on_goal == 0) & beside & (boards[0].size > 2)
    return drawn
