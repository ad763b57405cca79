"""Compact ``.npz``: many boards in few bytes, about 17 a board of Boxoban.

A file is a zip of one-dimensional ``uint8`` arrays, in blocks of up to 100,000 levels and eight million
cells. Block k has

- ``k.sizes``: height and width of every level, or of all of them once if they are the same;
- ``k.planes``: four bits a cell (wall, box or player, goal, player), one plane after the other, each cell
  by cell with its bit of every board in turn, for a cell that is wall on all boards then costs nothing.
  Boards are padded to the largest of the block; wall and player-or-box together mean MASK;
- ``k.notes``: JSON with the columns ``title``, ``author``, ``comment``, ``solutions`` that are not empty.

What ``numpy.savez(file, boards=boards)`` writes, one array of tokens as in ``npy``, is read too.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from tokenize import TokenError
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import LevelFileError, MaskobanError
from ..level import Level
from ..tiles import BOX, BOX_ON_GOAL, FLOOR, GOAL, MASK, MAX_SIDE, PLAYER, PLAYER_ON_GOAL, WALL, Tokens
from .limits import MAX_MEMBER_BYTES, MAX_MEMBERS
from .npy import MAGIC, MAX_HEADER, boards_of_npy

# The most a block holds: what a reader needs to have in memory at once.
_LEVELS = 100_000
_CELLS = 8_000_000
_LETTERS = 1_000_000
_PLANES = 4
_NO_TOKEN = 255

#: Which of the planes (wall 1, player or box 2, goal 4, player 8) hold a token.
_BITS = np.zeros(8, np.uint8)
_BITS[[WALL, FLOOR, PLAYER, BOX, GOAL, BOX_ON_GOAL, PLAYER_ON_GOAL, MASK]] = [1, 0, 10, 2, 4, 6, 14, 3]
_TOKEN = np.full(16, _NO_TOKEN, np.uint8)
_TOKEN[_BITS] = np.arange(8)

# What zipfile raises on archives that are damaged or of a kind it does not read.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)

_COLUMNS = ("title", "author", "comment", "solutions")
_PLAIN = "boards.npy"
_HEADER = re.compile(rb"\{'descr': '\|u1', 'fortran_order': False, 'shape': \((\d{1,12}),\), \} *\n")


def write_npz(out: BinaryIO, levels: Iterable[Level]) -> None:
    """Levels of any sizes, with all that is known about them.

    >>> import io
    >>> write_npz(out := io.BytesIO(), [Level.parse("#@#")])
    >>> sorted(np.load(io.BytesIO(out.getvalue())))
    ['0.notes', '0.planes', '0.sizes']
    """
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for k, block in enumerate(_blocks(levels)):
            sizes = np.array([level.shape for level in block], np.uint8)
            height, width = (int(side) for side in sizes.max(axis=0))
            boards = np.zeros((len(block), height, width), np.uint8)
            for board, level in zip(boards, block, strict=True):
                board[: level.height, : level.width] = level.tokens
            same = bool((sizes == sizes[0]).all())
            count = np.frombuffer(struct.pack("<I", len(block)), np.uint8)
            _add(archive, f"{k}.sizes", np.concatenate([count, (sizes[:1] if same else sizes).ravel()]))
            _add(archive, f"{k}.planes", _packed(boards))
            _add(archive, f"{k}.notes", np.frombuffer(_notes(block), np.uint8))


def read_npz(source: BinaryIO, path: str) -> Iterator[Level]:
    """The levels of an ``.npz`` file, one after the other; holds one block in memory at a time.

    >>> import io
    >>> write_npz(out := io.BytesIO(), [Level.parse("#@#")])
    >>> [str(level) for level in read_npz(out, "maze.npz")]
    ['#@#']
    """
    with _Archive(source, path) as archive:
        yield from (Level(board) for part in archive.plain_boards() for board in part)
        for k in range(archive.blocks):
            sizes, boards = archive.boards(k)
            notes = archive.notes(k, len(boards))
            for i, (board, (height, width)) in enumerate(zip(boards, sizes, strict=True)):
                try:
                    yield Level(board[:height, :width], **{name: column[i] for name, column in notes.items()})
                except MaskobanError as error:
                    raise LevelFileError(path, f"level {i + 1} of block {k}: {error}") from None


def boards_of_npz(source: BinaryIO, path: str) -> Iterator[Tokens]:
    """The boards ``(n, h, w)`` of each block, for collections of one size.

    >>> import io
    >>> write_npz(out := io.BytesIO(), [Level.parse("#@#")])
    >>> next(boards_of_npz(out, "maze.npz")).shape
    (1, 1, 3)
    """
    with _Archive(source, path) as archive:
        yield from archive.plain_boards()
        for k in range(archive.blocks):
            sizes, boards = archive.boards(k)
            if (sizes != sizes[0]).any():
                raise LevelFileError(path, "boards of several sizes; expected one size")
            yield boards


def npz_has_notes(source: BinaryIO, path: str) -> bool:
    """Whether anything is known of any level but its board.

    >>> import io
    >>> write_npz(out := io.BytesIO(), [Level.parse("#@#")])
    >>> npz_has_notes(out, "maze.npz")
    False
    """
    with _Archive(source, path) as archive:
        return any(archive.has_notes(k) for k in range(archive.blocks))


def array_beside(path: str | os.PathLike[str], name: str, most: int) -> NDArray[Any] | None:
    """Another array of at most ``most`` numbers in an ``.npz`` file beside its ``boards``; None where there is none.

    >>> array_beside("maze.xsb", "probabilities", 100)
    """
    if not os.path.isfile(path) or not zipfile.is_zipfile(path):  # a pipe is read only once
        return None
    member = f"{name}.npy"
    try:
        with zipfile.ZipFile(path) as archive:
            if member not in archive.namelist():
                return None
            if archive.getinfo(member).file_size > 8 * most + MAX_HEADER:
                raise ValueError(f"it is larger than {most} numbers")
            with archive.open(member) as file:
                array: NDArray[Any] = np.lib.format.read_array(file)
                return array
    except (*_BROKEN, MemoryError, SyntaxError, TokenError) as error:
        raise LevelFileError(os.fspath(path), f"{name} cannot be unpacked ({error})") from None


def _blocks(levels: Iterable[Level]) -> Iterator[list[Level]]:
    block: list[Level] = []
    height = width = letters = 0
    for level in levels:
        height, width = max(height, level.height), max(width, level.width)
        letters += len(level.title) + len(level.author) + len(level.comment) + sum(map(len, level.solutions))
        full = (len(block) + 1) * height * width > _CELLS or letters > _LETTERS or len(block) == _LEVELS
        if block and full:
            yield block
            block, height, width, letters = [], level.height, level.width, 0
        block.append(level)
    if block:
        yield block


def _packed(boards: Tokens) -> Tokens:
    cells = _BITS[boards.reshape(len(boards), -1).T]  # (cell, board)
    return np.concatenate([np.packbits(cells >> plane & 1, axis=1).ravel() for plane in range(_PLANES)])


def _unpacked(planes: Tokens, count: int, height: int, width: int) -> Tokens:
    bits = np.unpackbits(planes.reshape(_PLANES, height * width, -1), axis=2, count=count)
    cells = sum((bits[plane] << np.uint8(plane) for plane in range(1, _PLANES)), bits[0])
    return np.ascontiguousarray(_TOKEN[cells].T).reshape(count, height, width)


def _notes(block: list[Level]) -> bytes:
    columns = {name: [getattr(level, name) for level in block] for name in _COLUMNS}
    filled = {name: column for name, column in columns.items() if any(column)}
    return json.dumps(filled, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _is_note(name: str, entry: object) -> bool:
    if name == "solutions":
        return isinstance(entry, list) and all(isinstance(text, str) for text in entry)
    return isinstance(entry, str)


def _add(archive: zipfile.ZipFile, name: str, array: Tokens) -> None:
    # A date of its own would make two files with the same levels differ.
    member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(member, "w") as out:
        np.lib.format.write_array(out, array, version=(1, 0), allow_pickle=False)


class _Archive:
    """The members of an ``.npz`` file, each checked before it is believed."""

    def __init__(self, source: BinaryIO, path: str) -> None:
        self.path = path
        try:
            self.zip = zipfile.ZipFile(source)
            members = self.zip.infolist()
        except _BROKEN as error:
            raise self._fail(f"not a whole .npz file ({error})") from None
        if len(members) > MAX_MEMBERS:
            raise self._fail(f"{len(members)} members in the archive; expected at most {MAX_MEMBERS}")
        self.members = {member.filename: member for member in members}
        self.blocks = sum(name.endswith(".planes.npy") for name in self.members)
        if not self.blocks and _PLAIN not in self.members:
            raise self._fail(
                "no boards in the archive; expected an .npz file that maskoban wrote, or an array boards"
            )

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.zip.close()

    def plain_boards(self) -> Iterator[Tokens]:
        """The boards of an archive that holds them as one plain array, a part at a time; nothing where not."""
        if _PLAIN not in self.members:
            return
        try:
            with self.zip.open(self.members[_PLAIN]) as file:
                yield from boards_of_npy(cast(BinaryIO, file), self.path)
        except LevelFileError as error:
            raise self._fail(f"boards {error.problem}") from None
        except _BROKEN as error:
            raise self._fail(f"boards cannot be unpacked ({error})") from None

    def boards(self, k: int) -> tuple[Tokens, Tokens]:
        """Sizes ``(n, 2)`` and boards ``(n, h, w)`` of block ``k``, padded to the largest."""
        packed = self._array(f"{k}.sizes")
        if len(packed) < 6:
            raise self._fail(f"{k}.sizes is too short")
        count = int(struct.unpack("<I", packed[:4].tobytes())[0])
        sizes = packed[4:]
        if (
            len(sizes) not in (2, 2 * count)
            or not 1 <= count <= _LEVELS
            or sizes.min() < 1
            or sizes.max() > MAX_SIDE
        ):
            raise self._fail(f"{k}.sizes does not hold {count} sizes of 1 to {MAX_SIDE}")
        sizes = sizes.reshape(-1, 2)
        height, width = (int(side) for side in sizes.max(axis=0))
        planes = self._array(f"{k}.planes")
        if len(planes) != _PLANES * height * width * -(-count // 8) or count * height * width > _CELLS:
            raise self._fail(f"{k}.planes does not hold {count} boards of {height}x{width}")
        boards = _unpacked(planes, count, height, width)
        if (boards == _NO_TOKEN).any():
            raise self._fail(f"{k}.planes holds a cell that is no tile")
        return np.broadcast_to(sizes, (count, 2)), boards

    def notes(self, k: int, count: int) -> dict[str, list[Any]]:
        """The columns of text of block ``k``, each ``count`` long."""
        try:
            columns = json.loads(self._array(f"{k}.notes").tobytes())
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            columns = None
        if not isinstance(columns, dict) or not all(
            name in _COLUMNS
            and isinstance(column, list)
            and len(column) == count
            and all(_is_note(name, entry) for entry in column)
            for name, column in columns.items()
        ):
            raise self._fail(f"{k}.notes is not the JSON that maskoban writes")
        return columns

    def has_notes(self, k: int) -> bool:
        """Whether block ``k`` has any text."""
        return self._array(f"{k}.notes").tobytes() != b"{}"

    def _array(self, name: str) -> Tokens:
        """A member that is a one-dimensional ``uint8`` array; its header is read without evaluating it."""
        member = self.members.get(f"{name}.npy")
        if member is None:
            raise self._fail(f"no {name} in the archive")
        if member.file_size > MAX_MEMBER_BYTES:
            raise self._fail(
                f"{name} unpacks to {member.file_size} bytes; expected at most {MAX_MEMBER_BYTES}"
            )
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._fail(f"{name} is packed in a way that is not read; expected deflate")
        try:
            with self.zip.open(member) as file:
                data = file.read(member.file_size)  # without a number, what lies beyond is unpacked too
        except _BROKEN as error:
            raise self._fail(f"{name} cannot be unpacked ({error})") from None
        start = 10 + int.from_bytes(data[8:10], "little")
        header = _HEADER.fullmatch(data, 10, start) if data[:8] == MAGIC else None
        if header is None or int(header[1]) != len(data) - start:
            raise self._fail(f"{name} is not a one-dimensional array of bytes")
        return np.frombuffer(data, np.uint8, offset=start)

    def _fail(self, problem: str) -> LevelFileError:
        return LevelFileError(self.path, problem)
