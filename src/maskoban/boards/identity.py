"""When two boards are the same puzzle: ids that survive everything which does not change the play.

The recipe, which never changes (docs/formats.md has it in prose):

1. The *area* is every cell connected to the player by steps over anything but walls, boxes ignored; the
   edge of the grid is a wall. What lies outside the area becomes wall, except boxes, goals and MASK: every
   box must end on a goal, reachable or not, so none may be forgotten.
2. The *region* is every cell the player can walk to without a push (MASK stops the walk, for it may be a
   wall). The player moves to the first cell of the region, row by row.
3. The board is cut down to the smallest rectangle that holds all cells other than wall.
4. Written in the letters of ``SYMBOLS``, every row followed by a newline, hashed with BLAKE2b to 128 bits:
   that is ``exact_id``. ``id`` hashes the smallest, in byte order, of the texts of the eight symmetries.

A board without exactly one player is no puzzle; its players stay where they are, and where there is none
the area is the whole grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from maskoban.boards.geometry import Cells, flood_fill, symmetries
from maskoban.boards.tiles import (
    BOX,
    BOX_ON_GOAL,
    FLOOR,
    GOAL,
    LETTER_OF,
    MASK,
    PLAYER,
    PLAYER_ON_GOAL,
    WALL,
    Tokens,
)

# Boards handled at once: enough to make NumPy worth it, few enough to keep memory small.
_CHUNK = 16384


def ids(boards: Tokens) -> list[str]:
    """``Level.id`` of every board of a batch ``(n, h, w)``.

    >>> ids(np.array([[[2, 3, 4]], [[4, 3, 2]]], np.uint8))[0] == ids(np.array([[[4, 3, 2]]], np.uint8))[0]
    True
    """
    found = []
    for chunk in _chunks(boards):
        still, region = _without_player(chunk)
        turned = zip(symmetries(still), symmetries(region.view(np.uint8)), strict=True)
        texts = [_texts(s, r.view(np.bool_)) for s, r in turned]
        found += [_digest(min(eight)) for eight in zip(*texts, strict=True)]
    return found


def exact_ids(boards: Tokens) -> list[str]:
    """``Level.exact_id`` of every board of a batch ``(n, h, w)``: a mirrored board gets another one.

    >>> exact_ids(np.array([[[2, 3, 4]]], np.uint8)) == exact_ids(np.array([[[4, 3, 2]]], np.uint8))
    False
    """
    return [_digest(text) for chunk in _chunks(boards) for text in _texts(*_without_player(chunk))]


def canonical_text(tokens: Tokens) -> str:
    """What ``exact_id`` hashes: the board with player, filler and padding put in their standard form.

    >>> canonical_text(np.array([[0, 0, 0, 0, 0], [0, 1, 2, 1, 0], [1, 0, 0, 0, 1]], np.uint8))
    '@  \\n'
    """
    return _texts(*_without_player(tokens[None]))[0].decode("ascii")


def _chunks(boards: Tokens) -> Iterator[Tokens]:
    return (boards[i : i + _CHUNK] for i in range(0, len(boards), _CHUNK))


def _without_player(boards: Tokens) -> tuple[Tokens, Cells]:
    """The boards without their player and filler, and beside them the cells of the player's region.

    Where there is not exactly one player the players stay, and the region is empty.
    """
    player = (boards == PLAYER) | (boards == PLAYER_ON_GOAL)
    players = player.sum(axis=(1, 2))
    open_cells = boards != WALL
    area = flood_fill(player, open_cells)
    area[players == 0] = True
    matters = np.isin(boards, (BOX, GOAL, BOX_ON_GOAL, MASK))
    still = np.where(area | matters, boards, np.uint8(WALL))

    lone = player & (players == 1)[:, None, None]
    walkable = open_cells & ~np.isin(boards, (BOX, BOX_ON_GOAL, MASK))
    region = flood_fill(lone, walkable)
    still[lone & (boards == PLAYER)] = FLOOR
    still[lone & (boards == PLAYER_ON_GOAL)] = GOAL
    return still, region


def _texts(still: Tokens, region: Cells) -> list[bytes]:
    """The canonical text of every board: the player in its region's first cell, cut down, row by row."""
    n, height, width = still.shape
    boards = still.copy()
    first = region.reshape(n, -1).argmax(axis=1)
    has = np.flatnonzero(region.any(axis=(1, 2)))
    cell = (has, first[has] // width, first[has] % width)
    boards[cell] = np.where(boards[cell] == GOAL, np.uint8(PLAYER_ON_GOAL), np.uint8(PLAYER))

    kept = boards != WALL
    in_row, in_column = kept.any(axis=2), kept.any(axis=1)
    top, bottom = in_row.argmax(axis=1), height - in_row[:, ::-1].argmax(axis=1)
    left, right = in_column.argmax(axis=1), width - in_column[:, ::-1].argmax(axis=1)
    letters = np.empty((n, height, width + 1), np.uint8)
    letters[:, :, :width] = LETTER_OF[boards]
    letters[np.arange(n), :, right] = ord("\n")
    empty = ~in_row.any(axis=1)
    return [
        b"" if empty[i] else letters[i, top[i] : bottom[i], left[i] : right[i] + 1].tobytes()
        for i in range(n)
    ]


def _digest(text: bytes) -> str:
    return blake2b(text, digest_size=16).hexdigest()
