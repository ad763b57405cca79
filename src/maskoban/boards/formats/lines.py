"""The lines of a text file, and which of them are boards.

A lenient reader takes for a board what can hardly be text (``is_drawn``), and warns where it goes on in spite of an
error. A strict reader raises the error.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from maskoban.boards.formats.registry import Source
from maskoban.boards.level import is_control
from maskoban.boards.tiles import MAX_LEVEL_SIDE, ROW_LETTERS, no_tile
from maskoban.errors import FileError

#: A strict reader takes a run of row-like lines for a board if it holds one of these.
BOARD_LETTERS = frozenset("#?@|")

_MAX_LINE = 200_000
_MAX_TEXT_LINES = 150_000  # between two boards
_MAX_TEXT_LETTERS = 4_000_000
_MAX_CONTROLS = 16  # in a file; more are no slip
_MAX_WRONG_LETTERS = 4  # different ones in a damaged board; a frame around text has more
_LOOK_AHEAD_LINES, _LOOK_AHEAD_LETTERS = 50_000, 1_000_000

_ENCODED = re.compile(r"(?:[0-9]+[-#@$.*+?_]|[-#@$.*+?_ |])+")  # a number before a blank is one of a text
_DIGIT = re.compile("[0-9]")
_RUN = re.compile("([0-9]*)([^0-9])")
_WRONG = re.compile(r"[^-#@$.*+?_ |0-9]|[0-9](?=\||$)")  # no tile, or a count of nothing
_OTHER_TILES = 'for files with other letters: maskoban convert --tiles "wall=x,box=o,player=y"'


class Board(NamedTuple):
    """Rows of tiles, and the number of their first line; ``problem`` is why they are none."""

    line: int
    rows: Sequence[str]
    problem: FileError | None = None


class Note(NamedTuple):
    """A line of text: plain, behind ``;``, or between ``Comment:`` and ``Comment-End:``."""

    line: int
    text: str
    kind: Literal["plain", ";", "comment"]
    below_board: bool = False  # directly below a board

    @property
    def blank(self) -> bool:
        """Whether it separates: an empty line, behind ``;`` too."""
        return self.kind != "comment" and not self.text.strip()


def is_row(line: str) -> bool:
    """Whether ``line`` consists of tiles, plain or run-length encoded.

    >>> [is_row(line) for line in ("#@$.#", "2#@-|4#", "12", "Level 1", "| # | @ |")]
    [True, True, False, False, False]
    """
    if ROW_LETTERS.issuperset(line):
        return bool(line.strip())
    if line.lstrip().startswith("|") or " | " in line:  # the row of a table
        return False
    # Without a wall or a bar, digits and dots are more likely a number than a row.
    drawn = "#" in line or ("|" in line and not ROW_LETTERS.isdisjoint(line))
    return drawn and _ENCODED.fullmatch(line) is not None


def is_drawn(rows: Sequence[str]) -> bool:
    """Whether rows of tiles are a board and no text: a player beside a wall, a box or MASK, or a closed frame.

    >>> [is_drawn(rows) for rows in (["@$."], ["###", "#?#"], ["#####"], ["#", "# ...", "#"], ["+---+"])]
    [True, True, False, False, False]
    """
    text = "".join(rows)
    players = text.count("@") + text.count("+")
    if players == 1 and "@" in text:
        return len(text) > 2 and ("#" in text or "$" in text or "?" in text)  # $@ alone is Perl
    if ("$" not in text and "?" not in text) or len(rows) < 2:
        return False
    bare = [row.strip(" -_") for row in rows]
    return all(len(row) > 1 and row[0] in "#?" and row[-1] in "#?" for row in bare if row)


def is_meant_as_row(line: str, below_row: bool) -> bool:
    """Whether a strict reader refuses a line that is no row, because it was surely meant as one.

    >>> is_meant_as_row("#  x #", below_row=False), is_meant_as_row("Number #1", below_row=False)
    (True, False)
    """
    text = line.strip()
    if below_row:
        return text.startswith("#") or text.endswith("#")
    return text.startswith("##") or _is_framed(text)


def is_heading(line: str, word: str) -> bool:
    """Whether ``line`` is this word with a colon.

    >>> is_heading(" Comment: ", "comment"), is_heading("Comment", "comment")
    (True, False)
    """
    bare = line.strip()
    return bare.endswith(":") and bare[:-1].rstrip().lower() == word


def begins_comment(line: str) -> bool:
    """Whether ``line`` begins a comment, of one line or of more.

    >>> begins_comment("Comment: easy"), begins_comment("No comment: easy")
    (True, False)
    """
    return line.lstrip().lower().startswith("comment:")


def is_comment_end(line: str) -> bool:
    """Whether ``line`` closes a comment.

    >>> [is_comment_end(line) for line in ("Comment-End:", "Comment_end", "Comment End:")]
    [True, True, True]
    """
    return _end_word(line) in ("comment-end", "comment_end", "comment end")


def boards_and_notes(source: Source) -> Iterator[Board | Note]:
    """The boards and lines of text of a file in order, blank lines too, because they separate.

    >>> text = io.BytesIO(b"; 1\\n#@$.#\\n")
    >>> [type(piece).__name__ for piece in boards_and_notes(Source(text, "maze.xsb"))]
    ['Note', 'Board']
    """
    lines = Lines(source)
    run: list[str] = []  # lines of a board, or of what looks like one
    first = 0  # number of the first of them
    plain = True  # neither run lengths nor wrong letters in them
    mark: list[Note] = []  # the line Board: directly above
    # What the line above is made of, if that may be the wall of other letters; None below the first board.
    wall: str | None = ""
    try:
        for number, line in lines:
            if ROW_LETTERS.issuperset(line) and line.strip():
                if not run:
                    first = number
                run.append(line)
                continue
            text, kind = _without_semicolon(line)
            drawn = source.tiles or "#" in line or "|" in line
            if drawn and kind == "plain" and _may_be_row(line, bool(run), source, number):
                if not run:
                    first = number
                run.append(line)
                plain = False
                continue
            below_board = False
            if run or mark:
                for piece in _pieces(run, first, plain, mark, source):
                    yield piece
                    below_board = isinstance(piece, Board)
                    if below_board:
                        lines.restart(number)
                        wall = None
                run, plain, mark = [], True, []
            if wall is not None:
                wall = _other_wall(line, wall, number, source)
            note = Note(number, text, kind, below_board)
            if ":" not in line and "end" not in line.lower():
                yield note
            elif is_heading(text, "comment"):
                yield from _comment(lines, number, kind, source)
            elif is_heading(text, "board"):
                mark = [note]
            elif not (line.startswith("::") or is_comment_end(text)):
                yield note
        yield from _pieces(run, first, plain, mark, source)
    finally:
        lines.close()


class Lines:
    """Every line with its number, read one by one; lines can be given once more.

    Text is UTF-8. A line that is not, as in old collections, is decoded as Windows-1252.

    >>> list(Lines(Source(io.BytesIO(b"##\\r\\n#@"), "maze.xsb")))
    [(1, '##'), (2, '#@')]
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        # surrogateescape keeps the bytes that are no UTF-8 for _decoded.
        self._text = io.TextIOWrapper(source.file, encoding="utf-8", errors="surrogateescape", newline=None)
        self._number = source.line
        self._again: list[tuple[int, str]] = []  # the last first
        self._controls = 0
        self.restart(source.line)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        source, readline = self._source, self._text.readline
        while True:
            if self._again:
                yield self._again.pop()
                continue
            line = readline(_MAX_LINE + 2)
            if not line:
                return
            if line[-1] == "\n":
                line = line[:-1]
            if line[-1:] in "\x1a\f":  # DOS ends a file with ^Z, printers a page with a form feed
                line = line.rstrip("\x1a\f")
            number = self._number
            if number == 1:
                line = line.removeprefix("\ufeff")
            if len(line) > _MAX_LINE:
                raise source.error(f"a line of more than {_MAX_LINE} characters", number, _MAX_LINE + 1)
            self._letters += len(line)
            if number > self._last or self._letters > _MAX_TEXT_LETTERS:
                raise source.error("too much text between two boards", number)
            if not line.isprintable():
                line = self._decoded(line, number)
            self._number = number + 1
            yield number, line

    def restart(self, number: int) -> None:
        """A board ended above this line: the text below it may have the whole of its bounds."""
        self._last, self._letters = number + _MAX_TEXT_LINES, 0

    def again(self, lines: list[tuple[int, str]]) -> None:
        """Give these lines once more."""
        self._again += reversed(lines)

    def close(self) -> None:
        """Leave the file open, which the text would close."""
        if not self._source.file.closed:
            self._text.detach()

    def _decoded(self, line: str, number: int) -> str:
        if any("\udc80" <= letter <= "\udcff" for letter in line):
            line = line.encode("utf-8", "surrogateescape").decode("cp1252", "replace")
        wrong = [column for column, letter in enumerate(line) if is_control(letter)]
        if self._source.strict:
            wrong = [column for column in wrong if line[column] < " "]
        for column in wrong:
            self._controls += 1
            what = f"the control character U+{ord(line[column]):04X}; expected text, XML or .npz"
            error = self._source.error(what, number, column + 1)
            if self._controls > _MAX_CONTROLS:
                raise error
            self._source.warn(error, "replaced: ")
            line = f"{line[:column]}\ufffd{line[column + 1 :]}"
        return line


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
        if count > MAX_LEVEL_SIDE < limit:
            raise source.error(f"a run of more than {MAX_LEVEL_SIDE} {what}", line, column + run.start())
        if total > limit:
            raise source.error(f"more than {limit} {what}", line, column + run.start())
        runs.append(letter * count)
    return "".join(runs)


def without_rulers(rows: Sequence[str]) -> tuple[int, int]:
    """Where the rows of a board begin and end, if lines like ``-----`` are drawn above and below it.

    A row of one letter that is no wall is such a line if it is longer than the others. One of floor may be shorter
    too: it would add a row outside of the walls.

    >>> without_rulers(["-------", "####", "#@$.#"]), without_rulers(["----", "-@$-", "----"])
    ((1, 3), (0, 3))
    """
    start, end = 0, len(rows)
    if not rows or ("#" in rows[0] and "#" in rows[-1]):
        return start, end
    width = max((len(row) for row in rows if len(set(row)) > 1), default=0)
    while start < end and _is_ruler(rows[start], width):
        start += 1
    while start < end and _is_ruler(rows[end - 1], width):
        end -= 1
    return start, end


def _is_ruler(row: str, width: int) -> bool:
    longer = len(row) > width or (row[0] in "-_" and len(row) < width)
    return longer and len(row) > 2 and row[0] not in "#?" and row == row[0] * len(row)


def _pieces(run: list[str], first: int, plain: bool, mark: list[Note], source: Source) -> list[Board | Note]:
    """What these lines of tiles are: a board, perhaps with rulers around it, or text after all."""
    start, end = (0, len(run)) if mark or source.strict else without_rulers(run)
    board = _board(run[start:end], first + start, plain, bool(mark), source) if start < end else None
    if board and end - start == len(run):
        return [board]
    lines = [Note(first + i, row, "plain") for i, row in enumerate(run)]
    return [*lines[:start], board, *lines[end:]] if board else [*mark, *lines]


def _board(run: list[str], first: int, plain: bool, marked: bool, source: Source) -> Board | None:
    """The board that these lines draw; None if they are text after all."""
    if source.tiles:
        run = [line.translate(source.tiles) for line in run]
        plain = all(map(ROW_LETTERS.issuperset, run))
    if not plain and not source.strict and any("@" in line for line in run):
        run = _without_tabs(run)
    if not plain:
        wrong = next((i for i, line in enumerate(run) if not is_row(line)), None)
        if wrong is not None:
            return _damaged(run, first, wrong, source)
    drawn = marked or (_is_drawn_strictly(run) if source.strict else is_drawn(run))
    rows: list[str] = run
    try:
        if not plain:
            rows = [row for i, line in enumerate(run) for row in _rows(line, first + i, source)]
            drawn = drawn or is_drawn(rows)
        if not drawn or (source.tiles and not marked and not any("#" in row for row in rows)):
            return None  # words can be made of the letters of any tiles, but not without a wall
        if len(rows) > source.max_side:
            line = first + source.max_side if plain else first
            raise source.error(f"more than {source.max_side} rows in a board", line, 1)
        for i, row in enumerate(rows):
            if len(row) > source.max_side:
                raise source.error(
                    f"more than {source.max_side} cells in a row", first + i, source.max_side + 1
                )
    except FileError as error:
        return Board(first, [], error) if drawn else None
    return Board(first, rows)


def _without_tabs(run: list[str]) -> list[str]:
    """Rows without the tabs before and behind all of them."""
    tabs = min(len(line) - len(line.lstrip("\t")) for line in run)
    return [line[tabs:].rstrip("\t") for line in run]


def _is_drawn_strictly(run: list[str]) -> bool:
    return any(not BOARD_LETTERS.isdisjoint(line) for line in run)


def _rows(line: str, number: int, source: Source) -> Iterator[str]:
    """The rows of one line, run lengths written out."""
    column = 1
    for row in line.removesuffix("|").split("|"):
        yield expand(row, source.max_side, "cells in a row", source, number, column)
        column += len(row) + 1


def _damaged(run: list[str], first: int, wrong: int, source: Source) -> Board | None:
    """A board with letters that are no tiles, which cannot be read; None if these lines rather frame a text."""
    letters = {letter for line in run for letter in _WRONG.findall(line)}
    if len(run) < 2 or len(letters) > _MAX_WRONG_LETTERS:
        return None
    column = next(iter(_WRONG.finditer(run[wrong]))).start()
    letter = run[wrong][column]
    hint = "" if letter == "\t" else f"; {_OTHER_TILES}"
    return Board(first, [], source.error(no_tile(letter) + hint, first + wrong, column + 1))


def _may_be_row(line: str, below_row: bool, source: Source, number: int) -> bool:
    """Whether a line that is no plain row belongs to a board all the same: encoded, in other letters, or damaged."""
    if source.tiles and is_row(line.translate(source.tiles)):
        return True
    if is_row(line):
        return True
    if source.strict and is_meant_as_row(line, below_row):
        wrong = _WRONG.search(line)
        column = wrong.start() if wrong else 0
        raise source.error(no_tile(line[column]), number, column + 1)
    return _is_framed(line.strip()) and _WRONG.search(line) is not None


def _other_wall(line: str, wall: str, number: int, source: Source) -> str:
    """The letter this line consists of, if it may be a wall; below such a wall, a row is an error of its file."""
    bare = line.strip()
    if len(bare) < 3:
        return ""
    if wall and bare[0] == bare[-1] == wall and source.problem is None and not source.strict:
        source.problem = source.error(f"{no_tile(wall)}; {_OTHER_TILES}", number, line.index(wall) + 1)
    return bare[0] if bare[0].isalnum() and bare == bare[0] * len(bare) else ""


def _is_framed(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == "#"


def _comment(lines: Lines, heading: int, kind: Literal["plain", ";"], source: Source) -> Iterator[Note]:
    """The lines of a comment behind its heading."""
    if kind == ";":  # it ends with the last ";" at the latest
        for number, line in lines:
            text, kind = _without_semicolon(line)
            if kind == "plain":
                lines.again([(number, line)])
            if kind == "plain" or is_comment_end(text):
                return
            yield Note(number, text, "comment")
        return
    taken: list[tuple[int, str]] = []
    letters = 0
    run: list[str] = []  # rows
    board: int | None = None  # where the first board begins
    for number, line in lines:
        if is_comment_end(line):
            yield from (Note(number, line, "comment") for number, line in taken)
            return
        taken.append((number, line))
        letters += len(line)
        if board is None:
            if is_row(line):
                run.append(line)
                continue
            if is_drawn(run):
                board = len(taken) - 1 - len(run)
            run = []
        # Another comment, or too much of anything, below a board: the end was forgotten.
        too_much = len(taken) > _LOOK_AHEAD_LINES or letters > _LOOK_AHEAD_LETTERS
        if board is not None and (too_much or begins_comment(line)):
            break
    if board is None and is_drawn(run):
        board = len(taken) - len(run)
    source.warn(source.error("a comment without an end; expected a line Comment-End:", heading))
    if board is not None:
        end = _above_block([line for _, line in taken[:board]])
        lines.again(taken[end:])
        del taken[end:]
    yield from (Note(number, line, "comment") for number, line in taken)


def _above_block(above: list[str]) -> int:
    """Where a comment without an end ends: above the lines that belong to the board below; else at the board."""
    start = len(above)
    while start and above[start - 1].strip():
        start -= 1
    end = start or len(above)
    while end and not above[end - 1].strip():
        end -= 1
    return end


def _end_word(line: str) -> str:
    return line.strip().removesuffix(":").rstrip().lower()


def _without_semicolon(line: str) -> tuple[str, Literal["plain", ";"]]:
    bare = line.lstrip()
    if bare.startswith(";"):
        return bare[1:].removeprefix(" "), ";"
    return line, "plain"
