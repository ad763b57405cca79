"""Boards of many sizes as batches of one size each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .tiles import Tokens


def by_shape(boards: Tokens | Sequence[Tokens]) -> Iterator[tuple[NDArray[np.int64], Tokens]]:
    """Batches of equal shape, each with the places of its boards in the whole.

    >>> of = [np.zeros(shape, np.uint8) for shape in ((2, 3), (4, 5), (2, 3))]
    >>> [(where.tolist(), batch.shape) for where, batch in by_shape(of)]
    [([0, 2], (2, 2, 3)), ([1], (1, 4, 5))]
    """
    if isinstance(boards, np.ndarray):
        if len(boards):
            yield np.arange(len(boards)), boards
        return
    places: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, board in enumerate(boards):
        places[board.shape].append(i)
    for where in places.values():
        yield np.array(where), np.stack([boards[i] for i in where])
