"""What is a board in a text file, and what is text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Literal, NamedTuple

from ..errors import LevelFileError
from ..rows import ROW_LETTERS, no_tile
from ..tiles import MAX_SIDE
from .lines import numbered_lines
from .rle import expand

#: A run of row-like lines is a board only if it holds one of these: a line of dots or dashes is text.
BOARD_LETTERS = frozenset("#?@|")

_ENCODED = re.compile(r"(?:[0-9]*[-#@$.*+?_ ]|\|)+")
_COMMENT = re.compile(r"\s*comment\s*:\s*", re.IGNORECASE)
_COMMENT_END = re.compile(r"\s*comment-end\s*:?\s*", re.IGNORECASE)


class Board(NamedTuple):
    """Rows of tiles, and the number of the line where they begin."""

    line: int
    rows: list[str]


class Note(NamedTuple):
    """A line of text: plain, behind ``;``, or between ``Comment:`` and ``Comment-End:``."""

    line: int
    text: str
    kind: Literal["plain", ";", "comment"]
    touches: bool = False  # whether it stands right below a board

    @property
    def blank(self) -> bool:
        """Whether it separates: an empty line, behind ``;`` too."""
        return not self.text.strip() and self.kind != "comment"


def is_row(line: str) -> bool:
    """Whether ``line`` is made of tiles only, plain or run-length encoded.

    >>> [is_row(line) for line in ("#@$.#", "2#@-|4#", "12", "Level 1")]
    [True, True, False, False]
    """
    if ROW_LETTERS.issuperset(line):
        return bool(line.strip())
    # Without a wall or a bar, digits and dots are more likely a number than a row.
    drawn = "#" in line or ("|" in line and not ROW_LETTERS.isdisjoint(line))
    return drawn and _ENCODED.fullmatch(line) is not None


def is_meant_as_row(line: str, below_row: bool) -> bool:
    """Whether a line that is no row was surely meant to be one, so that silence would be wrong.

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
    return _COMMENT_END.fullmatch(line) is not None


def pieces(source: BinaryIO, path: str) -> Iterator[Board | Note]:
    """The boards and lines of text of a file in their order, blank lines too (they separate).

    >>> import io
    >>> [type(piece).__name__ for piece in pieces(io.BytesIO(b"; 1\\n###\\n"), "maze.xsb")]
    ['Note', 'Board']
    """
    run: list[tuple[int, str]] = []  # row-like lines
    rows: list[str] = []  # and the rows they hold
    section: tuple[int, str] | None = None  # line and kind of the Comment: that is open
    for number, line in numbered_lines(source, path):
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
            rows += _rows(line, len(rows), number, path)
            continue
        if kind == "plain" and is_meant_as_row(line, below_row=bool(run)):
            column = _first_wrong(line)
            raise LevelFileError(path, no_tile(line[column]), number, column + 1)
        touches = bool(run) and _is_board(run)
        yield from _closed(run, rows)
        run, rows = [], []
        if _COMMENT.fullmatch(text):
            section = number, kind
        elif not (line.startswith("::") or is_comment_end(text)):
            yield Note(number, text, kind, touches)
    if section and section[1] == "plain":
        raise LevelFileError(path, "a comment without an end; expected a line Comment-End:", section[0])
    yield from _closed(run, rows)


def _without_semicolon(line: str) -> tuple[str, Literal["plain", ";"]]:
    bare = line.lstrip()
    if bare.startswith(";"):
        return bare[1:].removeprefix(" "), ";"
    return line, "plain"


def _rows(line: str, above: int, number: int, path: str) -> list[str]:
    """The rows that one line holds, written out."""
    rows: list[str] = []
    column = 1
    for row in line.removesuffix("|").split("|"):
        if above + len(rows) == MAX_SIDE:
            raise LevelFileError(path, f"more than {MAX_SIDE} rows in a board", number, column)
        rows.append(expand(row, MAX_SIDE, f"more than {MAX_SIDE} cells in a row", path, number, column))
        column += len(row) + 1
    return rows


def _is_board(run: list[tuple[int, str]]) -> bool:
    return any(not BOARD_LETTERS.isdisjoint(line) for _, line in run)


def _closed(run: list[tuple[int, str]], rows: list[str]) -> Iterator[Board | Note]:
    """A run of row-like lines is over: it was a board, or it was text after all."""
    if run and _is_board(run):
        yield Board(run[0][0], rows)
    else:
        yield from (Note(number, line, "plain") for number, line in run)


def _first_wrong(line: str) -> int:
    """Where a row that is none goes wrong: at a letter that is no tile, or a count with nothing to count."""
    wrong = re.search(r"[^-#@$.*+?_ |0-9]|[0-9](?=\||$)", line)
    return wrong.start() if wrong else 0
