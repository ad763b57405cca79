"""The lines of a text file, whoever saved it: Windows, an old Mac, with or without a byte order mark."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from ..errors import LevelFileError
from .limits import MAX_LINE


def numbered_lines(source: BinaryIO, path: str) -> Iterator[tuple[int, str]]:
    """Every line with its number, counted from 1; read one by one, so that files of any size pass.

    Text is UTF-8. A line that is not, as in collections from before UTF-8, is taken as Windows-1252.

    >>> list(numbered_lines(io.BytesIO(b"##\\r\\n#@"), "maze.xsb"))
    [(1, '##'), (2, '#@')]
    """
    # surrogateescape keeps the bytes that are no UTF-8, for the second look in _decoded.
    text = io.TextIOWrapper(source, encoding="utf-8", errors="surrogateescape", newline=None)
    try:
        number = 0
        while line := text.readline(MAX_LINE + 2):
            number += 1
            # DOS ends a file with ^Z, printers a page with a form feed.
            line = line.removesuffix("\n").rstrip("\x1a\f")
            if number == 1:
                line = line.removeprefix("\ufeff")
            if len(line) > MAX_LINE:
                raise LevelFileError(path, f"a line of more than {MAX_LINE} characters", number, MAX_LINE + 1)
            if not line.isprintable():
                line = _decoded(line, path, number)
            yield number, line
    finally:
        if not source.closed:  # else a reader that stopped early would hear of it
            text.detach()


def _decoded(line: str, path: str, number: int) -> str:
    if any("\udc80" <= letter <= "\udcff" for letter in line):
        line = line.encode("utf-8", "surrogateescape").decode("cp1252", "replace")
    for column, letter in enumerate(line, 1):
        if letter < " " and letter != "\t":
            what = f"the control character U+{ord(letter):04X}"
            raise LevelFileError(path, f"{what}; expected text, XML or .npz", number, column)
    return line
