"""Levels as text: XSB, where what is no board stands behind ``;``, and ``.sok``, where it stands bare.

; First steps
#####
#@$.#
#####
; Author: somebody
; Solution
; R
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ..level import Level
from .pieces import BOARD_LETTERS, is_comment_end, is_meant_as_row, is_row
from .text import is_key

_MOVES_A_LINE = 100


def write_xsb(out: BinaryIO, levels: Iterable[Level]) -> None:
    """Levels one below the other, a blank line between them, and all about them behind ``;``.

    >>> import io
    >>> write_xsb(out := io.BytesIO(), [Level.parse("#@#")])
    >>> out.getvalue()
    b'#@#\\n'
    """
    _write(out, levels, behind=";")


def write_sok(out: BinaryIO, levels: Iterable[Level]) -> None:
    """Levels as Sokoban YASC keeps them: a title line, the board, then author, comment and solutions.

    >>> import io
    >>> write_sok(out := io.BytesIO(), [Level.parse("#@#"), Level.parse("#+#")])
    >>> out.getvalue()
    b'#@#\\n\\n#+#\\n'
    """
    _write(out, levels, behind="")


def board_lines(level: Level) -> list[str]:
    """The rows; in the one-line form with ``|`` where a reader might take them for dots and dashes.

    >>> board_lines(Level.parse(".$.")), board_lines(Level.parse("@$."))
    (['.$.|'], ['@$.'])
    """
    text = str(level)
    if BOARD_LETTERS.isdisjoint(text):
        return [text.replace(" ", "-").replace("\n", "|") + "|"]
    return text.split("\n")


def _write(out: BinaryIO, levels: Iterable[Level], behind: str) -> None:
    for i, level in enumerate(levels):
        above, below = _about(level)
        lines = [""] if i else []
        lines += [_behind(behind, line) for line in above]
        lines += board_lines(level)
        if below and not behind:
            lines.append("")
        lines += [_behind(behind, line) for line in below]
        out.write(("\n".join(lines) + "\n").encode("utf-8"))


def _behind(mark: str, line: str) -> str:
    return f"{mark} {line}".rstrip() if mark else line


def _about(level: Level) -> tuple[list[str], list[str]]:
    """The lines above the board and those below it."""
    above, below = [], []
    if level.title and _is_plain(level.title):
        above.append(level.title)
    elif level.title:
        below.append(f"Title: {level.title}")
    if level.author:
        below.append(f"Author: {level.author}")
    below += _comment(level.comment)
    for moves in level.solutions:
        below.append("Solution")
        below += [moves[i : i + _MOVES_A_LINE] for i in range(0, len(moves), _MOVES_A_LINE)]
    return above, below


def _is_plain(title: str) -> bool:
    """Whether a title can stand above the board, perhaps as the first line, and be taken for nothing else."""
    special = title.startswith((";", "::", "<", "\ufeff")) or is_key(title) or is_comment_end(title)
    return not (special or is_row(title) or is_meant_as_row(title, below_row=False))


def _comment(comment: str) -> Iterator[str]:
    if not comment:
        return
    yield "Comment:"
    for line in comment.split("\n"):
        if is_comment_end(line):
            yield from ("Comment-End:", f"Comment: {line}", "Comment:")
        else:
            yield line
    yield "Comment-End:"
