"""Board filters: keep boards that are solvable, of one difficulty, or with a number of boxes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Level, Tokens
from maskoban.boards.geometry import group_by_shape
from maskoban.boards.tiles import object_counts, tile_counts
from maskoban.errors import MaskobanError
from maskoban.solving.rating import (
    DIFFICULTIES,
    MEASURES,
    Measure,
    Quartiles,
    difficulties,
    difficulty_of,
    take,
)
from maskoban.solving.solver import Limits, gather, solve_many

#: The limits of the solver when it filters boards: far beyond the hardest of Boxoban's medium levels, and low
#: enough that one large board does not hold up all others. A board that stays unknown does not match.
FILTER_LIMITS = Limits(states=1_000_000)

#: Levels solved together: enough to keep every core busy.
_BATCH = 512


@dataclass(frozen=True)
class BoardFilter:
    """Which boards to keep; the default keeps all.

    ``boxes`` also requires as many goals, and one player. By default ``difficulty`` is that of the reference of a
    board's size; ``difficulty_by`` is another measure, and ``quartiles`` another reference.

    >>> str(BoardFilter(only_solvable=True, boxes=4)), bool(BoardFilter())
    ('solvable, 4 boxes', False)
    """

    only_solvable: bool = False
    difficulty: str | None = None
    boxes: int | None = None
    difficulty_by: Measure = "effort"
    quartiles: Quartiles | None = None

    def __post_init__(self) -> None:
        if self.difficulty is not None and self.difficulty not in DIFFICULTIES:
            raise MaskobanError(
                f"difficulty: expected one of {', '.join(DIFFICULTIES)}, got {self.difficulty!r}"
            )
        if self.difficulty_by not in MEASURES:
            raise MaskobanError(
                f"difficulty_by: expected one of {', '.join(MEASURES)}, got {self.difficulty_by!r}"
            )
        if self.boxes is not None and self.boxes < 1:
            raise MaskobanError(f"boxes: expected at least 1, got {self.boxes}")

    def __bool__(self) -> bool:
        return self.only_solvable or self.difficulty is not None or self.boxes is not None

    def __str__(self) -> str:
        difficulty = self.difficulty and self.difficulty + " by decomposed effort" * (
            self.difficulty_by != "effort"
        )
        boxes = f"{self.boxes} boxes" if self.boxes is not None else ""
        return ", ".join(filter(None, ["solvable" if self.only_solvable else "", difficulty, boxes]))

    def matches(self, boards: Tokens | Sequence[Level]) -> NDArray[np.bool_]:
        """Which boards pass: an (n, h, w) array, or levels of any sizes.

        >>> BoardFilter(only_solvable=True).matches([Level.parse("#@$.#"), Level.parse("#@#$.#")]).tolist()
        [True, False]
        """
        tokens = gather(boards)
        left = np.arange(len(tokens))
        if self.boxes is not None:
            left = left[_have_boxes(tokens, self.boxes)]
        if self.only_solvable or self.difficulty is not None:
            left = left[solve_many(take(tokens, left), solutions=False, limits=FILTER_LIMITS).solved]
        if self.difficulty is not None:
            by = self.difficulty_by
            if by == "effort" and self.quartiles is None:
                words = difficulties(take(tokens, left), FILTER_LIMITS)
                left = left[[word == self.difficulty for word in words]]
                return np.isin(np.arange(len(tokens)), left)
            results = solve_many(take(tokens, left), by, solutions=False, limits=FILTER_LIMITS)
            left = left[[difficulty_of(each, by, self.quartiles) == self.difficulty for each in results]]
        return np.isin(np.arange(len(tokens)), left)

    def filter(self, levels: Iterable[Level]) -> Iterator[Level]:
        """The levels that pass, in order; they are read and solved in batches.

        >>> [str(level) for level in BoardFilter(boxes=1).filter([Level.parse("#@$.#"), Level.parse("#@$$..#")])]
        ['#@$.#']
        """
        remaining = iter(levels)
        while batch := list(islice(remaining, _BATCH)):
            yield from (level for level, keep in zip(batch, self.matches(batch), strict=True) if keep)


def _have_boxes(boards: Tokens | list[Tokens], number: int) -> NDArray[np.bool_]:
    """Which boards have this number of boxes, as many goals, and one player."""
    found = np.zeros(len(boards), np.bool_)
    for where, stack in group_by_shape(boards):
        boxes, goals, players = object_counts(tile_counts(stack))
        found[where] = (boxes == number) & (goals == number) & (players == 1)
    return found
