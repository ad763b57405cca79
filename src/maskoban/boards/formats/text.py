"""Levels as text: XSB, ``.sok`` and Boxoban are written differently and read by one reader.

A board is a run of lines made of tiles (``lines.py`` separates boards from text). The text around boards is plain or
behind ``;``:

- a block of lines directly above a board, or a single line above it, belongs to that board, and its last free line is
  the title; all other text belongs to the board before it, or, before the first board, to the collection;
- ``Title:``, ``Author:``, ``Comment:``, and ``Solution`` or ``Savegame`` with its moves below have their meaning;
  everything else is comment, so that nothing is lost;
- titles stand above or below their boards. Where blank lines do not tell, the rest of the file does: titles that
  stand below leave none for the text above the first board, which is the collection's then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, NamedTuple

from maskoban.boards.collection import Collection
from maskoban.boards.formats.lines import Board, Note, boards_and_notes, expand
from maskoban.boards.formats.registry import Source
from maskoban.boards.level import MAX_MOVES, MAX_SOLUTIONS, Level, Moves
from maskoban.boards.tiles import parse_rows
from maskoban.errors import FileError, MaskobanError

_KEY = re.compile(r"(title|author|comment|solution|collection|set|e-?mail)\s*[:=]\s?(.*)", re.IGNORECASE)
_HEADER_FIELDS = {"collection": "title", "set": "title", "e-mail": "email"}
_HEADING = re.compile(r"(?:best )?(solution|saved? ?game|snapshot)(?:[ /(:#0-9-].*)?", re.IGNORECASE)
_MOVES = re.compile(r"(?:[0-9]*[lurd]\s*)+", re.IGNORECASE)
_BARE_MOVES = re.compile(r"[lurd]{10,}", re.IGNORECASE)  # no word, so that they need no heading
_PUSH = re.compile("(?<=.)[LURD]")  # not a capital at the beginning of a word
_NUMBER = re.compile(r"(?:level|maze|puzzle|no|nr)?[ .#:]{0,3}[0-9]{1,9}\.?", re.IGNORECASE)
_WORD = re.compile(r"\w")
_FIRST_LETTERS = frozenset("SsBbLlUuRrDd")  # of a heading of moves, or of moves

# Boards, and letters around them, that are read before it is decided where titles stand.
_LOOK_AHEAD, _LOOK_AHEAD_LETTERS = 100, 1_000_000

#: The text above a board and the board; None at the end of the file.
Gap = tuple[list[Note], Board | None]


def read_text(source: Source) -> Iterator[Level]:
    """The levels of a text file; few of them are in memory at a time.

    >>> import io
    >>> [level.title for level in read_text(Source(io.BytesIO(b"; 7\\n###\\n#@#\\n###\\n"), "maze.xsb"))]
    ['7']
    """
    gaps = _gaps(source)
    notes, board = next(gaps)
    if board is None:
        return
    bare = all(note.blank for note in notes)
    header, above, below, ahead = _first_gap(notes, gaps)
    source.collection = _header(header, source, board)
    for notes, next_board in chain(ahead, gaps):
        upper, lower = (notes, []) if next_board is None else _split(notes, below, bare)
        level = _level(board, above, upper, source)
        if level:
            yield level
        if next_board is None:
            return
        above, board = lower, next_board


def _gaps(source: Source) -> Iterator[Gap]:
    gap: list[Note] = []
    for piece in boards_and_notes(source):
        if isinstance(piece, Board):
            yield gap, piece
            gap = []
        elif not (gap and piece.blank and gap[-1].blank):
            gap.append(piece)
    yield gap, None


# --- which text belongs to which board


def _split(gap: list[Note], below: bool, bare: bool) -> tuple[list[Note], list[Note]]:
    """The text between two boards: what belongs to the upper board, and what to the lower one.

    ``below`` says whether titles stand below their boards in this file, ``bare`` that there is no text above its first
    board.
    """
    start, end = _last_block(gap)
    played = _end_of_upper(gap, keys=False)
    block = gap[start:end]
    touches_upper, touches_lower = start == 0, end == len(gap)
    if not block or played >= end or (played > start and not touches_lower):
        return gap, []
    if touches_lower:
        cut = max(start, played)
        if touches_upper and below and _has_title(block):
            cut = _end_of_upper(block, keys=True)
        elif touches_upper and bare and block[0].kind == ";":
            cut = end
        elif touches_upper:
            while cut < end and gap[cut].kind == "comment":
                cut += 1
        return gap[:cut], gap[cut:]
    if touches_upper:
        return gap, []
    mine = not below if _has_title(block) else _is_line(block) or _is_numbered(block)
    return (gap[:start], gap[start:]) if mine else (gap, [])


def _first_gap(notes: list[Note], gaps: Iterator[Gap]) -> tuple[list[Note], list[Note], bool, list[Gap]]:
    """The text above the first board: that of the collection and that of the board.

    Also whether titles stand below their boards, and what was read of ``gaps`` to find out.
    """
    start, end = _last_block(notes)
    block, touches = notes[start:end], start < end == len(notes)
    if not _has_title(block):
        mine = touches or _is_line(block) or _is_numbered(block)
        return (notes[:start], notes[start:], True, []) if mine else (notes, [], True, [])
    below, ahead = _titles_below(gaps)
    several = len(ahead) > 1
    if below or (below is None and several and not touches):
        cut = start + _end_of_upper(block, keys=True)
        return notes[:cut], notes[cut:], True, ahead
    return notes[:start], block, below is None, ahead


def _titles_below(gaps: Iterator[Gap]) -> tuple[bool | None, list[Gap]]:
    """Whether titles stand below their boards in a file with one above the first; None if there are no others.

    Also what was read to find out.
    """
    ahead: list[Gap] = []
    letters, seen = 0, False
    for notes, board in gaps:
        ahead.append((notes, board))
        if _has_title(notes):
            seen = True
            start, end = _last_block(notes)
            touches_upper, touches_lower = start == 0, end == len(notes)
            if board is None or not _has_title(notes[start:end]) or touches_upper > touches_lower:
                return True, ahead
            if touches_lower > touches_upper:
                return False, ahead
        if board is None:  # no title below the last board
            return (False if seen else None), ahead
        letters += sum(len(note.text) for note in notes)
        if len(ahead) == _LOOK_AHEAD or letters > _LOOK_AHEAD_LETTERS:
            break
    return (True if seen else None), ahead


def _last_block(gap: list[Note]) -> tuple[int, int]:
    """Where the last lines without a blank one between them begin and end."""
    end = len(gap)
    while end and gap[end - 1].blank:
        end -= 1
    start = end
    while start and not gap[start - 1].blank:
        start -= 1
    return start, end


def _end_of_upper(block: list[Note], keys: bool) -> int:
    """Where the part of a block above a board ends that surely is not about it: solutions, or all ``keys``."""
    end = i = 0
    while i < len(block):
        play = _play(block, i)
        if play:
            i = end = play.end
        else:
            i += 1
            if keys and (block[i - 1].kind == "comment" or _key_and_value(block[i - 1])[0]):
                end = i
    return end


def _is_line(block: list[Note]) -> bool:
    """Whether a block is a single line of free text."""
    if len(block) != 1 or block[0].kind == "comment":
        return False
    return _WORD.search(block[0].text) is not None and not is_special(block[0].text)


def _is_numbered(block: list[Note]) -> bool:
    """Whether the first line of a block, below any ruler, is a number like ``Maze: 1``."""
    first = next((note for note in block if _WORD.search(note.text)), None)
    return first is not None and first.kind != "comment" and bool(_NUMBER.fullmatch(first.text.strip()))


def _has_title(notes: list[Note]) -> bool:
    return any(key == "title" and value for key, value in map(_key_and_value, notes))


def _key_and_value(note: Note) -> tuple[str, str]:
    """The key a line begins with, and what it says; "" and "" if it has none."""
    if note.kind == "comment" or (":" not in note.text and "=" not in note.text):
        return "", ""
    found = _KEY.fullmatch(note.text.lstrip())
    return (found[1].lower(), found[2].rstrip()) if found else ("", "")


def is_special(text: str) -> bool:
    """Whether a line has a meaning of its own, so that it is no title.

    >>> [is_special(text) for text in ("Title: x", "Snapshot/Moves 3", "The snapshot")]
    [True, True, False]
    """
    bare = text.strip()
    return any(pattern.fullmatch(bare) for pattern in (_KEY, _HEADING, _BARE_MOVES))


# --- what the text says


class _Play(NamedTuple):
    """A solution or a saved game in notes up to ``end``, before its moves are written out."""

    kind: Literal["solution", "savegame"]
    name: str
    line: int
    lines: list[tuple[str, int]]
    end: int


def heading_of(text: str) -> tuple[Literal["solution", "savegame"], str] | None:
    """What a heading above moves announces, and its name; None if it is no such heading.

    >>> heading_of("Best Solution 1/1 (Optimizer)"), heading_of("Solution 2"), heading_of("solution:")
    (('solution', 'Best Solution 1/1 (Optimizer)'), ('solution', '2'), ('solution', ''))
    """
    found = _HEADING.fullmatch(text)
    if not found:
        return None
    kind: Literal["solution", "savegame"] = "solution" if found[1].lower() == "solution" else "savegame"
    bare = text.removesuffix(":") if text.endswith(found[1] + ":") else text
    if bare.lower() in ("solution", "savegame"):
        return kind, ""
    return kind, bare[9:] if bare.lower().startswith(("solution ", "savegame ")) else bare


def _play(notes: list[Note], i: int) -> _Play | None:
    """The solution or saved game that begins at note ``i``: moves behind its heading or on the lines below."""
    note = notes[i]
    text = note.text.strip()
    if note.kind == "comment" or text[:1] not in _FIRST_LETTERS:
        return None
    begun = _KEY.fullmatch(text) if ":" in text or "=" in text else None
    lines = []
    found = heading_of(text)
    if begun and begun[1].lower() == "solution" and _MOVES.fullmatch(begun[2].strip()):
        found = "solution", ""
        lines.append((begun[2], note.line))
    elif _BARE_MOVES.fullmatch(text):
        found = "solution", ""
        lines.append((text, note.line))
    if found is None:
        return None
    end = i + 1
    if not lines and end + 1 < len(notes) and notes[end].blank and _PUSH.search(notes[end + 1].text.strip()):
        end += 1
    while end < len(notes) and notes[end].kind != "comment" and _MOVES.fullmatch(notes[end].text.strip()):
        lines.append((notes[end].text, notes[end].line))
        end += 1
    return _Play(*found, note.line, lines, end) if lines else None


def _written_out(play: _Play, source: Source) -> Moves:
    parts: list[str] = []
    total = 0
    for text, line in play.lines:
        parts.append(expand("".join(text.split()), MAX_MOVES, "moves in a solution", source, line))
        total += len(parts[-1])
        if total > MAX_MOVES:
            raise source.error(f"more than {MAX_MOVES} moves in a solution", line)
    try:
        return Moves("".join(parts), play.name)
    except MaskobanError as error:  # its name is too long, or not printable
        raise source.error(str(error), play.line) from None


@dataclass
class _LevelText:
    """What the text around one board says about it."""

    title: str = ""
    author: str = ""
    comment: list[str] = field(default_factory=list)
    plays: dict[str, list[str]] = field(default_factory=lambda: {"solution": [], "savegame": []})

    def add(self, notes: list[Note], source: Source, above: bool) -> None:
        """Add the text above or below the board: above, the last line without another meaning is the title."""
        i, free = 0, None
        touches = bool(notes) and not notes[-1].blank
        while i < len(notes):
            note, i = notes[i], i + 1
            if not note.text:
                if note.kind == "comment" or (self.comment and self.comment[-1]):
                    self.comment.append("")
                continue
            play = _play(notes, i - 1)
            if play:
                i = play.end
                self._add_play(play, note.line, source)
                continue
            key, value = _key_and_value(note)
            if note.blank:
                if self.comment and self.comment[-1]:
                    self.comment.append("")
            elif key in ("title", "author") and not value:
                continue
            elif key == "title" and (not self.title or _NUMBER.fullmatch(self.title)):
                self.title = value  # a number gives way to it
            elif key == "author" and not self.author:
                self.author = value
            elif key == "comment":
                self.comment.append(value)
            elif note.below_board and note.kind == ";" and not key and not self.title:
                self.title = note.text
            else:
                # Directly above the board the last line is the title, else the first, which is a number.
                if (
                    note.kind != "comment"
                    and not key
                    and (free is None or touches)
                    and _WORD.search(note.text)
                ):
                    free = len(self.comment)
                self.comment.append(note.text)
        if above and free is not None and not self.title:
            self.title = self.comment.pop(free)

    def _add_play(self, play: _Play, line: int, source: Source) -> None:
        try:
            if len(self.plays[play.kind]) == MAX_SOLUTIONS:
                raise source.error(f"more than {MAX_SOLUTIONS} {play.kind}s of one level", line)
            self.plays[play.kind].append(_written_out(play, source))
        except FileError as error:
            source.warn(error, f"a {play.kind} is left out: ")

    def level(self, board: Board, source: Source) -> Level:
        try:
            return Level(
                parse_rows(board.rows),
                self.title,
                self.author or source.collection.author,
                "\n".join(self.comment),
                tuple(self.plays["solution"]),
                tuple(self.plays["savegame"]),
            )
        except MaskobanError as error:
            raise source.error(str(error), board.line) from None


def _level(board: Board, above: list[Note], below: list[Note], source: Source) -> Level | None:
    """The level with this board and this text; None, with a warning, if it is beyond a limit or damaged."""
    text = _LevelText()
    try:
        text.add(above, source, above=True)
        text.add(below, source, above=False)
        if board.problem:
            raise board.problem
        return text.level(board, source)
    except FileError as error:
        named = f" ({text.title[:80]!r})" if text.title else ""
        source.warn(error, f"a level{named} is skipped: ")
        return None


def _header(notes: list[Note], source: Source, board: Board) -> Collection:
    """The collection that the text above the first level describes."""
    known = {"title": "", "author": "", "email": ""}
    comment: list[str] = []
    for note in notes:
        found = _KEY.fullmatch(note.text.lstrip()) if note.kind != "comment" else None
        key = _HEADER_FIELDS.get(found[1].lower(), found[1].lower()) if found else ""
        if note.blank:
            if comment and comment[-1]:
                comment.append("")
        elif found and key == "comment":
            comment.append(found[2])
        elif found and key in known and not known[key]:
            known[key] = found[2].strip()
        else:
            comment.append(note.text)
    try:
        return Collection((), **known, comment="\n".join(comment))
    except MaskobanError as error:
        source.warn(source.error(str(error), board.line), "the text above the first level is left out: ")
        return Collection()
