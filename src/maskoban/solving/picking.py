"""Picking boards: those that can be solved, that are as hard as asked, that have so many boxes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Level, MaskobanError, Tokens
from maskoban.boards.batches import by_shape
from maskoban.boards.counting import things, tile_counts
from maskoban.solving.rating import WORDS, rate_many
from maskoban.solving.solver import Limits, solve_many

#: How far the solver looks into one board when boards are picked by it: far beyond the hardest of Boxoban's medium
#: levels, and not so far that a large board holds up all others. What it cannot prove by then does not pass.
PICKING = Limits(states=1_000_000)

#: Levels judged together: enough to keep every core busy.
TOGETHER = 512


@dataclass(frozen=True)
class Wishes:
    """What boards must be like to be kept; nothing is asked of them unless it is said.

    ``boxes`` asks for a goal for each of them and for one player, too.

    >>> str(Wishes(only_solvable=True, boxes=4)), bool(Wishes())
    ('solvable, 4 boxes', False)
    """

    only_solvable: bool = False
    difficulty: str | None = None
    boxes: int | None = None

    def __post_init__(self) -> None:
        if self.difficulty is not None and self.difficulty not in WORDS:
            raise MaskobanError(f"difficulty is one of {', '.join(WORDS)}, not {self.difficulty!r}")
        if self.boxes is not None and self.boxes < 1:
            raise MaskobanError(f"a board has at least 1 box, not {self.boxes}")

    def __bool__(self) -> bool:
        return self != Wishes()

    def __str__(self) -> str:
        boxes = f"{self.boxes} boxes" if self.boxes is not None else ""
        return ", ".join(filter(None, ["solvable" if self.only_solvable else "", self.difficulty, boxes]))

    def met(self, boards: Tokens | Sequence[Level]) -> NDArray[np.bool_]:
        """Which of these boards are so: an (n, h, w) array, or levels of any sizes.

        >>> Wishes(only_solvable=True).met([Level.parse("#@$.#"), Level.parse("#@#$.#")]).tolist()
        [True, False]
        """
        left = np.arange(len(boards))
        if self.boxes is not None:
            left = left[_have(boards, self.boxes)]
        if self.only_solvable:
            left = left[solve_many(_some(boards, left), solutions=False, limits=PICKING).solved]
        if self.difficulty is not None:
            ratings = rate_many(_some(boards, left), limits=PICKING)
            left = left[[rating.word == self.difficulty for rating in ratings]]
        return np.isin(np.arange(len(boards)), left)

    def picked(self, levels: Iterable[Level]) -> Iterator[Level]:
        """The levels that are so, in their order; some are looked at together.

        >>> [str(level) for level in Wishes(boxes=1).picked([Level.parse("#@$.#"), Level.parse("#@$$..#")])]
        ['#@$.#']
        """
        waiting = iter(levels)
        while some := list(islice(waiting, TOGETHER)):
            yield from (level for level, met in zip(some, self.met(some), strict=True) if met)


def _some(boards: Tokens | Sequence[Level], which: NDArray[np.intp]) -> Tokens | list[Level]:
    return boards[which] if isinstance(boards, np.ndarray) else [boards[i] for i in which]


def _have(boards: Tokens | Sequence[Level], number: int) -> NDArray[np.bool_]:
    """Which have so many boxes, as many goals, and one player."""
    found = np.zeros(len(boards), np.bool_)
    tokens = boards if isinstance(boards, np.ndarray) else [level.tokens for level in boards]
    for where, stack in by_shape(tokens):
        boxes, goals, players = things(tile_counts(stack))
        found[where] = (boxes == number) & (goals == number) & (players == 1)
    return found
