"""How hard a level is: its effort, the length of its best solution, and a word for it.

Effort is the number of states a plain breadth-first push search expands before it finds a solution, as
defined in docs/solver.md. The word says in which quarter of the 450,000 Boxoban medium training levels that
number falls; effort_quartiles.json holds where the quarters end, and effort_quartiles.py is the command that
makes it.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban.solving.replay import count
from maskoban.solving.solver import LevelLike, Limits, Result, Results, gather, solve_many

_HOPEFUL = [Results.VERDICTS.index(verdict) for verdict in ("solved", "unknown")]

#: From the lowest quarter of effort to the highest.
WORDS = ("easy", "medium", "hard", "expert")


@dataclass(frozen=True)
class Rating:
    """What `rate` finds; numbers are -1 and the word is empty where they are not known.

    ``pushes``, ``moves``, ``box_changes`` and ``box_lines`` belong to one push-optimal solution. ``verdict``
    is the solver's, and ``reason`` what stopped a search or is wrong with the board.
    """

    verdict: str
    reason: str = ""
    effort: int = -1
    pushes: int = -1
    moves: int = -1
    box_changes: int = -1
    box_lines: int = -1
    word: str = ""

    def as_json(self) -> dict[str, Any]:
        """By name, with None where something is not known.

        >>> Rating("malformed", "no player").as_json()["word"] is None
        True
        """
        return {
            name: None if value in (-1, "") and name != "reason" else value
            for name, value in asdict(self).items()
        }


def rate(level: LevelLike, limits: Limits | None = None) -> Rating:
    """Rate one level.

    >>> from maskoban.boards import Level
    >>> rate(Level.parse("######\\n#@$ .#\\n######")).word
    'easy'
    """
    return rate_many([level], threads=1, limits=limits)[0]


def rate_many(
    boards: NDArray[Any] | Iterable[LevelLike],
    threads: int | None = None,
    progress: bool = False,
    limits: Limits | None = None,
) -> list[Rating]:
    """`rate` for a whole batch on all cores: an (n, h, w) array, or levels of any sizes.

    >>> from maskoban.boards import Level
    >>> [rating.pushes for rating in rate_many([Level.parse("@$ ."), Level.parse("@$.")])]
    [2, 1]
    """
    boards = gather(boards)
    solutions = solve_many(boards, "pushes", threads, progress, limits)
    # What is refuted has no effort; a plain search would only take longer to say so.
    hopeful = np.flatnonzero(np.isin(solutions.verdicts, _HOPEFUL)).tolist()
    kept = boards[hopeful] if isinstance(boards, np.ndarray) else [boards[i] for i in hopeful]
    efforts = dict(zip(hopeful, solve_many(kept, "effort", threads, progress, limits), strict=True))
    return [
        _rating(solution, efforts[i]) if i in efforts else Rating(solution.verdict, solution.reason)
        for i, solution in enumerate(solutions)
    ]


def word_for(effort: int) -> str:
    """Easy, medium, hard or expert: the quarter of the training levels with such an effort.

    >>> word_for(1)
    'easy'
    """
    return WORDS[bisect_left(boxoban_efforts()["quartiles"], effort)]


def _rating(solution: Result, effort: Result) -> Rating:
    # Both searches end with a push-optimal solution; the second also looks for few moves, but either may
    # have hit its limit alone.
    best = solution if solution.solved else effort
    if not best.solved:
        return Rating(best.verdict, best.reason)
    counts = count(best.solution)
    expanded, word = effort.expanded, word_for(effort.expanded)
    if not effort.solved:
        # A search that stopped at its limit proves only that the effort is larger.
        expanded, word = -1, WORDS[-1] if word == WORDS[-1] else ""
    return Rating(
        "solved",
        effort.reason or solution.reason,
        expanded,
        counts.pushes,
        counts.moves,
        counts.box_changes,
        counts.box_lines,
        word,
    )


def percentiles(numbers: NDArray[np.integer[Any]]) -> list[int]:
    """Percentiles 0 to 100; the p-th is the smallest number that at least p % do not exceed.

    >>> percentiles(np.array([1, 2, 3, 4]))[50]
    2
    """
    found: list[int] = np.percentile(numbers, np.arange(101), method="inverted_cdf").tolist()
    return found


@cache
def boxoban_efforts() -> dict[str, Any]:
    """How hard the Boxoban medium training levels are, as effort_quartiles.json has it.

    >>> boxoban_efforts()["levels"]
    450000
    """
    text = files("maskoban.solving").joinpath("effort_quartiles.json").read_text(encoding="utf-8")
    known: dict[str, Any] = json.loads(text)
    return known
