"""Levels in files: whichever of the formats, found by looking into the file and not at its name."""

from __future__ import annotations

import io
import itertools
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .errors import LevelFileError, MaskobanError
from .formats.boxoban import A_FILE, boards_of_text, write_boxoban
from .formats.npy import boards_of_npy, read_npy, write_npy
from .formats.npz import boards_of_npz, npz_has_notes, read_npz, write_npz
from .formats.slc import read_slc, write_slc
from .formats.text import read_text
from .formats.xsb import write_sok, write_xsb
from .level import Level
from .opening import TO_LEVELS, detect, opened
from .tiles import Tokens
from .writing import check_place, said, whole_file


@dataclass(frozen=True)
class Format:
    """How a kind of file is read and written."""

    read: Callable[[BinaryIO, str], Iterator[Level]]
    write: Callable[[BinaryIO, Iterable[Level]], None]


#: Every format by its name. The three text formats differ in how they are written; one reader takes all.
FORMATS = {
    "xsb": Format(read_text, write_xsb),
    "sok": Format(read_text, write_sok),
    "boxoban": Format(read_text, write_boxoban),
    "slc": Format(read_slc, write_slc),
    "npz": Format(read_npz, write_npz),
    "npy": Format(read_npy, write_npy),
}

#: Which format an ending asks for when writing; and the files of a folder that are read.
ENDINGS = {".xsb": "xsb", ".txt": "xsb", ".sok": "sok", ".slc": "slc", ".npz": "npz", ".npy": "npy"}

# A line behind ; that is more than a number.
_NOTE = re.compile(rb"^;(?! *\d* *\r?$)", re.MULTILINE)
_NO_LEVEL = "no level in it; expected at least one board"


def stream(path: str | os.PathLike[str], format: str | None = None) -> Iterator[Level]:
    """The levels of a file one after the other, however large it is; "-" is standard input.

    A folder stands for the level files in it, in the order of their names. What cannot be read raises
    ``LevelFileError`` when the reading gets there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/two.sok", [Level.parse("#@#"), Level.parse("#+#")])
    ...     [str(level) for level in stream(folder + "/two.sok")]
    ['#@#', '#+#']
    """
    reader = _format(format).read if format else None
    for name in _files(os.fspath(path)):
        count = 0
        with opened(name) as (source, head):
            for level in (reader or FORMATS[detect(head)].read)(source, name):
                count += 1
                yield level
        if not count:
            raise LevelFileError(name, _NO_LEVEL)


def read(path: str | os.PathLike[str], format: str | None = None) -> list[Level]:
    """All levels of a file, of a folder of level files, or of standard input ("-").

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/one.xsb", [Level.parse("#@#")])
    ...     read(folder + "/one.xsb")[0].shape
    (1, 3)
    """
    return list(stream(path, format))


def read_boards(path: str | os.PathLike[str]) -> Tokens:
    """The boards ``(n, h, w)`` of a collection of one size, without their titles: the fast way to many.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/two.xsb", [Level.parse("#@#"), Level.parse("#+#")])
    ...     read_boards(folder + "/two.xsb").shape
    (2, 1, 3)
    """
    parts: list[Tokens] = []
    for name in _files(os.fspath(path)):
        before = len(parts)
        for boards in _boards(name):
            if parts and boards.shape[1:] != parts[0].shape[1:]:
                sizes = [f"{h}x{w}" for h, w in (parts[0].shape[1:], boards.shape[1:])]
                raise LevelFileError(name, f"boards of {sizes[0]} and of {sizes[1]}; expected one size")
            parts.append(boards)
        if len(parts) == before:
            raise LevelFileError(name, _NO_LEVEL)
    return np.concatenate(parts)


def has_notes(path: str | os.PathLike[str]) -> bool:
    """Whether a collection has more than boards, and than the numbers that Boxoban gives them: titles and the like.

    It is yes also where only reading the levels would tell.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/one.xsb", [Level.parse("#@#")])
    ...     write(folder + "/two.xsb", [Level(Level.parse("#@#").tokens, title="two")])
    ...     has_notes(folder + "/one.xsb"), has_notes(folder + "/two.xsb")
    (False, True)
    """
    return any(_file_has_notes(name) for name in _files(os.fspath(path)))


def write(
    path: str | os.PathLike[str], levels: Iterable[Level] | Level | Tokens, format: str | None = None
) -> None:
    """Write levels, or a batch of boards, in the format that is asked for or that the ending names.

    The file appears whole or not at all. "-" is standard output, in XSB unless asked otherwise. A folder
    (one that is there, or a name that ends with "/") is filled with Boxoban files of a thousand boards; one
    that holds level files already is refused, for the two sets would be read as one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/one.slc", [Level.parse("#@#")])
    ...     os.listdir(folder)
    ['one.slc']
    """
    name = os.fspath(path)
    given = [levels] if isinstance(levels, Level) else levels
    each = (level if isinstance(level, Level) else Level(level) for level in given)
    first = next(each, None)
    if first is None:
        raise MaskobanError(f"no levels to write to {name}")
    rest = itertools.chain([first], each)
    if _is_folder(name):
        _write_folder(name, rest, format)
        return
    writer = _format(format or _ending(name)).write
    if name == "-":
        if sys.stdout is None:
            raise LevelFileError("-", "standard output is closed")
        writer(sys.stdout.buffer, rest)
        sys.stdout.buffer.flush()
        return
    with whole_file(name) as out:
        writer(out, rest)


def check_writable(path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise now what :func:`write` would say later about the name, the format or the place.

    >>> check_writable("boards.doc")
    Traceback (most recent call last):
        ...
    maskoban.boards.errors.MaskobanError: boards.doc: which format? expected a name that ends with .xsb, ...
    """
    name = os.fspath(path)
    if _is_folder(name):
        _check_folder(name, format)
        return
    _format(format or _ending(name))
    if name != "-":
        check_place(name)


def _is_folder(name: str) -> bool:
    return name != "-" and (name.endswith(("/", os.sep)) or os.path.isdir(name))


def _check_folder(folder: str, format: str | None) -> None:
    """Refuse a folder that could not be filled, or whose own levels would be lost or mixed with new ones."""
    if format not in (None, "boxoban"):
        raise MaskobanError(f"{folder}: a folder holds Boxoban files, not {format}; expected a file name")
    there = Path(folder)
    with said(folder, "written"):
        held = level_files(folder) if there.is_dir() else []
        if held:
            first = os.path.basename(held[0])
            raise LevelFileError(folder, f"there are levels in this folder already ({first}); expected none")
        while not there.exists():
            there = there.parent
        with tempfile.TemporaryFile(dir=there):
            pass


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise MaskobanError(f"no format is called {name!r}; expected one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _ending(name: str) -> str:
    if name == "-":
        return "xsb"
    ending = Path(name).suffix.lower()
    if ending not in ENDINGS:
        raise MaskobanError(f"{name}: which format? expected a name that ends with {', '.join(ENDINGS)} or /")
    return ENDINGS[ending]


def _files(name: str) -> list[str]:
    """The files that ``name`` stands for."""
    if name == "-" or not os.path.isdir(name):
        return [name]
    with said(name, "read"):
        files = level_files(name)
    if not files:
        _check_no_dataset(name)
        raise LevelFileError(
            name, f"no level files in this folder; expected names that end with {', '.join(ENDINGS)}"
        )
    return files


def _check_no_dataset(folder: str) -> None:
    """Say what to do with a folder that `maskoban bulk` made, or with the Parquet files in it."""
    if os.path.isfile(os.path.join(folder, "job.json")):
        raise LevelFileError(folder, f"a dataset; {TO_LEVELS} {folder} levels.sok makes a level file of it")
    if any(Path(folder).glob("*.parquet")):
        raise LevelFileError(folder, f"a folder of Parquet files; {TO_LEVELS} makes level files of a dataset")


def level_files(folder: str) -> list[str]:
    """The files of a folder that are read as levels, in the order of their names."""
    files = sorted(entry.path for entry in os.scandir(folder) if entry.is_file())
    return [file for file in files if Path(file).suffix.lower() in ENDINGS]


def _boards(name: str) -> Iterator[Tokens]:
    """The boards of one file, in batches of one size each."""
    with opened(name) as (source, head):
        kind = detect(head)
        if kind == "npz":
            yield from boards_of_npz(source, name)
            return
        if kind == "npy":
            yield from boards_of_npy(source, name)
            return
        if kind == "xsb":
            data = source.read()
            boards = boards_of_text(data)
            if boards is not None:
                yield boards
                return
            source = io.BytesIO(data)
        levels = list(FORMATS[kind].read(source, name))
        for _, group in itertools.groupby(levels, key=lambda level: level.shape):
            yield np.stack([level.tokens for level in group])


def _file_has_notes(name: str) -> bool:
    with opened(name) as (source, head):
        kind = detect(head)
        if kind == "npz":
            return npz_has_notes(source, name)
        if kind == "xsb":
            data = source.read()
            return _NOTE.search(data) is not None or boards_of_text(data) is None
        return kind != "npy"


def _write_folder(folder: str, levels: Iterator[Level], format: str | None) -> None:
    """Fill a folder with files; they appear there together, when the last is written."""
    _check_folder(folder, format)
    with said(folder, "written"):
        os.makedirs(folder, exist_ok=True)
        part = tempfile.mkdtemp(suffix=".part", prefix=".", dir=folder)
    try:
        for number in itertools.count():
            thousand = list(itertools.islice(levels, A_FILE))
            if not thousand:
                break
            with said(folder, "written"), open(os.path.join(part, f"{number:03}.txt"), "wb") as out:
                write_boxoban(out, thousand)
        with said(folder, "written"):
            for file in os.listdir(part):
                os.replace(os.path.join(part, file), os.path.join(folder, file))
    finally:
        shutil.rmtree(part)
