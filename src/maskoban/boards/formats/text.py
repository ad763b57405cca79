"""Boards in text files: XSB, ``.sok`` collections and Boxoban are dialects of one language, read here.

A board is a run of lines made of tiles, perhaps run-length encoded, perhaps several rows to a line with
``|`` between them (``pieces`` tells boards from text). Around the boards stands text, plain or behind ``;``:

- a block of lines right above a board, or a single line above it, belongs to that board and begins with
  its title; all other text belongs to the board before it;
- ``Title:``, ``Author:``, ``Comment:`` and ``Solution`` with its moves below are what they say;
  everything else is comment, so that nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from ..errors import LevelFileError, MaskobanError
from ..level import MAX_MOVES, MAX_SOLUTIONS, Level
from ..rows import tokens_of_rows
from .limits import MAX_NOTE_LETTERS, MAX_NOTE_LINES
from .pieces import Board, Note, pieces
from .rle import expand

_KEY = re.compile(r"(title|author|comment|solution)\s*:\s?(.*)", re.IGNORECASE)
_SOLUTION = re.compile(r"solution(?:[ /][^:]*)?:?", re.IGNORECASE)
_MOVES = re.compile(r"(?:[0-9]*[lurd]\s*)+", re.IGNORECASE)


def read_text(source: BinaryIO, path: str) -> Iterator[Level]:
    """The levels of a text file, one after the other; holds one of them in memory at a time.

    >>> import io
    >>> [level.title for level in read_text(io.BytesIO(b"; 7\\n###\\n#@#\\n###\\n"), "maze.xsb")]
    ['7']
    """
    board: Board | None = None
    said = _Said()
    everyones_author = ""
    gap: list[Note] = []
    letters = 0
    for piece in pieces(source, path):
        if isinstance(piece, Note):
            if piece.blank and gap and gap[-1].blank:
                continue
            gap.append(piece)
            letters += len(piece.text)
            if len(gap) > MAX_NOTE_LINES or letters > MAX_NOTE_LETTERS:
                raise LevelFileError(path, "too much text between two boards", piece.line)
            continue
        below, above = _shared_out(gap)
        said.hear(below, path, titled=False)
        if board:
            yield _level(board, said, everyones_author, path)
            said = _Said()
        else:
            # What stands above the first board may speak of the whole collection, as its author does.
            everyones_author, said.author = said.author, ""
        said.hear(above, path, titled=True)
        board, gap, letters = piece, [], 0
    if board:
        said.hear(gap, path, titled=False)
        yield _level(board, said, everyones_author, path)


def is_key(text: str) -> bool:
    """Whether ``text`` says something about a level that a reader understands.

    >>> [is_key(text) for text in ("Author: me", "Solution", "Level 1")]
    [True, True, False]
    """
    return bool(_KEY.fullmatch(text.strip()) or _SOLUTION.fullmatch(text.strip()))


def _shared_out(gap: list[Note]) -> tuple[list[Note], list[Note]]:
    """The text between two boards: what belongs to the upper board, and what to the lower."""
    end = len(gap)
    while end and gap[end - 1].blank:
        end -= 1
    start = end
    while start and not gap[start - 1].blank:
        start -= 1
    block = gap[start:end]
    right_above = end == len(gap)
    title = len(block) == 1 and not block[0].touches and block[0].kind != "comment"
    if block and (right_above or (title and not is_key(block[0].text))):
        return gap[:start], block
    return gap, []


def _level(board: Board, said: _Said, author: str, path: str) -> Level:
    try:
        return Level(
            tokens_of_rows(board.rows),
            said.title,
            said.author or author,
            "\n".join(said.comment),
            tuple(said.solutions),
        )
    except MaskobanError as error:
        raise LevelFileError(path, str(error), board.line) from None


@dataclass
class _Said:
    """What the text around one board says about it."""

    title: str = ""
    author: str = ""
    comment: list[str] = field(default_factory=list)
    solutions: list[str] = field(default_factory=list)

    def hear(self, notes: list[Note], path: str, titled: bool) -> None:
        """Take in ``notes``; if ``titled``, their first line that says nothing else is the title."""
        i = 0
        while i < len(notes):
            note, i = notes[i], i + 1
            key = _KEY.fullmatch(note.text.lstrip()) if note.kind != "comment" else None
            name, value = (key[1].lower(), key[2]) if key else ("", "")
            if note.blank:
                # One blank line is enough between two pieces of text.
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
                i = self._hear_moves(notes, i, value, path)
            elif _SOLUTION.fullmatch(note.text.strip()) and _is_moves(notes, i):
                i = self._hear_moves(notes, i, "", path)
            elif not name and not self.title and (titled or (note.touches and note.kind == ";")):
                self.title = note.text
            else:
                self.comment.append(note.text)

    def _hear_moves(self, notes: list[Note], i: int, begun: str, path: str) -> int:
        """A solution: what stands on the line of its heading, and all lines of moves from note ``i`` on."""
        if len(self.solutions) == MAX_SOLUTIONS:
            raise LevelFileError(path, f"more than {MAX_SOLUTIONS} solutions of one level", notes[i - 1].line)
        texts = [(begun, notes[i - 1].line)]
        while _is_moves(notes, i):
            texts.append((notes[i].text, notes[i].line))
            i += 1
        moves: list[str] = []
        room, problem = MAX_MOVES, f"more than {MAX_MOVES} moves in a solution"
        for text, line in texts:
            moves.append(expand("".join(text.split()), room, problem, path, line))
            room -= len(moves[-1])
        self.solutions.append("".join(moves))
        return i


def _is_moves(notes: list[Note], i: int) -> bool:
    return i < len(notes) and notes[i].kind != "comment" and bool(_MOVES.fullmatch(notes[i].text.strip()))
