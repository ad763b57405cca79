"""Shorten solutions: each is searched again window by window, and never gets longer (native/optimize.hpp)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban._util.progress import OnProgress
from maskoban.boards import MAX_SIDE, Level, Tokens
from maskoban.errors import MaskobanError
from maskoban.solving.replay import IllegalStepError, count, solves
from maskoban.solving.solver import LevelLike, Limits, Result, Results, gather, run_by_shape, threads_for

Measure = Literal["moves", "pushes"]


def optimize(level: LevelLike, solution: str, by: Measure = "moves", limits: Limits | None = None) -> Result:
    """A solution that is at most as long by ``moves`` or ``pushes``; of equal ones, the shorter by the other.

    >>> optimize(Level.parse("#######\\n#  @$.#\\n#     #\\n#######"), "lldrruR").solution
    'R'
    """
    return optimize_many([level], [solution], by, threads=1, limits=limits)[0]


def optimize_many(
    boards: NDArray[Any] | Iterable[LevelLike],
    solutions: Sequence[str],
    by: Measure = "moves",
    threads: int | None = None,
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
) -> Results:
    """Shorten one solution of each board. A limit that stops a search leaves the shortest solution found so far.

    >>> optimize_many([Level.parse("#####\\n#@$.#\\n#####")], ["R"]).moves.tolist()
    [1]
    """
    if by not in ("moves", "pushes"):
        raise MaskobanError(f"unknown measure {by!r}: expected moves or pushes")
    boards = gather(boards)
    limits, threads = limits or Limits(), threads_for(threads)
    if len(boards) != len(solutions):
        raise MaskobanError(f"{len(boards)} boards but {len(solutions)} solutions")
    for i, (board, solution) in enumerate(zip(boards, solutions, strict=True)):
        if max(board.shape) > MAX_SIDE:
            raise MaskobanError(f"board {i} is larger than {MAX_SIDE} x {MAX_SIDE}, which is not searched")
        if not solves(board, solution):
            raise MaskobanError(f"solution {i} does not solve its board")

    def shorten(stack: Tokens, where: NDArray[np.intp], progress: Any) -> Any:
        given = [solutions[i] for i in where]
        return _core.optimize_boards(
            stack, given, by == "moves", limits.native_states, limits.native_seconds, threads, progress
        )

    results = run_by_shape(boards, shorten, True, on_progress)
    assert results.solutions is not None
    for board, before, after in zip(boards, solutions, results.solutions, strict=True):
        if not solves(board, after) or length(after, by) > length(before, by):
            raise RuntimeError(f"a solution became wrong or longer: {before} became {after}")
    return results


def shortest_given(level: Level, by: Measure) -> str | None:
    """The shortest of the level's own solutions that solve it, if any.

    >>> shortest_given(Level.parse("#####\\n#@$.#\\n#####"), "moves") is None
    True
    """
    good: list[str] = []
    if max(level.shape) > MAX_SIDE:  # too large to be searched
        return None
    for solution in level.solutions:
        with suppress(IllegalStepError):
            good += [solution] * solves(level, solution)
    return min(good, key=lambda solution: length(solution, by), default=None)


def length(solution: str, by: Measure) -> tuple[int, int]:
    """What solutions are compared by: the measure, then the other one.

    >>> length("lRR", "pushes")
    (2, 3)
    """
    counts = count(solution)
    return (counts.moves, counts.pushes) if by == "moves" else (counts.pushes, counts.moves)
