"""Levels as text: XSB, ``.sok`` and Boxoban are written differently and read by one reader.

A board is a run of lines made of tiles (``lines.py`` separates boards from text). The text around boards is plain or
behind ``;``:

- a block of lines directly above a board, or a single line above it, belongs to that board and begins with its
  title; all other text belongs to the board before it;
- ``Title:``, ``Author:``, ``Comment:`` and ``Solution`` with its moves below have their meaning; everything else is
  comment, so that nothing is lost.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import BinaryIO, cast

import numpy as np

from maskoban.boards.formats.lines import (
    BOARD_LETTERS,
    Board,
    Note,
    boards_and_notes,
    expand,
    is_comment_end,
    is_meant_as_row,
    is_row,
)
from maskoban.boards.formats.registry import Format, Prefixed, Source, register
from maskoban.boards.geometry import group_by_shape
from maskoban.boards.level import MAX_MOVES, MAX_SOLUTIONS, Level
from maskoban.boards.tiles import FLOOR, MASK, MAX_SIDE, NO_TILE, TOKEN_OF, WALL, Tokens, parse_rows
from maskoban.errors import MaskobanError

_MAX_NOTE_LETTERS = 4_000_000  # between two boards
_CHUNK_BYTES = 4_000_000
_LEVELS_AT_ONCE = 1000
_MOVES_A_LINE = 100

_KEY = re.compile(r"(title|author|comment|solution)\s*:\s?(.*)", re.IGNORECASE)
_SOLUTION = re.compile(r"solution(?:[ /][^:]*)?:?", re.IGNORECASE)
_MOVES = re.compile(r"(?:[0-9]*[lurd]\s*)+", re.IGNORECASE)
# A line behind ; that is more than a number. *+ gives nothing back, so the time is linear.
_NOTE = re.compile(rb"^;(?! *+\d*+ *+\r?$)", re.MULTILINE)


def read_text(source: Source) -> Iterator[Level]:
    """The levels of a text file; one of them is in memory at a time.

    >>> [level.title for level in read_text(Source(io.BytesIO(b"; 7\\n###\\n#@#\\n###\\n"), "maze.xsb"))]
    ['7']
    """
    board: Board | None = None
    text = _LevelText()
    default_author = ""
    gap: list[Note] = []
    letters = 0
    for piece in boards_and_notes(source):
        if isinstance(piece, Note):
            if piece.blank and gap and gap[-1].blank:
                continue
            gap.append(piece)
            letters += len(piece.text)
            if letters > _MAX_NOTE_LETTERS:
                raise source.error("too much text between two boards", piece.line)
            continue
        below, above = _split(gap)
        text.add(below, source, has_title=False)
        if board:
            yield text.level(board, default_author, source)
            text = _LevelText()
        else:
            # Above the first board, the author is that of the collection.
            default_author, text.author = text.author, ""
        text.add(above, source, has_title=True)
        board, gap, letters = piece, [], 0
    if board:
        text.add(gap, source, has_title=False)
        yield text.level(board, default_author, source)


def _split(gap: list[Note]) -> tuple[list[Note], list[Note]]:
    """The text between two boards: what belongs to the upper board, and what to the lower one."""
    end = len(gap)
    while end and gap[end - 1].blank:
        end -= 1
    start = end
    while start and not gap[start - 1].blank:
        start -= 1
    block = gap[start:end]
    directly_above = end == len(gap)
    single = len(block) == 1 and not block[0].below_board and block[0].kind != "comment"
    if block and (directly_above or (single and not _is_key(block[0].text))):
        return gap[:start], block
    return gap, []


def _is_key(text: str) -> bool:
    return bool(_KEY.fullmatch(text.strip()) or _SOLUTION.fullmatch(text.strip()))


@dataclass
class _LevelText:
    """What the text around one board says about it."""

    title: str = ""
    author: str = ""
    comment: list[str] = field(default_factory=list)
    solutions: list[str] = field(default_factory=list)

    def level(self, board: Board, default_author: str, source: Source) -> Level:
        try:
            tokens, author = parse_rows(board.rows), self.author or default_author
            return Level(tokens, self.title, author, "\n".join(self.comment), tuple(self.solutions))
        except MaskobanError as error:
            raise source.error(str(error), board.line) from None

    def add(self, notes: list[Note], source: Source, has_title: bool) -> None:
        """Add ``notes``; if one ``has_title``, the first line without another meaning is it."""
        i = 0
        while i < len(notes):
            note, i = notes[i], i + 1
            key = _KEY.fullmatch(note.text.lstrip()) if note.kind != "comment" else None
            name, value = (key[1].lower(), key[2]) if key else ("", "")
            if note.blank:
                if self.comment and self.comment[-1]:
                    self.comment.append("")
            elif note.kind == "comment":
                self.comment.append(note.text)
            elif name == "title" and not self.title:
                self.title = value
            elif name == "author" and not self.author:
                self.author = value
            elif name == "comment":
                self.comment.append(value)
            elif name == "solution" and _MOVES.fullmatch(value.strip()):
                i = self._add_moves(notes, i, value, source)
            elif _SOLUTION.fullmatch(note.text.strip()) and _is_moves(notes, i):
                i = self._add_moves(notes, i, "", source)
            elif not name and not self.title and (has_title or (note.below_board and note.kind == ";")):
                self.title = note.text
            else:
                self.comment.append(note.text)

    def _add_moves(self, notes: list[Note], i: int, begun: str, source: Source) -> int:
        """Add a solution: the moves on the line of its heading, and all lines of moves from note ``i`` on."""
        if len(self.solutions) == MAX_SOLUTIONS:
            raise source.error(f"more than {MAX_SOLUTIONS} solutions of one level", notes[i - 1].line)
        lines = [(begun, notes[i - 1].line)]
        while _is_moves(notes, i):
            lines.append((notes[i].text, notes[i].line))
            i += 1
        moves: list[str] = []
        total = 0
        for text, line in lines:
            moves.append(expand("".join(text.split()), MAX_MOVES, "moves in a solution", source, line))
            total += len(moves[-1])
            if total > MAX_MOVES:
                raise source.error(f"more than {MAX_MOVES} moves in a solution", line)
        self.solutions.append("".join(moves))
        return i


def _is_moves(notes: list[Note], i: int) -> bool:
    return i < len(notes) and notes[i].kind != "comment" and bool(_MOVES.fullmatch(notes[i].text.strip()))


def read_text_boards(source: Source) -> Iterator[Tokens]:
    """The boards of a text file in batches of one size each, fast as long as the file is regular."""
    for chunk, boards in _regular_chunks(source):
        if boards is not None:
            yield boards
            continue
        rest = io.BufferedReader(Prefixed(chunk, cast(io.BufferedReader, source.file)))
        levels = read_text(replace(source, file=rest))
        while batch := [level.tokens for level in islice(levels, _LEVELS_AT_ONCE)]:
            yield from (boards for _, boards in group_by_shape(batch))
        return


def text_has_metadata(source: Source) -> bool:
    """Whether a text file is more than boards and their numbers."""
    return any(boards is None or _NOTE.search(chunk) for chunk, boards in _regular_chunks(source))


def _regular_chunks(source: Source) -> Iterator[tuple[bytes, Tokens | None]]:
    """A text file in chunks that end between boards, each with its boards, or None if it is not regular.

    ``source.line`` is the number of the first line of the chunk.
    """
    rest = source.file.read(_CHUNK_BYTES).removeprefix(b"\xef\xbb\xbf")
    while rest:
        more = source.file.read(_CHUNK_BYTES)
        data = rest + more
        end = max(map(data.rfind, (b"\n\n", b"\n\r\n", b"\n;"))) + 1 if more else len(data)
        boards = regular_boards(data[:end]) if end else None
        yield (data if boards is None else data[:end]), boards
        source.line += data.count(b"\n", 0, end)
        rest = data[end:]


def regular_boards(data: bytes) -> Tokens | None:
    """The boards ``(n, h, w)`` of a text as regular as Boxoban's, or None if it is not.

    Regular: lines behind ``;``, blank lines, and boards of one size in plain tiles, nothing else.

    >>> regular_boards(b"; 0\\n###\\n#@#\\n\\n; 1\\n#.#\\n#@#\\n\\n").shape
    (2, 2, 3)
    >>> regular_boards(b"Level 1\\n###\\n") is None
    True
    """
    letters = np.frombuffer(data.replace(b"\r\n", b"\n") + b"\n\n", np.uint8)
    if ((letters < ord(" ")) & (letters != ord("\n"))).any():
        return None
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts
    is_board_row = (lengths > 0) & (letters[starts] != ord(";"))
    rows = np.flatnonzero(is_board_row)
    if len(rows) == 0:
        return None
    width = int(lengths[rows[0]])
    # A board ends where the next line is no row; the last line is none, because two newlines were added.
    heights = np.diff(np.flatnonzero(~is_board_row[rows + 1]), prepend=-1)
    height = int(heights[0])
    if not (lengths[rows] == width).all() or not (heights == height).all():
        return None
    if not (1 <= height <= MAX_SIDE and width <= MAX_SIDE):
        return None
    boards = TOKEN_OF[letters[starts[rows][:, None] + np.arange(width)]].reshape(-1, height, width)
    # What read_text would take for text, or for a blank line, is left to it.
    drawn = ((boards == WALL) | (boards == MASK)).any(axis=(1, 2)).all()
    blank = (boards == FLOOR).all(axis=2).any()
    if not drawn or blank or (boards == NO_TILE).any():
        return None
    return boards


def write_text(out: BinaryIO, levels: Iterable[Level], prefix: str) -> None:
    """Levels with a blank line between them: title, board, author, comment, solutions; text behind ``prefix``.

    >>> write_text(out := io.BytesIO(), [Level.parse("#@#"), Level.parse("#+#")], prefix="; ")
    >>> out.getvalue()
    b'#@#\\n\\n#+#\\n'
    """
    for i, level in enumerate(levels):
        above, below = _text_around(level)
        lines = [""] if i else []
        lines += [f"{prefix}{line}".rstrip() if prefix else line for line in above]
        lines += _board_lines(level)
        if below and not prefix:
            lines.append("")
        lines += [f"{prefix}{line}".rstrip() if prefix else line for line in below]
        out.write(("\n".join(lines) + "\n").encode("utf-8"))


def write_boxoban(out: BinaryIO, levels: Iterable[Level]) -> None:
    """Boards under ``; N`` and nothing else; N is the title if that is a number, else counted from 0.

    >>> write_boxoban(out := io.BytesIO(), [Level.parse("#@#")])
    >>> out.getvalue()
    b'; 0\\n#@#\\n\\n'
    """
    for i, level in enumerate(levels):
        number = level.title if level.title.isascii() and level.title.isdigit() else str(i)
        out.write(("\n".join([f"; {number}", *_board_lines(level)]) + "\n\n").encode("ascii"))


def _board_lines(level: Level) -> list[str]:
    """The rows; on one line with ``|`` where a reader might take them for dots and dashes."""
    text = str(level)
    if BOARD_LETTERS.isdisjoint(text):
        return [text.replace(" ", "-").replace("\n", "|") + "|"]
    return text.split("\n")


def _text_around(level: Level) -> tuple[list[str], list[str]]:
    """The lines above the board and those below it."""
    above, below = [], []
    if level.title and _can_stand_above(level.title):
        above.append(level.title)
    elif level.title:
        below.append(f"Title: {level.title}")
    if level.author:
        below.append(f"Author: {level.author}")
    below += _comment_lines(level.comment)
    for moves in level.solutions:
        below.append("Solution")
        below += [moves[i : i + _MOVES_A_LINE] for i in range(0, len(moves), _MOVES_A_LINE)]
    return above, below


def _can_stand_above(title: str) -> bool:
    """Whether a title above the board, perhaps on the first line of the file, is read as a title."""
    special = title.startswith((";", "::", "<", "\ufeff")) or _is_key(title) or is_comment_end(title)
    return not (special or is_row(title) or is_meant_as_row(title, below_row=False))


def _comment_lines(comment: str) -> Iterator[str]:
    if not comment:
        return
    yield "Comment:"
    for line in comment.split("\n"):
        if is_comment_end(line):
            yield from ("Comment-End:", f"Comment: {line}", "Comment:")
        else:
            yield line
    yield "Comment-End:"


for _name, _suffixes, _write in (
    ("xsb", [".xsb", ".txt"], partial(write_text, prefix="; ")),
    ("sok", [".sok"], partial(write_text, prefix="")),
    ("boxoban", [], write_boxoban),
):
    register(
        Format(
            _name,
            suffixes=_suffixes,
            read=read_text,
            write=_write,
            read_boards=read_text_boards,
            has_metadata=text_has_metadata,
        )
    )
