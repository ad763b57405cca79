"""From a range of a seed's sequence to the rows of a dataset: draw, judge, mend, rate, identify.

Nothing here depends on who calls it, on how many do, or on when: the same shard of the same job always gives
the same rows. Both engines, and the benchmark, call these functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import FLOOR, WALL, Tokens, exact_ids, ids
from maskoban.boards.rows import texts
from maskoban.bulk.job import Job, Origin, Shard
from maskoban.diffusion.model import Model
from maskoban.solving import Limits, Results, repair_many, solve_many, word_for
from maskoban.solving.picking import Wishes
from maskoban.solving.rating import WORDS

#: One array or list a column, by name; a column is described in ``table``.
Columns = dict[str, Any]

_SOLVED, _UNSOLVABLE = Results.VERDICTS.index("solved"), Results.VERDICTS.index("unsolvable")


def draw(model: Model, job: Job, shard: Shard) -> Tokens:
    """The boards of a shard, (count, height, width).

    >>> from maskoban.bulk.models import load_model
    >>> draw(load_model("best", Job(2, steps=1)), Job(2, steps=1), Shard(0, 0, 2)).shape
    (2, 10, 10)
    """
    return model.sample(shard.count, shard.seed, first=shard.first, **job.how)


def judge(boards: Tokens, job: Job, shard: Shard, origin: Origin) -> Columns:
    """Every column of the rows of a shard: of all boards, or of those the job keeps.

    >>> from maskoban.boards import Level
    >>> board = Level.parse("#####\\n#@$.#\\n#####").tokens[None]
    >>> judge(board, Job(1), Shard(0, 0, 1), Origin("none", "0", "0"))["solution"]
    ['R']
    """
    fitting = np.flatnonzero(Wishes(boxes=job.boxes).met(boards))
    found = _verdicts(boards[fitting], fitting, job)
    if job.only_solvable or job.difficulty is not None:
        found = found.only(np.flatnonzero(found.verdicts == _SOLVED))
    columns = _described(found, shard) | _rated(found, job)
    if job.difficulty is not None:
        wanted = [i for i, word in enumerate(columns["rating"]) if word == job.difficulty]
        columns = {name: _picked(column, wanted) for name, column in columns.items()}
    n = len(columns["board"])
    columns["seed"] = np.full(n, shard.seed, np.int64)
    columns["model"], columns["weights"] = [origin.model] * n, [origin.weights] * n
    columns["version"] = [origin.version] * n
    return columns


@dataclass(frozen=True)
class _Found:
    """Boards, mended where the job says so, and what the fastest search found about them."""

    boards: Tokens
    places: NDArray[np.int64]  # in the shard
    verdicts: NDArray[np.uint8]
    reasons: list[str]
    solutions: list[str]
    removed: list[list[int]]  # walls taken away, as cells counted row by row

    def only(self, which: NDArray[np.int64]) -> _Found:
        chosen = which.tolist()
        return _Found(
            self.boards[which],
            self.places[which],
            self.verdicts[which],
            [self.reasons[i] for i in chosen],
            [self.solutions[i] for i in chosen],
            [self.removed[i] for i in chosen],
        )


def _verdicts(boards: Tokens, places: NDArray[np.int64], job: Job) -> _Found:
    limits = Limits(states=job.states)
    results = solve_many(boards, threads=1, limits=limits)
    assert results.solutions is not None
    verdicts, reasons, solutions = results.verdicts.copy(), list(results.reasons), list(results.solutions)
    removed: list[list[int]] = [[] for _ in boards]
    broken = np.flatnonzero(verdicts == _UNSOLVABLE)
    if job.repair and len(broken):
        boards = boards.copy()
        width = boards.shape[2]
        repairs = repair_many(boards[broken], threads=1, limits=limits)
        mended = [i for i, cure in zip(broken.tolist(), repairs, strict=True) if cure.walls]
        for i, cure in zip(broken.tolist(), repairs, strict=True):
            for row, column in cure.walls[0] if cure.walls else ():
                boards[i, row, column] = FLOOR
                removed[i].append(row * width + column)
        again = solve_many(boards[mended], threads=1, limits=limits)
        for i, result in zip(mended, again, strict=True):
            verdicts[i] = Results.VERDICTS.index(result.verdict)
            reasons[i], solutions[i] = result.reason, result.solution
    return _Found(boards, places, verdicts, reasons, solutions, removed)


def _described(found: _Found, shard: Shard) -> Columns:
    """What needs no search."""
    boards = found.boards
    return {
        "id": ids(boards),
        "exact_id": exact_ids(boards),
        "board": texts(boards),
        "tokens": boards.reshape(len(boards), boards.shape[1] * boards.shape[2]),  # there may be none
        "verdict": [Results.VERDICTS[verdict] for verdict in found.verdicts.tolist()],
        "walls": (boards == WALL).sum((1, 2)).astype(np.int16),
        "repaired": found.removed,
        "number": shard.first + found.places,
    }


def _rated(found: _Found, job: Job) -> Columns:
    """The best solution of every solved board, its length, the effort to find it, and the word for that."""
    limits = Limits(states=job.states)
    n = len(found.boards)
    solutions: list[str | None] = [None] * n
    ratings: list[str | None] = [None] * n
    reasons: list[str | None] = [reason or None for reason in found.reasons]
    efforts: list[int | None] = [None] * n
    solved = np.flatnonzero(found.verdicts == _SOLVED)
    shortest = solve_many(found.boards[solved], "pushes", threads=1, limits=limits)
    plain = solve_many(found.boards[solved], "effort", threads=1, limits=limits)
    for i, best, effort in zip(solved.tolist(), shortest, plain, strict=True):
        # Both searches end with the fewest pushes; where both gave up there is still the solution found first.
        solutions[i] = best.solution or effort.solution or found.solutions[i]
        reasons[i] = effort.reason or best.reason or None
        word = word_for(effort.expanded)
        if effort.solved:
            efforts[i], ratings[i] = effort.expanded, word
        elif word == WORDS[-1]:  # a search that gave up proves that the effort is larger
            ratings[i] = word
    return {
        "reason": reasons,
        "solution": solutions,
        "pushes": [None if s is None else sum(map(str.isupper, s)) for s in solutions],
        "moves": [None if s is None else len(s) for s in solutions],
        "effort": efforts,
        "rating": ratings,
    }


def _picked(column: Any, which: list[int]) -> Any:
    return column[which] if isinstance(column, np.ndarray) else [column[i] for i in which]
