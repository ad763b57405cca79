"""The registry of file formats: one registration makes a format readable, writable and convertible.

register(Format("sok", suffixes=[".sok"], read=read_text, write=write_sok))
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import IO, Any, BinaryIO

from maskoban._util.registry import Registry
from maskoban.boards.collection import Collection
from maskoban.boards.level import Level
from maskoban.boards.tiles import MAX_LEVEL_SIDE, Tokens
from maskoban.errors import FileError


class LevelFileWarning(UserWarning):
    """Something in a level file that is not as it should be, and was read all the same or skipped."""


#: Warnings about one file; what is wrong more often is wrong everywhere.
MAX_WARNINGS = 100


@dataclass
class Source:
    """A file that is being read.

    ``path`` and ``part`` (a member of an archive) are used in error messages; ``line`` is the number of the first
    line in ``file``. ``tiles`` gives the tiles that other letters stand for, as ``str.translate`` takes it; a board
    with a side longer than ``max_side`` is beyond the limit. ``on_warning`` gets every warning; without it they are
    Python's warnings. A ``strict`` reader raises instead. A reader sets ``collection`` before its first level.
    """

    file: IO[bytes]
    path: str
    part: str = ""
    line: int = 1
    strict: bool = False
    tiles: dict[int, str] = field(default_factory=dict)
    max_side: int = MAX_LEVEL_SIDE
    on_warning: Callable[[FileError], None] | None = None
    collection: Collection = field(default_factory=Collection)
    #: What was wrong first: it is the error of a file without a level.
    problem: FileError | None = None
    warned: int = 0

    def error(self, problem: str, line: int | None = None, column: int | None = None) -> FileError:
        """An error that names this file."""
        return FileError(self.path, f"{self.part} {problem}".lstrip(), line, column)

    def warn(self, error: FileError, what: str = "") -> None:
        """Warn of an error that a lenient reader goes on after; ``what`` says what it does. Strict: raise it."""
        if self.strict:
            raise error
        self.problem = self.problem or error
        self.warned += 1
        if self.warned > MAX_WARNINGS:
            return
        more = "; more warnings about this file are left out" if self.warned == MAX_WARNINGS else ""
        warning = FileError(self.path, f"{what}{error.problem}{more}", error.line, error.column)
        if self.on_warning:
            self.on_warning(warning)
        else:
            warnings.warn(str(warning), LevelFileWarning, stacklevel=2)


@dataclass(frozen=True)
class Format:
    """How one kind of file is recognised, read and written.

    ``write`` gets levels, or a ``Collection``, which gives its levels like any other iterable.
    ``sniff`` takes the first bytes of a file. A format without it is recognised by its suffix only. The optional
    ``read_boards`` is a faster way to the boards alone, in batches ``(n, h, w)``; ``has_metadata`` is a fast check
    whether a file holds more than boards.
    """

    name: str
    read: Callable[[Source], Iterator[Level]]
    write: Callable[[BinaryIO, Iterable[Level]], None]
    suffixes: Sequence[str] = ()
    sniff: Callable[[bytes], bool] | None = None
    read_boards: Callable[[Source], Iterator[Tokens]] | None = None
    has_metadata: Callable[[Source], bool] | None = None
    is_text: bool = True
    seeks: bool = False  # whether reading needs a file that can seek; a pipe is copied into one


FORMATS: Registry[Format] = Registry("format")


def register(format: Format) -> None:
    """Add a format to all functions and commands that read or write levels."""
    FORMATS.register(format.name, format)


def by_suffix(name: str) -> Format | None:
    """The format with the suffix of this file name."""
    suffix = PurePath(name).suffix.lower()
    return next((FORMATS[each] for each in FORMATS if suffix in FORMATS[each].suffixes), None)


def suffixes() -> list[str]:
    """The suffixes of all formats.

    >>> suffixes()[:3]
    ['.xsb', '.txt', '.sok']
    """
    return [suffix for name in FORMATS for suffix in FORMATS[name].suffixes]


def detect(head: bytes, name: str = "") -> Format:
    """The format of a file with this beginning and name: by content, then by suffix, else plain text.

    >>> detect(b"PK\\x03\\x04").name, detect(b"<?xml ").name, detect(b"; 0\\n#####\\n").name
    ('npz', 'slc', 'xsb')
    """
    for each in FORMATS:
        sniff = FORMATS[each].sniff
        if sniff and sniff(head):
            return FORMATS[each]
    named = by_suffix(name)
    return named if named and not named.sniff else FORMATS["xsb"]


class Prefixed(io.RawIOBase):
    """A file from its beginning, after its head was read."""

    def __init__(self, head: bytes, pipe: io.BufferedReader) -> None:
        self._head, self._pipe = head, pipe

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        data = self._head[: len(into)] or self._pipe.read1(len(into))
        self._head = self._head[len(into) :]
        into[: len(data)] = data
        return len(data)
