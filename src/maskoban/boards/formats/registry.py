"""The registry of file formats: one registration makes a format readable, writable and convertible.

register(Format("sok", suffixes=[".sok"], read=read_text, write=write_sok))
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, Any, BinaryIO

from maskoban._util.registry import Registry
from maskoban.boards.level import Level
from maskoban.boards.tiles import Tokens
from maskoban.errors import FileError


@dataclass
class Source:
    """A file that is being read.

    ``path`` and ``part`` (a member of an archive) are used in error messages; ``line`` is the number of the first
    line in ``file``.
    """

    file: IO[bytes]
    path: str
    part: str = ""
    line: int = 1

    def error(self, problem: str, line: int | None = None, column: int | None = None) -> FileError:
        """An error that names this file."""
        return FileError(self.path, f"{self.part} {problem}".lstrip(), line, column)


@dataclass(frozen=True)
class Format:
    """How one kind of file is recognised, read and written.

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
