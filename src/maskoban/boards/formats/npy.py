"""Plain ``.npy``: what ``numpy.save(file, boards)`` writes, one ``uint8`` array (n, h, w) of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np

from ..errors import LevelFileError, MaskobanError
from ..level import Level
from ..tiles import MASK, MAX_SIDE, Tokens

MAGIC = b"\x93NUMPY\x01\x00"

# The most cells a reader has in memory at once.
_CELLS = 8_000_000
_HEADER = re.compile(
    rb"\{'descr': '\|u1', 'fortran_order': False, 'shape': \((\d{1,12}), (\d{1,4}), (\d{1,4})\), \} *\n"
)


def write_npy(out: BinaryIO, levels: Iterable[Level]) -> None:
    """The boards of levels of one size; all else that is known about them is left out.

    >>> import io
    >>> write_npy(out := io.BytesIO(), [Level.parse("#@#")])
    >>> np.load(io.BytesIO(out.getvalue())).tolist()
    [[[0, 2, 0]]]
    """
    boards = [level.tokens for level in levels]
    if len({board.shape for board in boards}) > 1:
        raise MaskobanError("levels of several sizes cannot be written as .npy; .npz holds them")
    array = np.stack(boards) if boards else np.zeros((0, 1, 1), np.uint8)
    np.lib.format.write_array(out, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)


def read_npy(source: BinaryIO, path: str) -> Iterator[Level]:
    """The levels of an ``.npy`` file, one after the other.

    >>> import io
    >>> write_npy(out := io.BytesIO(), [Level.parse("#@#")])
    >>> [str(level) for level in read_npy(io.BytesIO(out.getvalue()), "maze.npy")]
    ['#@#']
    """
    yield from (Level(board) for part in boards_of_npy(source, path) for board in part)


def boards_of_npy(source: BinaryIO, path: str) -> Iterator[Tokens]:
    """The boards ``(n, h, w)`` a part at a time; the header is read without evaluating it.

    >>> import io
    >>> write_npy(out := io.BytesIO(), [Level.parse("#@#")] * 2)
    >>> next(boards_of_npy(io.BytesIO(out.getvalue()), "maze.npy")).shape
    (2, 1, 3)
    """
    start = source.read(10)
    header = _HEADER.fullmatch(source.read(int.from_bytes(start[8:], "little")))
    count, height, width = map(int, header.groups()) if header else (0, 0, 0)
    if start[:8] != MAGIC or not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE):
        raise LevelFileError(path, f"boards is no array of uint8 (n, h, w) with sides of 1 to {MAX_SIDE}")
    most = _CELLS // (height * width)
    for first in range(0, count, most):
        n = min(most, count - first)
        boards = np.frombuffer(source.read(n * height * width), np.uint8)
        if len(boards) < n * height * width:
            raise LevelFileError(path, "boards is not whole")
        if (boards > MASK).any():
            raise LevelFileError(path, f"boards holds the number {boards.max()}; expected tiles, 0 to {MASK}")
        yield boards.reshape(n, height, width)
