"""The lines of a text file, and which of them are boards."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from maskoban.boards.formats.registry import Source
from maskoban.boards.tiles import MAX_SIDE, ROW_LETTERS, no_tile

#: A run of row-like lines is a board only if it holds one of these: a line of dots or dashes is text.
BOARD_LETTERS = frozenset("#?@|")

_MAX_LINE = 200_000
_MAX_TEXT_LINES = 150_000  # between two boards
_ENCODED = re.compile(r"(?:[0-9]*[-#@$.*+?_ ]|\|)+")
_DIGIT = re.compile("[0-9]")
_RUN = re.compile("([0-9]*)([^0-9])")
_WRONG = re.compile(r"[^-#@$.*+?_ |0-9]|[0-9](?=\||$)")  # no tile, or a count of nothing


class Board(NamedTuple):
    """Rows of tiles, and the number of their first line."""

    line: int
    rows: list[str]


class Note(NamedTuple):
    """A line of text: plain, behind ``;``, or between ``Comment:`` and ``Comment-End:``."""

    line: int
    text: str
    kind: Literal["plain", ";", "comment"]
    below_board: bool = False  # directly below a board

    @property
    def blank(self) -> bool:
        """Whether it separates: an empty line, behind ``;`` too."""
        return not self.text.strip() and self.kind != "comment"


def is_row(line: str) -> bool:
    """Whether ``line`` consists of tiles, plain or run-length encoded.

    >>> [is_row(line) for line in ("#@$.#", "2#@-|4#", "12", "Level 1")]
    [True, True, False, False]
    """
    if ROW_LETTERS.issuperset(line):
        return bool(line.strip())
    # Without a wall or a bar, digits and dots are more likely a number than a row.
    drawn = "#" in line or ("|" in line and not ROW_LETTERS.isdisjoint(line))
    return drawn and _ENCODED.fullmatch(line) is not None


def is_meant_as_row(line: str, below_row: bool) -> bool:
    """Whether a line that is no row was surely meant as one, so that it must not be taken for text.

    >>> is_meant_as_row("#  x #", below_row=False), is_meant_as_row("Number #1", below_row=False)
    (True, False)
    """
    text = line.strip()
    if below_row:
        return text.startswith("#") or text.endswith("#")
    return text.startswith("##") or (len(text) > 1 and text.startswith("#") and text.endswith("#"))


def is_comment_end(line: str) -> bool:
    """Whether ``line`` closes a comment.

    >>> is_comment_end("Comment-End:")
    True
    """
    return _without_colon(line) == "comment-end"


def boards_and_notes(source: Source) -> Iterator[Board | Note]:
    """The boards and lines of text of a file in order, blank lines too, because they separate.

    >>> text = io.BytesIO(b"; 1\\n###\\n")
    >>> [type(piece).__name__ for piece in boards_and_notes(Source(text, "maze.xsb"))]
    ['Note', 'Board']
    """
    run: list[tuple[int, str]] = []  # row-like lines
    rows: list[str] = []  # and the rows they hold
    section: tuple[int, str] | None = None  # line and kind of the Comment: that is open
    last_row = source.line
    for number, line in numbered_lines(source):
        if number - last_row > _MAX_TEXT_LINES:
            raise source.error("too much text between two boards", number)
        text, kind = _without_semicolon(line)
        if section and section[1] == ";" and kind == "plain":
            section = None  # a comment behind ";" ends with the last ";"
        if section:
            if is_comment_end(text if section[1] == ";" else line):
                section = None
            else:
                yield Note(number, text if section[1] == ";" else line, "comment")
            continue
        if kind == "plain" and is_row(line):
            run.append((number, line))
            last_row = number
            rows += _rows(line, len(rows), number, source)
            continue
        if kind == "plain" and is_meant_as_row(line, below_row=bool(run)):
            wrong = _WRONG.search(line)
            column = wrong.start() if wrong else 0
            raise source.error(no_tile(line[column]), number, column + 1)
        below_board = bool(run) and _is_board(run)
        yield from _finished(run, rows)
        run, rows = [], []
        if text.strip().endswith(":") and _without_colon(text) == "comment":
            section = number, kind
        elif not (line.startswith("::") or is_comment_end(text)):
            yield Note(number, text, kind, below_board)
    if section and section[1] == "plain":
        raise source.error("a comment without an end; expected a line Comment-End:", section[0])
    yield from _finished(run, rows)


def numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Every line with its number, counted from 1, read one by one.

    Text is UTF-8. A line that is not, as in old collections, is decoded as Windows-1252.

    >>> list(numbered_lines(Source(io.BytesIO(b"##\\r\\n#@"), "maze.xsb")))
    [(1, '##'), (2, '#@')]
    """
    # surrogateescape keeps the bytes that are no UTF-8 for _decoded.
    text = io.TextIOWrapper(source.file, encoding="utf-8", errors="surrogateescape", newline=None)
    try:
        number = source.line
        while line := text.readline(_MAX_LINE + 2):
            # DOS ends a file with ^Z, printers a page with a form feed.
            line = line.removesuffix("\n").rstrip("\x1a\f")
            if number == 1:
                line = line.removeprefix("\ufeff")
            if len(line) > _MAX_LINE:
                raise source.error(f"a line of more than {_MAX_LINE} characters", number, _MAX_LINE + 1)
            if not line.isprintable():
                line = _decoded(line, number, source)
            yield number, line
            number += 1
    finally:
        if not source.file.closed:
            text.detach()


def expand(text: str, limit: int, what: str, source: Source, line: int, column: int = 1) -> str:
    """``text`` without run lengths: ``3#2-$`` is ``###--$``. More than ``limit`` letters are an error.

    A run is at most as long as the side of a board, in moves too: so a short text never becomes a huge one.

    >>> expand("3#2-$", 64, "cells in a row", Source(io.BytesIO(), "maze.sok"), line=1)
    '###--$'
    """
    if len(text) <= limit and not _DIGIT.search(text):
        return text
    runs, total = [], 0
    for run in _RUN.finditer(text):
        digits, letter = run.groups()
        # The length of a count is checked before its value, which might have a million digits.
        count = limit + 1 if len(digits) > 9 else int(digits or 1)
        total += count
        if count > MAX_SIDE < limit:
            raise source.error(f"a run of more than {MAX_SIDE} {what}", line, column + run.start())
        if total > limit:
            raise source.error(f"more than {limit} {what}", line, column + run.start())
        runs.append(letter * count)
    return "".join(runs)


def _decoded(line: str, number: int, source: Source) -> str:
    if any("\udc80" <= letter <= "\udcff" for letter in line):
        line = line.encode("utf-8", "surrogateescape").decode("cp1252", "replace")
    for column, letter in enumerate(line, 1):
        if letter < " " and letter != "\t":
            problem = f"the control character U+{ord(letter):04X}; expected text, XML or .npz"
            raise source.error(problem, number, column)
    return line


def _without_colon(line: str) -> str:
    return line.strip().removesuffix(":").rstrip().lower()


def _without_semicolon(line: str) -> tuple[str, Literal["plain", ";"]]:
    bare = line.lstrip()
    if bare.startswith(";"):
        return bare[1:].removeprefix(" "), ";"
    return line, "plain"


def _rows(line: str, above: int, number: int, source: Source) -> list[str]:
    """The rows of one line, run lengths written out."""
    rows: list[str] = []
    column = 1
    for row in line.removesuffix("|").split("|"):
        if above + len(rows) == MAX_SIDE:
            raise source.error(f"more than {MAX_SIDE} rows in a board", number, column)
        rows.append(expand(row, MAX_SIDE, "cells in a row", source, number, column))
        column += len(row) + 1
    return rows


def _is_board(run: list[tuple[int, str]]) -> bool:
    return any(not BOARD_LETTERS.isdisjoint(line) for _, line in run)


def _finished(run: list[tuple[int, str]], rows: list[str]) -> Iterator[Board | Note]:
    """A run of row-like lines has ended: it is a board, or text after all."""
    if run and _is_board(run):
        yield Board(run[0][0], rows)
    else:
        yield from (Note(number, line, "plain") for number, line in run)
