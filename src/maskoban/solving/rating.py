"""How hard a level is: its effort, its decomposed effort, and the length of its best solution.

Effort is the number of states a plain breadth-first push search expands before it finds a solution. Decomposed
effort is the number of states that look promising to a player who delivers the boxes in groups as small as possible,
one group after the other. Guided effort counts the states of the guided search; it is defined at every size.
docs/solver.md defines all three. A number becomes a difficulty: the quarter of a reference in which it falls. Boards of
10x10 with four boxes are rated by the effort of the 450,000 Boxoban medium training levels, others by the guided effort
of synthetic boards of their size; benchmarks/rating.py makes the files of both.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maskoban._util.progress import OnProgress
from maskoban.boards.tiles import WALL, Tokens
from maskoban.errors import MaskobanError
from maskoban.solving.reference import MAYBE_SOLVABLE, Reference, guided_efforts, references_of
from maskoban.solving.replay import count
from maskoban.solving.solver import LevelLike, LimitHit, Limits, Result, gather, solve_many

#: From the lowest quarter of a reference to the highest.
DIFFICULTIES = ("easy", "medium", "hard", "expert")

#: The numbers that become a difficulty; also the solver's modes that measure them.
Measure: TypeAlias = Literal["effort", "decomposed"]
MEASURES: tuple[Measure, ...] = ("effort", "decomposed")

#: For each measure the three numbers at which the quarters of a reference end.
Quartiles: TypeAlias = Mapping[Measure, Sequence[int]]

#: Where the search for the decomposed effort stops unless a limit is given. It bounds the time, because the number
#: of groups grows fast with the number of boxes.
DECOMPOSED_STATES = 1_000_000


@dataclass(frozen=True)
class Rating:
    """The result of `rate`; unknown numbers are -1 and an unknown difficulty is empty.

    ``pushes``, ``moves``, ``box_changes`` and ``box_lines`` belong to one push-optimal solution. ``boxes_at_once`` is
    the size of the largest group that a player has to deliver together. ``verdict`` is the solver's; ``reason`` says
    what stopped a search or is wrong with the board, ``limit_hit`` which limit stopped it. ``reference`` names the
    boards whose quarters give ``difficulty``; by guided effort, unless they are Boxoban's or the caller's.
    """

    verdict: str
    reason: str = ""
    effort: int = -1
    pushes: int = -1
    moves: int = -1
    box_changes: int = -1
    box_lines: int = -1
    difficulty: str = ""
    limit_hit: LimitHit | None = None
    decomposed_effort: int = -1
    boxes_at_once: int = -1
    decomposed_difficulty: str = ""
    guided_effort: float = -1
    reference: str = ""

    def as_json(self) -> dict[str, Any]:
        """The fields by name, None where unknown; the keys of the difficulties end with ``word``.

        >>> Rating("malformed", "no player").as_json()["word"] is None
        True
        """
        return {
            name.replace("difficulty", "word"): None if value in (-1, "") and name != "reason" else value
            for name, value in asdict(self).items()
        }


def rate(level: LevelLike, limits: Limits | None = None, quartiles: Quartiles | None = None) -> Rating:
    """Rate one level.

    >>> from maskoban.boards import Level
    >>> rate(Level.parse("######\\n#@$ .#\\n######")).difficulty
    'easy'
    """
    return rate_many([level], threads=1, limits=limits, quartiles=quartiles)[0]


def rate_many(
    boards: NDArray[Any] | Iterable[LevelLike],
    threads: int | None = None,
    limits: Limits | None = None,
    quartiles: Quartiles | None = None,
    on_progress: OnProgress | None = None,
) -> list[Rating]:
    """`rate` for a whole batch on all cores: an (n, h, w) array, or levels of any sizes.

    ``quartiles`` are those of `quartiles_of`, in place of the reference of each board's size.

    >>> from maskoban.boards import Level
    >>> [rating.pushes for rating in rate_many([Level.parse("@$ ."), Level.parse("@$.")])]
    [2, 1]
    """
    boards = gather(boards)
    n, report = len(boards), on_progress or (lambda done, total: None)

    def pass_progress(number: int) -> OnProgress:
        return lambda done, total: report((number * n + n - total + done) // 3, n)

    solutions = solve_many(boards, "pushes", threads, limits, on_progress=pass_progress(0))
    # An unsolvable board has no effort; the plain search would only take longer to prove it.
    left = np.flatnonzero(np.isin(solutions.verdicts, MAYBE_SOLVABLE))
    efforts = solve_many(take(boards, left), "effort", threads, limits, on_progress=pass_progress(1))
    known = solutions.solved[left] | efforts.solved
    solved = left[known]
    groups = solve_many(
        take(boards, solved), "decomposed", threads, _decomposed_limits(limits), on_progress=pass_progress(2)
    )
    report(n, n)
    ratings = [Rating(each.verdict, each.reason, limit_hit=each.limit_hit) for each in solutions]
    for i, effort in zip(left.tolist(), efforts, strict=True):
        ratings[i] = Rating(effort.verdict, effort.reason, limit_hit=effort.limit_hit)
    for i, j, decomposed in zip(solved.tolist(), np.flatnonzero(known).tolist(), groups, strict=True):
        ratings[i] = _rating(solutions[i], efforts[j], decomposed, quartiles or boxoban_quartiles())
    if quartiles is None:
        _rate_by_size(ratings, take(boards, solved), solved, threads)
    return ratings


def _rate_by_size(
    ratings: list[Rating], boards: Tokens | list[Tokens], places: NDArray[np.intp], threads: int | None
) -> None:
    """Add the guided efforts, and put the difficulties of the reference of each size in place of Boxoban's."""
    efforts = guided_efforts(boards, threads)
    for i, effort, reference in zip(places.tolist(), efforts.tolist(), references_of(boards), strict=True):
        known = replace(ratings[i], guided_effort=effort, reference=reference.name)
        if reference.measure == "guided":
            known = replace(known, difficulty=guided_difficulty(effort, reference))
        ratings[i] = known


def difficulties(
    boards: Tokens | list[Tokens], limits: Limits | None = None, threads: int | None = None
) -> list[str]:
    """The difficulty of every board by the reference of its size; empty where it is unknown.

    >>> difficulties(np.array([[[2, 3, 1, 4]]], dtype=np.uint8))
    ['easy']
    """
    plain = np.flatnonzero([reference.measure == "effort" for reference in references_of(boards)])
    efforts = solve_many(take(boards, plain), "effort", threads, limits, solutions=False)
    return difficulties_with(dict(zip(plain.tolist(), efforts, strict=True)), boards, threads)


def difficulties_with(
    efforts: Mapping[int, Result], boards: Tokens | list[Tokens], threads: int | None = None
) -> list[str]:
    """`difficulties` where the results of mode ``effort`` are known, at least those of boards rated by it."""
    words, references = [""] * len(boards), references_of(boards)
    guided = np.flatnonzero([reference.measure == "guided" for reference in references])
    for i in set(range(len(boards))) - set(guided.tolist()):
        words[i] = difficulty_of(efforts[i])
    for i, effort in zip(
        guided.tolist(), guided_efforts(take(boards, guided), threads).tolist(), strict=True
    ):
        words[i] = guided_difficulty(effort, references[i])
    return words


def guided_difficulty(effort: float, reference: Reference) -> str:
    """The quarter of a reference in which a guided effort falls; empty where it is unknown."""
    return "" if effort < 0 or reference.ends is None else DIFFICULTIES[bisect_left(reference.ends, effort)]


def _decomposed_limits(limits: Limits | None) -> Limits:
    limits = limits or Limits()
    return limits if limits.states is not None else replace(limits, states=DECOMPOSED_STATES)


def take(boards: Tokens | list[Tokens], indices: NDArray[np.intp]) -> Tokens | list[Tokens]:
    """The boards at these indices."""
    return boards[indices] if isinstance(boards, np.ndarray) else [boards[i] for i in indices]


def _rating(solution: Result, effort: Result, decomposed: Result, quartiles: Quartiles) -> Rating:
    # Both of the first two searches find a push-optimal solution, one of them with few moves; either may hit its
    # limit alone.
    counts = count(solution.solution if solution.solved else effort.solution)
    unknown = f"decomposed effort: {decomposed.reason}" if decomposed.limit_hit else ""
    return Rating(
        "solved",
        effort.reason or solution.reason or unknown,
        effort.expanded if effort.solved else -1,
        counts.pushes,
        counts.moves,
        counts.box_changes,
        counts.box_lines,
        difficulty_of(effort, "effort", quartiles),
        effort.limit_hit or solution.limit_hit or decomposed.limit_hit,
        decomposed.expanded if decomposed.solved else -1,
        decomposed.boxes_at_once,
        difficulty_of(decomposed, "decomposed", quartiles),
    )


def difficulty_for(number: int, measure: Measure = "effort", quartiles: Quartiles | None = None) -> str:
    """Easy, medium, hard or expert: the quarter of the reference in which an effort falls.

    >>> difficulty_for(1), difficulty_for(2, "effort", {"effort": [0, 1, 2]})
    ('easy', 'hard')
    """
    return DIFFICULTIES[bisect_left((quartiles or boxoban_quartiles())[measure], number)]


def difficulty_of(result: Result, measure: Measure = "effort", quartiles: Quartiles | None = None) -> str:
    """The difficulty of a solvable board from the solver's result in the mode of ``measure``; empty if unknown.

    An effort search that hit its limit proves that the effort is larger than what it expanded, which is enough for
    the last quarter.

    >>> from maskoban.boards import Level
    >>> from maskoban.solving.solver import solve
    >>> difficulty_of(solve(Level.parse("@$."), "decomposed"), "decomposed")
    'easy'
    """
    difficulty = difficulty_for(result.expanded, measure, quartiles)
    larger_is_certain = measure == "effort" and result.limit_hit and difficulty == DIFFICULTIES[-1]
    return difficulty if result.solved or larger_is_certain else ""


def percentiles(numbers: NDArray[np.integer[Any]]) -> list[int]:
    """Percentiles 0 to 100; the p-th is the smallest number that at least p % do not exceed.

    >>> percentiles(np.array([1, 2, 3, 4]))[50]
    2
    """
    found: list[int] = np.percentile(numbers, np.arange(101), method="inverted_cdf").tolist()
    return found


def summarise(
    boards: Tokens,
    threads: int | None = None,
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Means and percentiles of effort, decomposed effort and fewest pushes over the solvable boards.

    >>> summarise(np.array([[[2, 3, 1, 4]]], dtype=np.uint8))["mean_effort"]
    2.0
    """
    report, n = on_progress or (lambda done, total: None), len(boards)
    effort = solve_many(boards, "effort", threads, limits, False, lambda done, _: report(done // 2, n))
    solvable, fewer = boards[effort.solved], _decomposed_limits(limits)
    groups = solve_many(
        solvable, "decomposed", threads, fewer, False, lambda done, _: report((n + done) // 2, n)
    )
    if not groups.solved.any():
        raise MaskobanError(f"none of {n:,} levels was solved, so they are no reference for difficulties")
    numbers: dict[str, NDArray[np.integer[Any]]] = {
        "effort": effort.expanded[effort.solved],
        "decomposed": groups.expanded[groups.solved],
        "pushes": effort.pushes[effort.solved],
    }
    return {
        "levels": len(solvable),
        "mean_walls": round(float((solvable == WALL).sum(axis=(1, 2)).mean()), 4),
        **{f"mean_{name}": round(float(each.mean()), 4) for name, each in numbers.items()},
        **{f"{name}_percentiles": percentiles(each) for name, each in numbers.items()},
        "boxes_at_once": np.bincount(groups.boxes_at_once[groups.solved]).tolist(),
    }


def quartiles_of(summary: Mapping[str, Any]) -> Quartiles:
    """The quartiles by which boards are rated, of a corpus that was summarised.

    >>> quartiles_of(summarise(np.array([[[2, 3, 1, 4]]], dtype=np.uint8)))["effort"]
    [2, 2, 2]
    """
    return {name: [summary[f"{name}_percentiles"][at] for at in (25, 50, 75)] for name in MEASURES}


@cache
def boxoban_efforts() -> dict[str, Any]:
    """The summary of the Boxoban medium training levels, from boxoban_difficulty.json.

    >>> boxoban_efforts()["levels"]
    450000
    """
    text = files("maskoban.solving").joinpath("boxoban_difficulty.json").read_text(encoding="utf-8")
    summary: dict[str, Any] = json.loads(text)
    return summary


@cache
def boxoban_quartiles() -> Quartiles:
    """The quartiles of the Boxoban medium training levels."""
    return quartiles_of(boxoban_efforts())
