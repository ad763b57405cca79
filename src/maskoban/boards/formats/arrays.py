"""Arrays of tokens: ``.npz`` with everything about the levels, and plain ``.npy``.

An ``.npz`` file, which ``numpy.load`` opens, holds

- ``boards``: uint8 ``(n, height, width)``. Levels of several sizes: the cells of all boards one after the other,
  row by row, ``(cells,)``, and
- ``sizes``: uint8 ``(n, 2)``, height and width of each board;
- ``notes``, if any level has a title, author, comment or solution: the bytes of JSON lines, one object a level
  with its index as ``level``, and those of ``title``, ``author``, ``comment``, ``solutions``, ``savegames`` that are
  not empty, and ``solution_names`` and ``savegame_names`` where there are any;
- ``collection``, if anything is known about it: the bytes of a JSON object with ``title``, ``author``, ``email`` and
  ``comment``, without the empty ones.

Whole numbers of any kind are read, and other arrays in the file are ignored. The blocks of packed bits that earlier
versions wrote are read too.
"""

from __future__ import annotations

import io
import lzma
import math
import os
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from tokenize import TokenError
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.collection import COLLECTION_FIELDS, Collection, collection_of
from maskoban.boards.formats import packed
from maskoban.boards.formats.notes import COLUMNS, is_valid, notes_of, parse_json, to_json, with_names
from maskoban.boards.formats.registry import Format, Source, register
from maskoban.boards.level import Level
from maskoban.boards.tiles import (
    MASK,
    MAX_LEVEL_SIDE,
    Tokens,
)
from maskoban.errors import FileError, MaskobanError

_MAGIC = b"\x93NUMPY"
_EXPECTED = "expected whole numbers (n, h, w)"

# Bytes in memory at once. An array in Fortran order is read whole, since its boards are interleaved.
_PART_BYTES = 8_000_000
_MAX_FORTRAN_CELLS = 64_000_000
_MAX_NOTE_BYTES = 10_000_000
_MAX_HEADER_BYTES = 10_000
_MAX_MEMBERS = 100_000

_HEADER = re.compile(
    rb"\{\s*'descr':\s*'([\w<>=|\[\]]{1,20})',\s*'fortran_order':\s*(True|False),"
    rb"\s*'shape':\s*\(([\d,\s]{0,200})\),?\s*\}\s*"
)
_DTYPE = re.compile(r"[<>=|]?[biufcSUO]\d{0,4}")

# What zipfile raises for archives that are damaged or of an unknown kind.
_DAMAGED = (
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


class _Array(NamedTuple):
    """The header of an ``.npy`` file."""

    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]


def write_npy(out: BinaryIO, levels: Iterable[Level]) -> None:
    """The boards of levels of one size, without titles and solutions.

    >>> import io
    >>> write_npy(out := io.BytesIO(), [Level.parse("#@#")])
    >>> np.load(io.BytesIO(out.getvalue())).tolist()
    [[[0, 2, 0]]]
    """
    boards = [level.tokens for level in levels]
    if len({board.shape for board in boards}) > 1:
        raise MaskobanError("levels of several sizes cannot be written as .npy; .npz holds them")
    np.lib.format.write_array(out, np.stack(boards), version=(1, 0), allow_pickle=False)


def read_npy_boards(source: Source) -> Iterator[Tokens]:
    """The boards of an ``.npy`` file in batches.

    >>> import io
    >>> write_npy(out := io.BytesIO(), [Level.parse("#@#")] * 2)
    >>> next(read_npy_boards(Source(io.BytesIO(out.getvalue()), "maze.npy"))).shape
    (2, 1, 3)
    """
    return _boards(source, _read_header(source))


def write_npz(out: BinaryIO, levels: Iterable[Level]) -> None:
    """Levels of any sizes with everything about them.

    >>> import io
    >>> write_npz(out := io.BytesIO(), [Level.parse("#@#")] * 2)
    >>> np.load(io.BytesIO(out.getvalue()))["boards"].shape
    (2, 1, 3)
    """
    sizes = bytearray()
    # The header of an array comes first and needs its length, which is only known after the last level.
    with SpooledTemporaryFile(_PART_BYTES) as cells, SpooledTemporaryFile(_PART_BYTES) as notes:
        collection = collection_of(levels)
        for index, level in enumerate(collection):
            cells.write(level.tokens.tobytes())
            sizes += bytes(level.shape)
            known = notes_of(level)
            if known:
                notes.write(to_json({"level": index, **known}) + b"\n")
        count = len(sizes) // 2
        one_size = sizes == sizes[:2] * count
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, "boards", cells, (count, *sizes[:2]) if one_size else (cells.tell(),))
            if not one_size:
                _add(archive, "sizes", io.BytesIO(sizes), (count, 2))
            if notes.tell():
                _add(archive, "notes", notes, (notes.tell(),))
            header = {name: value for name in COLLECTION_FIELDS if (value := getattr(collection, name))}
            if header:
                text = to_json(header)
                _add(archive, "collection", io.BytesIO(text), (len(text),))


def _add(archive: zipfile.ZipFile, name: str, data: IO[bytes], shape: tuple[int, ...]) -> None:
    """Add so many bytes as an array. The date is fixed, so that equal levels give equal files."""
    member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    member.file_size = math.prod(shape)  # larger files need another header
    data.seek(0)
    with archive.open(member, "w") as out:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(out, header)
        shutil.copyfileobj(data, out, 1 << 20)


def read_npz(source: Source) -> Iterator[Level]:
    """The levels of an ``.npz`` file, in bounded memory.

    >>> import io
    >>> write_npz(out := io.BytesIO(), [Level.parse("#@#")])
    >>> [str(level) for level in read_npz(Source(out, "maze.npz"))]
    ['#@#']
    """
    with Archive(source) as archive:
        if archive.blocks:
            yield from packed.read_levels(archive)
            return
        source.collection = archive.read_collection()
        notes = archive.read_notes()
        note = next(notes, None)
        index = 0
        for batch in archive.read_boards():
            for board in batch:
                known: dict[str, Any] = {}
                if note and note["level"] == index:
                    known = {name: note[name] for name in COLUMNS if name in note}
                    note = next(notes, None)
                if source.collection.author:
                    known.setdefault("author", source.collection.author)
                yield archive.level(board, known, f"level {index + 1}")
                index += 1
        if note:
            raise source.error(
                f"notes about level {note['level']}; expected levels 0 to {index - 1} in order"
            )


def read_npz_boards(source: Source) -> Iterator[Tokens]:
    """The boards of an ``.npz`` file in batches of one size each.

    >>> import io
    >>> write_npz(out := io.BytesIO(), [Level.parse("#@#")])
    >>> next(read_npz_boards(Source(out, "maze.npz"))).shape
    (1, 1, 3)
    """
    with Archive(source) as archive:
        if not archive.blocks:
            yield from archive.read_boards()
        for k in range(archive.blocks):
            sizes, boards = packed.read_block(archive, k)
            if (sizes != sizes[0]).any():
                raise source.error("boards of several sizes; expected one size")
            yield boards


def npz_has_metadata(source: Source) -> bool:
    """Whether any level has more than a board."""
    with Archive(source) as archive:
        return "notes.npy" in archive.members or any(
            packed.read_notes(archive, k) for k in range(archive.blocks)
        )


def extra_array(path: str | os.PathLike[str], name: str, max_numbers: int) -> NDArray[Any] | None:
    """Another array in an ``.npz`` file of boards; None if there is none.

    >>> extra_array("maze.xsb", "probabilities", 100)
    """
    if not os.path.isfile(path) or not zipfile.is_zipfile(path):  # a pipe can be read only once
        return None
    member = f"{name}.npy"
    try:
        with zipfile.ZipFile(path) as archive:
            if member not in archive.namelist():
                return None
            if archive.getinfo(member).file_size > 8 * max_numbers + _MAX_HEADER_BYTES:
                raise ValueError(f"it is larger than {max_numbers} numbers")
            with archive.open(member) as file:
                array: NDArray[Any] = np.lib.format.read_array(file)
                return array
    except (*_DAMAGED, MemoryError, SyntaxError, TokenError) as error:
        raise FileError(os.fspath(path), f"{name} cannot be unpacked ({error})") from None


def _read_header(source: Source) -> _Array:
    """The header of an ``.npy`` file, read without evaluating it."""
    start = source.file.read(8)
    length = int.from_bytes(source.file.read(2 if start[6:7] == b"\x01" else 4), "little")
    header = None
    if start.startswith(_MAGIC) and length <= _MAX_HEADER_BYTES:
        header = _HEADER.fullmatch(source.file.read(length))
    if header is None:
        raise source.error(f"has a header that is not read; {_EXPECTED}")
    descr = header[1].decode("latin-1")
    sides = re.findall(rb"\d+", header[3])
    shape = tuple(int(side) for side in sides if len(side) < 19)
    try:
        dtype = np.dtype(descr) if _DTYPE.fullmatch(descr) else None
    except TypeError:
        dtype = None
    if dtype is None or dtype.kind not in "iu" or len(shape) < len(sides):
        raise source.error(f"holds {descr if dtype is None else dtype} of shape {shape}; {_EXPECTED}")
    return _Array(dtype, header[2] == b"True", shape)


def _boards(source: Source, array: _Array) -> Iterator[Tokens]:
    """The boards of an array (n, h, w), or of one board (h, w), in batches."""
    if len(array.shape) not in (2, 3):
        raise source.error(f"holds {array.dtype} of shape {array.shape}; {_EXPECTED}")
    count, height, width = array.shape if len(array.shape) == 3 else (1, *array.shape)
    if not (1 <= height <= MAX_LEVEL_SIDE and 1 <= width <= MAX_LEVEL_SIDE):
        raise source.error(
            f"holds boards of {height}x{width}; expected 1x1 to {MAX_LEVEL_SIDE}x{MAX_LEVEL_SIDE}"
        )
    cells = height * width
    if array.fortran:
        if count * cells > _MAX_FORTRAN_CELLS:
            problem = f"holds more than {_MAX_FORTRAN_CELLS:,} cells in Fortran order; expected C order"
            raise source.error(problem)
        parts = list(_tokens(source, array.dtype, count * cells, 1))
        if parts:
            yield np.ascontiguousarray(np.concatenate(parts).reshape(width, height, count).T)
        return
    for tokens in _tokens(source, array.dtype, count, cells):
        yield tokens.reshape(-1, height, width)


def _tokens(source: Source, dtype: np.dtype[Any], count: int, cells: int) -> Iterator[Tokens]:
    """``count`` times ``cells`` numbers, checked, in parts of some ``count`` each."""
    most = max(1, _PART_BYTES // (cells * dtype.itemsize))
    for first in range(0, count, most):
        size = min(most, count - first) * cells * dtype.itemsize
        data = source.file.read(size)
        if len(data) < size:
            raise source.error("is not whole")
        numbers = np.frombuffer(data, dtype)
        low, high = numbers.min(), numbers.max()
        if low < 0 or high > MASK:
            wrong = high if high > MASK else low
            raise source.error(f"holds the number {wrong}; expected tiles, 0 to {MASK}")
        yield numbers.astype(np.uint8, copy=False)


class Archive:
    """An ``.npz`` file. Every member is checked before it is used."""

    def __init__(self, source: Source) -> None:
        self.source = source
        try:
            self.zip = zipfile.ZipFile(source.file)
            members = self.zip.infolist()
        except _DAMAGED as error:
            raise source.error(f"not a whole .npz file ({error})") from None
        if len(members) > _MAX_MEMBERS:
            raise source.error(f"{len(members)} members in the archive; expected at most {_MAX_MEMBERS}")
        self.members = {member.filename: member for member in members}
        #: Number of blocks that an earlier version wrote.
        self.blocks = 0
        if "boards.npy" not in self.members:
            self.blocks = sum(name.endswith(".planes.npy") for name in self.members)
            if not self.blocks:
                raise source.error("no array named boards in the archive; expected an .npz file with levels")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.zip.close()

    @contextmanager
    def open(self, name: str) -> Iterator[Source]:
        """A member of the archive."""
        if f"{name}.npy" not in self.members:
            raise self.source.error(f"no {name} in the archive")
        try:
            with self.zip.open(self.members[f"{name}.npy"]) as file:
                yield Source(file, self.source.path, name)
        except MaskobanError:
            raise
        except _DAMAGED as error:
            raise self.source.error(f"{name} cannot be unpacked ({error})") from None

    def level(self, board: Tokens, known: dict[str, Any], where: str) -> Level:
        """A level with what the notes say about it."""
        try:
            return Level(board, **with_names(known))
        except MaskobanError as error:
            raise self.source.error(f"{where}: {error}") from None

    def read_boards(self) -> Iterator[Tokens]:
        """Batches of boards of one size, in order."""
        with self.open("boards") as source:
            array = _read_header(source)
            if len(array.shape) != 1 or "sizes.npy" not in self.members:
                yield from _boards(source, array)
                return
            for height, width in self._read_sizes():
                yield from _boards(source, _Array(array.dtype, False, (1, height, width)))

    def _read_sizes(self) -> Iterator[tuple[int, int]]:
        with self.open("sizes") as source:
            array = _read_header(source)
            if array.dtype != np.uint8 or array.shape[1:] != (2,) or array.fortran:
                raise source.error("is not an array (n, 2) of bytes")
            for _ in range(array.shape[0]):
                pair = source.file.read(2)
                if len(pair) < 2:
                    raise source.error("is not whole")
                yield pair[0], pair[1]

    def read_notes(self) -> Iterator[dict[str, Any]]:
        """What is known about levels, in their order."""
        if "notes.npy" not in self.members:
            return
        with self.open("notes") as source:
            _read_header(source)
            while line := source.file.readline(_MAX_NOTE_BYTES):
                note = parse_json(line)
                if not isinstance(note, dict) or type(note.get("level")) is not int:
                    raise source.error("is not the JSON lines that maskoban writes")
                if not all(is_valid(name, note[name]) for name in COLUMNS if name in note):
                    raise source.error("is not the JSON lines that maskoban writes")
                yield note

    def read_collection(self) -> Collection:
        """What is known about all levels."""
        if "collection.npy" not in self.members:
            return Collection()
        with self.open("collection") as source:
            _read_header(source)
            found = parse_json(source.file.read(_MAX_NOTE_BYTES))
            if not isinstance(found, dict) or not all(is_valid("title", value) for value in found.values()):
                raise source.error("is not the JSON that maskoban writes")
            known = {name: found[name] for name in COLLECTION_FIELDS if name in found}
            try:
                return Collection((), **known)
            except MaskobanError as error:
                raise source.error(str(error)) from None

    def read_bytes(self, name: str) -> bytes:
        """The content of a member that is a one-dimensional array of bytes."""
        with self.open(name) as source:
            size = self.members[f"{name}.npy"].file_size
            if size > _MAX_NOTE_BYTES:
                raise source.error(f"unpacks to {size} bytes; expected at most {_MAX_NOTE_BYTES}")
            array = _read_header(source)
            if array.dtype != np.uint8 or len(array.shape) != 1:
                raise source.error("is not a one-dimensional array of bytes")
            data = source.file.read(min(array.shape[0], size))  # a member may hold more than it says
            if len(data) < array.shape[0]:
                raise source.error("is not whole")
            return data


def _levels_of(source: Source) -> Iterator[Level]:
    return (Level(board) for batch in read_npy_boards(source) for board in batch)


register(
    Format(
        "npz",
        suffixes=[".npz"],
        sniff=lambda head: head.startswith((b"PK\x03\x04", b"PK\x05\x06")),
        read=read_npz,
        write=write_npz,
        read_boards=read_npz_boards,
        has_metadata=npz_has_metadata,
        is_text=False,
        seeks=True,
    )
)
register(
    Format(
        "npy",
        suffixes=[".npy"],
        sniff=lambda head: head.startswith(_MAGIC),
        read=_levels_of,
        write=write_npy,
        read_boards=read_npy_boards,
        has_metadata=lambda source: False,
        is_text=False,
    )
)
