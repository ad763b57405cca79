"""Rows of letters to tokens and back: the one place where a letter becomes a tile.

Floor may be written as a space, ``-`` or ``_``; rows shorter than the widest are filled up with floor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .errors import LevelFileError
from .tiles import FLOOR, MAX_SIDE, SYMBOLS, Tokens

#: Marks a byte that is no tile in ``TOKEN_OF``.
NO_TILE = 255

#: The token of every byte; ``NO_TILE`` where the byte is the letter of none.
TOKEN_OF = np.full(256, NO_TILE, np.uint8)
for _token, _letter in enumerate(SYMBOLS):
    TOKEN_OF[ord(_letter)] = _token
TOKEN_OF[[ord("-"), ord("_")]] = FLOOR

#: Every letter a row may hold.
ROW_LETTERS = frozenset(SYMBOLS + "-_")

#: The byte of every token.
LETTER_OF = np.frombuffer(SYMBOLS.encode("ascii"), np.uint8)

EXPECTED = "expected one of # @ $ . * + ? or floor (space, - or _)"


def tokens_of_rows(rows: Sequence[str], source: str = "board", line: int = 1) -> Tokens:
    """The board that ``rows`` draw; an unknown letter is named with its line, counted on from ``line``.

    >>> tokens_of_rows(["###", "#@"]).tolist()
    [[0, 0, 0], [0, 2, 1]]
    """
    width = max(map(len, rows), default=0)
    if width == 0:
        raise LevelFileError(source, "an empty board; expected rows of # @ $ . * + and floor", line)
    if len(rows) > MAX_SIDE:
        raise LevelFileError(
            source, f"a board of more than {MAX_SIDE} rows; expected at most {MAX_SIDE}", line + MAX_SIDE
        )
    for r, row in enumerate(rows):
        if not ROW_LETTERS.issuperset(row):
            c = next(c for c, letter in enumerate(row) if letter not in ROW_LETTERS)
            raise LevelFileError(source, no_tile(row[c]), line + r, c + 1)
        if len(row) > MAX_SIDE:
            problem = f"a row of {len(row)} cells; expected at most {MAX_SIDE}"
            raise LevelFileError(source, problem, line + r, MAX_SIDE + 1)
    letters = "".join(row.ljust(width) for row in rows).encode("ascii")
    return TOKEN_OF[np.frombuffer(letters, np.uint8)].reshape(len(rows), width)


def no_tile(letter: str) -> str:
    """The sentence for a letter that is no tile.

    >>> no_tile("x")
    "'x' is no tile; expected one of # @ $ . * + ? or floor (space, - or _)"
    """
    if letter == "\t":
        return "a tab inside a board, however wide that is; expected spaces, - or _"
    return f"{letter!r} is no tile; {EXPECTED}"


def rows_of_tokens(tokens: Tokens) -> list[str]:
    """One string a row, such that ``tokens_of_rows`` gives the same board back.

    Floor at a row's end is left out. Where that would lose something (a row of floor only, which would
    read as a blank line, or a last column of floor only) it is written as ``-``.

    >>> rows_of_tokens(np.array([[0, 0, 1], [1, 1, 1]], np.uint8))
    ['##-', '---']
    """
    width = tokens.shape[1]
    rows = [LETTER_OF[row].tobytes().decode("ascii").rstrip(" ") for row in tokens]
    if max(map(len, rows)) < width:
        rows[0] = rows[0].ljust(width).replace(" ", "-")
    return [row or "-" * width for row in rows]


def texts(boards: Tokens) -> list[str]:
    """Every board as text, a row a line, all rows of one length.

    >>> texts(np.array([[[2, 3, 4], [0, 0, 0]]], np.uint8))
    ['@$.\\n###']
    """
    n, height, width = boards.shape
    letters = np.full((n, height, width + 1), ord("\n"), np.uint8)
    letters[:, :, :width] = LETTER_OF[boards]
    size = height * (width + 1)
    whole = letters.tobytes().decode("ascii")
    return [whole[i * size : (i + 1) * size - 1] for i in range(n)]
