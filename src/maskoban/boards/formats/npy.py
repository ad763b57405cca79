"""Plain ``.npy``: what ``numpy.save(file, boards)`` writes, one array (n, h, w) of tokens, or one board (h, w).

Whole numbers of any size are read, in C order and in Fortran order; ``uint8`` in C order is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from ..errors import LevelFileError, MaskobanError
from ..level import Level
from ..tiles import MASK, MAX_SIDE, Tokens

MAGIC = b"\x93NUMPY\x01\x00"

# The most bytes a reader has in memory at once, and the most cells of an array in Fortran order, which must be
# read as a whole: its boards lie across each other.
_BYTES = 8_000_000
_FORTRAN_CELLS = 64_000_000

#: Longer headers belong to arrays of another kind.
MAX_HEADER = 10_000
_HEADER = re.compile(
    rb"\{\s*'descr':\s*'([\w<>=|\[\]]{1,20})',\s*'fortran_order':\s*(True|False),"
    rb"\s*'shape':\s*\(([\d,\s]{0,200})\),?\s*\}\s*"
)
# Kinds of numbers and of other things that numpy has names for.
_KIND = re.compile(r"[<>=|]?[biufcSUO]\d{0,4}")
_EXPECTED = "expected whole numbers (n, h, w)"


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
    kind, fortran, (count, height, width) = _header(source, path)
    cells = height * width
    if fortran:
        if count * cells > _FORTRAN_CELLS:
            raise LevelFileError(
                path, f"holds more than {_FORTRAN_CELLS:,} cells in Fortran order; expected C order"
            )
        parts = list(_tiles(source, path, kind, count * cells, 1))
        if parts:
            yield np.ascontiguousarray(np.concatenate(parts).reshape(width, height, count).T)
        return
    for tiles in _tiles(source, path, kind, count, cells):
        yield tiles.reshape(-1, height, width)


def _header(source: BinaryIO, path: str) -> tuple[np.dtype[Any], bool, tuple[int, int, int]]:
    """The kind of the numbers, whether they are in Fortran order, and how many boards of which size there are."""
    start = source.read(len(MAGIC))
    length = int.from_bytes(source.read(2 if start == MAGIC else 4), "little")
    sound = start[:6] == MAGIC[:6] and length <= MAX_HEADER
    header = _HEADER.fullmatch(source.read(length)) if sound else None
    if header is None:
        raise LevelFileError(path, f"has a header that is not read; {_EXPECTED}")
    descr, order, sides = header[1].decode("latin-1"), header[2], header[3]
    shape = tuple(int(side) for side in re.findall(rb"\d+", sides))
    kind = _kind(descr)
    if kind is None or kind.kind not in "iu" or len(shape) not in (2, 3):
        raise LevelFileError(path, f"holds {descr if kind is None else kind} of shape {shape}; {_EXPECTED}")
    count, height, width = shape if len(shape) == 3 else (1, *shape)
    if not (1 <= height <= MAX_SIDE and 1 <= width <= MAX_SIDE):
        raise LevelFileError(path, f"holds boards of {height}x{width}; expected 1x1 to {MAX_SIDE}x{MAX_SIDE}")
    return kind, order == b"True", (count, height, width)


def _kind(descr: str) -> np.dtype[Any] | None:
    """What a header calls the kind of its numbers, as numpy's; None where it is none that could be read."""
    try:
        return np.dtype(descr) if _KIND.fullmatch(descr) else None
    except TypeError:
        return None


def _tiles(source: BinaryIO, path: str, kind: np.dtype[Any], count: int, cells: int) -> Iterator[Tokens]:
    """``count`` times ``cells`` numbers as tokens, in parts of some ``count`` each."""
    most = max(1, _BYTES // (cells * kind.itemsize))
    for first in range(0, count, most):
        size = min(most, count - first) * cells * kind.itemsize
        data = source.read(size)
        if len(data) < size:
            raise LevelFileError(path, "is not whole")
        numbers = np.frombuffer(data, kind)
        low, high = numbers.min(), numbers.max()
        if low < 0 or high > MASK:
            raise LevelFileError(
                path, f"holds the number {high if high > MASK else low}; expected tiles, 0 to {MASK}"
            )
        yield numbers.astype(np.uint8, copy=False)
