"""Writing levels as text, and the registration of the text formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import BinaryIO

from maskoban.boards.collection import Collection, collection_of
from maskoban.boards.formats.lines import (
    begins_comment,
    is_comment_end,
    is_drawn,
    is_heading,
    is_meant_as_row,
    is_row,
    without_rulers,
)
from maskoban.boards.formats.registry import Format, register
from maskoban.boards.formats.regular import read_text_boards, text_has_metadata
from maskoban.boards.formats.text import heading_of, is_special, read_text
from maskoban.boards.level import Level, name_of

_MOVES_A_LINE = 100


def write_text(out: BinaryIO, levels: Iterable[Level], prefix: str) -> None:
    """Levels with a blank line between them: title, board, author, comment, solutions; text behind ``prefix``.

    What is known about a collection stands first, and an author that is the collection's only there.

    >>> import io
    >>> write_text(out := io.BytesIO(), [Level.parse("#@#"), Level.parse("#@$")], prefix="; ")
    >>> out.getvalue()
    b'#@#\\n\\n#@$\\n'
    """
    collection = collection_of(levels)
    lines = [_behind(prefix, line) for line in _header_lines(collection)]
    lines += [""] if lines else []
    for level in collection:
        above, below = _text_around(level, collection.author)
        lines += [_behind(prefix, line) for line in above]
        lines += _board_lines(level, prefix)
        if below and not prefix:
            lines.append("")
        lines += [_behind(prefix, line) for line in below]
        out.write(("\n".join(lines) + "\n").encode("utf-8"))
        lines = [""]


def write_boxoban(out: BinaryIO, levels: Iterable[Level]) -> None:
    """Boards under ``; N`` and nothing else; N is the title if that is a number, else counted from 0.

    >>> import io
    >>> write_boxoban(out := io.BytesIO(), [Level.parse("#@#")])
    >>> out.getvalue()
    b'; 0\\n#@#\\n\\n'
    """
    for i, level in enumerate(levels):
        number = level.title if level.title.isascii() and level.title.isdigit() else str(i)
        out.write(("\n".join([f"; {number}", *_board_lines(level, "; ")]) + "\n\n").encode("ascii"))


def _behind(prefix: str, line: str) -> str:
    return f"{prefix}{line}".rstrip() if prefix else line


def _header_lines(collection: Collection) -> list[str]:
    lines = [f"Collection: {collection.title}"] if collection.title else []
    lines += [f"Author: {collection.author}"] if collection.author else []
    lines += [f"E-mail: {collection.email}"] if collection.email else []
    return [*lines, *_comment_lines(collection.comment)]


def _board_lines(level: Level, prefix: str) -> list[str]:
    """The rows; below the line Board: where a reader might take them for text."""
    rows = str(level).split("\n")
    plain = is_drawn(rows) and without_rulers(rows) == (0, len(rows))
    return rows if plain else [_behind(prefix, "Board:"), *(row.replace(" ", "-") for row in rows)]


def _text_around(level: Level, author: str) -> tuple[list[str], list[str]]:
    """The lines above the board and those below it; ``author`` is that of the collection."""
    above, below = [], []
    if level.title and _can_stand_above(level.title):
        above.append(level.title)
    elif level.title:
        below.append(f"Title: {level.title}")
    if level.author and level.author != author:
        below.append(f"Author: {level.author}")
    below += _comment_lines(level.comment)
    for kind, plays in (("solution", level.solutions), ("savegame", level.savegames)):
        for moves in plays:
            below.append(_heading(kind, name_of(moves)))
            below += [moves[i : i + _MOVES_A_LINE] for i in range(0, len(moves), _MOVES_A_LINE)]
    return above, below


def _heading(kind: str, name: str) -> str:
    """The line above moves that is read as this name; a name that no line gives is left out."""
    word = kind.capitalize()
    lines = (name, f"{word} {name}")
    return next((line for line in lines if name and heading_of(line) == (kind, name)), word)


def _can_stand_above(title: str) -> bool:
    """Whether a title above the board, perhaps on the first line of the file, is read as a title."""
    special = title.startswith((";", "::", "<", "\ufeff")) or is_special(title) or is_comment_end(title)
    special = special or is_heading(title, "comment") or is_heading(title, "board")
    special = special or not re.search(r"\w", title)
    return not (special or is_row(title) or is_meant_as_row(title, below_row=False))


def _comment_lines(comment: str) -> Iterator[str]:
    if not comment:
        return
    yield "Comment:"
    for line in comment.split("\n"):
        if is_comment_end(line) or begins_comment(line):  # which would end this one
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
