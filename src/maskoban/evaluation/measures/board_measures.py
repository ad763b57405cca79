"""Numbers of single boards, any two of which are the axes of an expressive range plot."""

from __future__ import annotations

from dataclasses import dataclass, fields

from maskoban._util.progress import OnProgress
from maskoban.boards import WALL, Tokens
from maskoban.errors import MaskobanError
from maskoban.solving import Limits, rate_many

#: Only the first boards of a large sample are rated: a plot of more shows no more.
RATED = 2_000

#: Bounds the time of a single board; no solvable board of Boxoban's kind comes near.
LIMITS = Limits(states=1_000_000)


@dataclass(frozen=True)
class BoardMeasures:
    """One number a board; None where it is not known, as what a solution has is for unsolvable boards."""

    walls: list[int | None]
    effort: list[int | None]
    decomposed_effort: list[int | None]
    pushes: list[int | None]
    moves: list[int | None]
    box_changes: list[int | None]
    box_lines: list[int | None]

    @property
    def boards(self) -> int:
        """How many boards were measured."""
        return len(self.walls)


#: Names of the measures, and what an axis calls them.
AXES = {
    "walls": "walls",
    "effort": "solver effort (states)",
    "decomposed_effort": "decomposed effort (states)",
    "pushes": "fewest pushes",
    "moves": "moves",
    "box_changes": "box changes",
    "box_lines": "box lines",
}
assert list(AXES) == [each.name for each in fields(BoardMeasures)]


def measure_boards(boards: Tokens, on_progress: OnProgress | None = None) -> BoardMeasures:
    """The numbers of the first 2,000 boards.

    >>> import numpy as np
    >>> measure_boards(np.array([[[2, 3, 4]], [[3, 2, 4]]], np.uint8)).pushes
    [1, None]
    """
    boards = boards[:RATED]
    ratings = rate_many(boards, limits=LIMITS, on_progress=on_progress)
    rated = {name: [getattr(each, name) for each in ratings] for name in AXES if name != "walls"}
    known = {name: [None if each < 0 else each for each in column] for name, column in rated.items()}
    return BoardMeasures(walls=(boards == WALL).sum(axis=(1, 2)).tolist(), **known)


def axes_of(text: str) -> tuple[str, str]:
    """Two measures from a text like "pushes,box_changes".

    >>> axes_of("walls,effort")
    ('walls', 'effort')
    """
    names = tuple(text.replace("-", "_").split(","))
    if len(names) != 2 or not set(names) <= set(AXES):
        raise MaskobanError(f"axes: expected two of {', '.join(AXES)} as in walls,effort; got {text!r}")
    return names[0], names[1]
