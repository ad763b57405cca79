"""Does a generator repeat itself: boards that occur more than once in a sample, the player erased."""

from __future__ import annotations

from dataclasses import dataclass

from maskoban.boards import Tokens, symmetries
from maskoban.evaluation.neighbours import without_player
from maskoban.evaluation.shares import Share, share_of


@dataclass(frozen=True)
class Duplicates:
    """Boards that repeat an earlier one, cell by cell, and turned or mirrored in any of eight ways."""

    exact: Share
    under_symmetry: Share


def count_duplicates(boards: Tokens) -> Duplicates:
    """n boards of which d are distinct hold n - d duplicates.

    >>> import numpy as np
    >>> found = count_duplicates(np.array([[[2, 3, 4]], [[4, 3, 2]], [[1, 3, 4]]], np.uint8))
    >>> found.exact.count, found.under_symmetry.count
    (1, 2)
    """
    turned = [(each.shape[1:], each) for each in symmetries(without_player(boards))]
    # A board's text goes with its shape: 2x3 and 3x2 boards of the same bytes are different boards.
    texts = [[(shape, board.tobytes()) for board in each] for shape, each in turned]
    n = len(boards)
    return Duplicates(
        exact=share_of(n - len(set(texts[0])), n),
        under_symmetry=share_of(n - len({min(eight) for eight in zip(*texts, strict=True)}), n),
    )
