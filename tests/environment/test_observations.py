"""What an agent sees is what looking every cell up would show, for one board and for many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maskoban.boards import TILES
from maskoban.environment.observations import _COLOURS, observing


def by_looking_up(kind: str, board: np.ndarray) -> Any:
    """What is seen of one board, a cell at a time."""
    if kind == "planes":
        return [[[int(cell == tile) for cell in row] for row in board] for tile in range(TILES)]
    return [[_COLOURS[cell].tolist() if kind == "rgb" else int(cell) for cell in row] for row in board]


@pytest.mark.parametrize("kind", ["tokens", "planes", "rgb"])
@pytest.mark.parametrize("many", [(), (1,), (50,)])
def test_it_is_what_looking_every_cell_up_shows(kind: Any, many: tuple[int, ...]) -> None:
    boards = np.random.default_rng(5).integers(TILES, size=(*many, 4, 6)).astype(np.uint8)
    space, see = observing(kind, (4, 6))
    seen = see(boards)
    expected = [by_looking_up(kind, board) for board in boards] if many else by_looking_up(kind, boards)
    assert seen.tolist() == expected
    assert (seen.dtype, seen.shape) == (np.uint8, (*many, *(space.shape or ())))
    assert seen.flags.c_contiguous
    assert seen.flags.writeable
    assert not np.shares_memory(seen, boards)
