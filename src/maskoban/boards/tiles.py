"""The seven tiles of a board, MASK, their letters, and boards as rows of letters.

Inside the program a board is a ``uint8`` array of tokens, one a cell; text exists only at the edges. The order
of the tokens is the paper's: wall, floor, player, box, goal, box on goal, player on goal, then MASK, which a
model reads but never produces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskoban.errors import FileError

WALL, FLOOR, PLAYER, BOX, GOAL, BOX_ON_GOAL, PLAYER_ON_GOAL, MASK = range(8)

#: Number of tiles of a finished board (MASK is not one of them).
TILES = 7

#: The letter of each token: ``SYMBOLS[BOX] == "$"``.
SYMBOLS = "# @$.*+?"

#: The name of each tile.
NAMES = ("wall", "floor", "player", "box", "goal", "box on goal", "player on goal")

#: The largest number of rows, and of columns, that the solver takes and the models and generators make.
MAX_SIDE = 64

#: The largest number of rows, and of columns, of a level. Files hold levels that the solver does not take.
MAX_LEVEL_SIDE = 200

Tokens = NDArray[np.uint8]
Counts = NDArray[np.int64]

#: The token of every byte; ``NO_TILE`` for bytes that are no letter of a tile.
NO_TILE = 255
TOKEN_OF = np.full(256, NO_TILE, np.uint8)
TOKEN_OF[list(SYMBOLS.encode())] = range(len(SYMBOLS))
TOKEN_OF[[ord("-"), ord("_")]] = FLOOR

#: The letters a row may hold, and the byte of every token.
ROW_LETTERS = frozenset(SYMBOLS + "-_")
LETTER_OF = np.frombuffer(SYMBOLS.encode(), np.uint8)


def parse_rows(rows: Sequence[str], source: str = "board", line: int = 1) -> Tokens:
    """The board with these rows; short rows are filled up with floor. Errors name ``source`` and the line.

    >>> parse_rows(["###", "#@"]).tolist()
    [[0, 0, 0], [0, 2, 1]]
    """
    width = max(map(len, rows), default=0)
    if width == 0:
        raise FileError(source, "an empty board; expected rows of # @ $ . * + and floor", line)
    if len(rows) > MAX_LEVEL_SIDE:
        problem = f"a board of more than {MAX_LEVEL_SIDE} rows; expected at most {MAX_LEVEL_SIDE}"
        raise FileError(source, problem, line + MAX_LEVEL_SIDE)
    for r, row in enumerate(rows):
        if not ROW_LETTERS.issuperset(row):
            c = next(c for c, letter in enumerate(row) if letter not in ROW_LETTERS)
            raise FileError(source, no_tile(row[c]), line + r, c + 1)
        if len(row) > MAX_LEVEL_SIDE:
            problem = f"a row of {len(row)} cells; expected at most {MAX_LEVEL_SIDE}"
            raise FileError(source, problem, line + r, MAX_LEVEL_SIDE + 1)
    letters = "".join(row.ljust(width) for row in rows).encode("ascii")
    return TOKEN_OF[np.frombuffer(letters, np.uint8)].reshape(len(rows), width)


def no_tile(letter: str) -> str:
    """The error message for a letter that is no tile.

    >>> no_tile("x")
    "'x' is no tile; expected one of # @ $ . * + ? or floor (space, - or _)"
    """
    if letter == "\t":
        return "a tab inside a board, whose width is unknown; expected spaces, - or _"
    return f"{letter!r} is no tile; expected one of # @ $ . * + ? or floor (space, - or _)"


def format_rows(tokens: Tokens) -> list[str]:
    """One string a row, such that ``parse_rows`` gives the same board back.

    Floor at the end of a row is left out. Where that would lose information (a row of floor only reads as a
    blank line; a last column of floor only) it is written as ``-``.

    >>> format_rows(np.array([[0, 0, 1], [1, 1, 1]], np.uint8))
    ['##-', '---']
    """
    width = tokens.shape[1]
    rows = [LETTER_OF[row].tobytes().decode("ascii").rstrip(" ") for row in tokens]
    if max(map(len, rows)) < width:
        rows[0] = rows[0].ljust(width).replace(" ", "-")
    return [row or "-" * width for row in rows]


def board_texts(boards: Tokens) -> list[str]:
    """Every board of a batch as text, a row a line, all rows of one length.

    >>> board_texts(np.array([[[2, 3, 4], [0, 0, 0]]], np.uint8))
    ['@$.\\n###']
    """
    n, height, width = boards.shape
    letters = np.full((n, height, width + 1), ord("\n"), np.uint8)
    letters[:, :, :width] = LETTER_OF[boards]
    size = height * (width + 1)
    whole = letters.tobytes().decode("ascii")
    return [whole[i * size : (i + 1) * size - 1] for i in range(n)]


class ObjectCounts(NamedTuple):
    """Boxes, goals and players of each board, (n,) each."""

    boxes: Counts
    goals: Counts
    players: Counts


def tile_counts(boards: Tokens) -> Counts:
    """Number of cells of each board with each token, ``(8, n)``.

    >>> tile_counts(np.array([[[0, 0, 7]]], np.uint8)).T.tolist()
    [[2, 0, 0, 0, 0, 0, 0, 1]]
    """
    return np.stack([np.count_nonzero(boards == tile, axis=(1, 2)) for tile in range(MASK + 1)])


def object_counts(counts: Counts) -> ObjectCounts:
    """Boxes, goals and players from the result of ``tile_counts``.

    >>> object_counts(tile_counts(np.array([[[6, 3, 5]]], np.uint8)))
    ObjectCounts(boxes=array([2]), goals=array([2]), players=array([1]))
    """
    on_goal = counts[BOX_ON_GOAL]
    return ObjectCounts(
        boxes=counts[BOX] + on_goal,
        goals=counts[GOAL] + on_goal + counts[PLAYER_ON_GOAL],
        players=counts[PLAYER] + counts[PLAYER_ON_GOAL],
    )
