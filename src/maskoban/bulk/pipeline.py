"""From a shard to the rows of a dataset: sample boards, solve, repair and rate them.

The same shard of the same job always gives the same rows, in whatever process. Both engines and the benchmark call
these functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from maskoban.boards import FLOOR, WALL, Tokens, exact_ids, ids
from maskoban.boards.tiles import board_texts, object_counts, tile_counts
from maskoban.bulk.job import Job, Origin, Shard
from maskoban.diffusion.model import Model
from maskoban.solving import Limits, Result, count, repair_many, solve_many
from maskoban.solving.filters import BoardFilter
from maskoban.solving.rating import difficulties_with

#: One array or list a column, by name. ``table.py`` describes them.
Columns = dict[str, Any]


def sample(model: Model, job: Job, shard: Shard) -> Tokens:
    """The boards of a shard, (count, height, width).

    >>> from maskoban.diffusion.loading import load
    >>> from maskoban.diffusion.sampler import SAMPLERS
    >>> sample(load("best"), Job(2, sampler=SAMPLERS["fast"]), Shard(0, 0, 2)).shape
    (2, 10, 10)
    """
    if job.conditions is not None:
        wanted = job.conditions
        size = wanted.height, wanted.width
        model = model.given(size, wanted.boxes, wanted.difficulty, wanted.corpus, wanted.guidance)
    return model.sample(shard.count, shard.seed, job.sampler, first=shard.first)


def annotate(boards: Tokens, job: Job, shard: Shard, origin: Origin) -> Columns:
    """The rows of a shard: one for every board that matches the job's filter.

    >>> from maskoban.boards import Level
    >>> board = Level.parse("#####\\n#@$.#\\n#####").tokens[None]
    >>> annotate(board, Job(1), Shard(0, 0, 1), Origin("none", "0", "0"))["solution"]
    ['R']
    """
    wanted, limits = job.board_filter, Limits(states=job.states)
    places = np.flatnonzero(BoardFilter(boxes=wanted.boxes).matches(boards))
    boards = boards[places]  # a copy, which repairs change
    results = list(solve_many(boards, threads=1, limits=limits))
    removed: list[list[int]] = [[] for _ in results]
    if job.repair:
        _repair(boards, results, removed, limits)
    ratings = list(_rate(boards, results, limits))
    need_solution = wanted.only_solvable or wanted.difficulty is not None
    kept = [
        i
        for i, rating in enumerate(ratings)
        if (results[i].solved or not need_solution) and wanted.difficulty in (None, rating["rating"])
    ]
    boards, n = boards[kept], len(kept)
    return {
        "id": ids(boards),
        "exact_id": exact_ids(boards),
        "board": board_texts(boards),
        "tokens": boards.reshape(n, boards.shape[1] * boards.shape[2]),
        "verdict": [results[i].verdict for i in kept],
        "walls": (boards == WALL).sum((1, 2)).astype(np.int16),
        "boxes": object_counts(tile_counts(boards))[0].astype(np.int16),
        "repaired": [removed[i] for i in kept],
        "seed": np.full(n, shard.seed, np.int64),
        "number": shard.first + places[kept],
        "model": [origin.model] * n,
        "weights": [origin.weights] * n,
        "version": [origin.version] * n,
    } | {name: [ratings[i][name] for i in kept] for name in _RATED}


def _repair(boards: Tokens, results: list[Result], removed: list[list[int]], limits: Limits) -> None:
    """Remove the first wall that makes an unsolvable board solvable, and solve it again; all in place."""
    unsolvable = [i for i, result in enumerate(results) if result.verdict == "unsolvable"]
    repairs = repair_many(boards[unsolvable], threads=1, limits=limits)
    repaired = []
    for i, repair in zip(unsolvable, repairs, strict=True):
        for row, column in repair.walls[0] if repair.walls else ():
            boards[i, row, column] = FLOOR
            removed[i].append(row * boards.shape[2] + column)
        if repair.walls:
            repaired.append(i)
    for i, result in zip(repaired, solve_many(boards[repaired], threads=1, limits=limits), strict=True):
        results[i] = result


_RATED = ("reason", "solution", "pushes", "moves", "box_lines", "effort", "rating")


def _rate(boards: Tokens, results: list[Result], limits: Limits) -> Iterator[dict[str, Any]]:
    """Of every board the columns ``_RATED``; without a solution only the reason is known."""
    solved = [i for i, result in enumerate(results) if result.solved]
    fewest_pushes, plain_search = (
        list(solve_many(boards[solved], mode, threads=1, limits=limits)) for mode in ("pushes", "effort")
    )
    words = difficulties_with(dict(enumerate(plain_search)), boards[solved], threads=1)
    rated = zip(fewest_pushes, plain_search, words, strict=True)
    for result in results:
        row: dict[str, Any] = dict.fromkeys(_RATED) | {"reason": result.reason or None}
        if result.solved:
            best, effort, word = next(rated)
            # Both searches end with the fewest pushes. Where both hit the limit, the first solution remains.
            solution = best.solution or effort.solution or result.solution
            counts = count(solution)
            row |= {"reason": effort.reason or best.reason or None, "solution": solution}
            row |= {"pushes": counts.pushes, "moves": counts.moves, "box_lines": counts.box_lines}
            row["rating"] = word or None
            if effort.solved:
                row["effort"] = effort.expanded
        yield row
