"""The blocks of packed bits that earlier versions wrote into an ``.npz`` file; they are only read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from maskoban.boards.formats.notes import COLUMNS, is_valid, parse_json
from maskoban.boards.level import Level
from maskoban.boards.tiles import (
    BOX,
    BOX_ON_GOAL,
    FLOOR,
    GOAL,
    MASK,
    MAX_LEVEL_SIDE,
    PLAYER,
    PLAYER_ON_GOAL,
    WALL,
    Tokens,
)

if TYPE_CHECKING:
    from maskoban.boards.formats.arrays import Archive

# The token of every pattern of bits in a block; wall together with box or player means MASK.
_TOKEN_OF_BITS = np.full(16, 255, np.uint8)
_TOKEN_OF_BITS[[1, 0, 10, 2, 4, 6, 14, 3]] = [
    WALL,
    FLOOR,
    PLAYER,
    BOX,
    GOAL,
    BOX_ON_GOAL,
    PLAYER_ON_GOAL,
    MASK,
]


def read_levels(archive: Archive) -> Iterator[Level]:
    """The levels of all blocks."""
    for k in range(archive.blocks):
        sizes, boards = read_block(archive, k)
        notes = read_notes(archive, k)
        if not isinstance(notes, dict) or not all(
            name in COLUMNS
            and isinstance(column, list)
            and len(column) == len(boards)
            and all(is_valid(name, entry) for entry in column)
            for name, column in notes.items()
        ):
            raise archive.source.error(f"{k}.notes is not the JSON that maskoban writes")
        for i, (board, (height, width)) in enumerate(zip(boards, sizes, strict=True)):
            known = {name: column[i] for name, column in notes.items()}
            yield archive.level(board[:height, :width], known, f"level {i + 1} of block {k}")


def read_block(archive: Archive, k: int) -> tuple[Tokens, Tokens]:
    """Sizes ``(n, 2)`` and boards ``(n, h, w)`` of block ``k``, padded to the largest board.

    ``k.sizes`` is the count as four bytes, then height and width of each board, or once if all are equal.
    ``k.planes`` is four bits a cell (wall, box or player, goal, player): one plane after the other, in each
    every cell with its bit of every board.
    """
    data = archive.read_bytes(f"{k}.sizes")
    if len(data) < 6:
        raise archive.source.error(f"{k}.sizes is too short")
    count = int.from_bytes(data[:4], "little")
    sizes = np.frombuffer(data, np.uint8, offset=4)
    right_length = len(sizes) in (2, 2 * count) and 1 <= count <= 100_000
    if not right_length or sizes.min() < 1 or sizes.max() > MAX_LEVEL_SIDE:
        raise archive.source.error(f"{k}.sizes does not hold {count} sizes of 1 to {MAX_LEVEL_SIDE}")
    sizes = sizes.reshape(-1, 2)
    height, width = (int(side) for side in sizes.max(axis=0))
    planes = np.frombuffer(archive.read_bytes(f"{k}.planes"), np.uint8)
    if len(planes) != 4 * height * width * -(-count // 8) or count * height * width > 8_000_000:
        raise archive.source.error(f"{k}.planes does not hold {count} boards of {height}x{width}")
    bits = np.unpackbits(planes.reshape(4, height * width, -1), axis=2, count=count)
    cells = _TOKEN_OF_BITS[bits[0] | bits[1] << 1 | bits[2] << 2 | bits[3] << 3]
    if (cells > MASK).any():
        raise archive.source.error(f"{k}.planes holds a cell that is no tile")
    boards = np.ascontiguousarray(cells.T).reshape(count, height, width)
    return np.broadcast_to(sizes, (count, 2)), boards


def read_notes(archive: Archive, k: int) -> Any:
    """The parsed notes of block ``k``: a list for each of the columns."""
    return parse_json(archive.read_bytes(f"{k}.notes"))
