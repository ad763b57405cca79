"""Repair an unsolvable board by removing interior walls.

An interior wall is a wall cell that lies neither in the first or last row nor in the first or last column of
the grid, and none of whose four neighbours lies outside. Outside is the blank around a ragged level: floor
open to the edge of the grid from which there is no way to a player, box or goal. So the border of a level is
never opened, not even by a pair of walls; a wall that touches the outside only at a corner may be removed. A
board with walls along its whole border has no outside.

A removed wall becomes floor. A solvable board cannot become unsolvable that way, because every solution stays
legal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban._util.progress import OnProgress
from maskoban.boards import Level
from maskoban.boards.geometry import border, exterior, group_by_shape, neighbours
from maskoban.boards.tiles import FLOOR, WALL, Tokens
from maskoban.errors import MaskobanError
from maskoban.solving.solver import LevelLike, LimitHit, Limits, Result, Results, gather, solve_many

Cell = tuple[int, int]
Solve = Callable[[Tokens], Results]

# Boards solved together: enough to keep every core busy, few enough to bound the memory. Fewer where the first
# fix is enough, because trials beyond it are wasted.
_BATCH, _BATCH_FOR_FIRST = 4096, 64


@dataclass(frozen=True)
class Repair:
    """The result of `repair`.

    ``verdict`` is "solvable" (no repair needed), "repaired" (see ``walls``), "unrepaired" (proved: no removal
    of so few walls helps), "unknown" (a limit stopped a search that mattered; see ``reason`` and ``limit_hit``)
    or "malformed" (``reason`` says what is wrong). Each entry of ``walls`` is one fix: the (row, column) cells to
    remove together. A "repaired" board has a ``reason`` only where some removals stayed undecided.
    """

    verdict: str
    reason: str = ""
    walls: tuple[tuple[Cell, ...], ...] = ()
    limit_hit: LimitHit | None = None

    def apply(self, level: LevelLike) -> Level:
        """The level without the walls of its first fix; the same level where there is none.

        >>> level = Level.parse("#######\\n#@$#.##\\n#######")
        >>> print(repair(level).apply(level))
        #######
        #@$ .##
        #######
        """
        level = level if isinstance(level, Level) else Level(np.asarray(level))
        if not self.walls:
            return level
        tokens = level.tokens.copy()
        for cell in self.walls[0]:
            tokens[cell] = FLOOR
        return replace(level, tokens=tokens)


def repair(
    level: LevelLike,
    walls: int = 1,
    all: bool = False,
    threads: int | None = None,
    limits: Limits | None = None,
) -> Repair:
    """The interior wall whose removal makes an unsolvable level solvable: the first in reading order, or all.

    With ``walls=2``, pairs of walls are tried where no single one helps.

    >>> repair(Level.parse("#######\\n#@$#.##\\n#######"))
    Repair(verdict='repaired', reason='', walls=(((1, 3),),), limit_hit=None)
    """
    return repair_many([level], walls, all, threads, limits=limits)[0]


def repair_many(
    boards: NDArray[Any] | Iterable[LevelLike],
    walls: int = 1,
    all: bool = False,
    threads: int | None = None,
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
) -> list[Repair]:
    """`repair` for a whole batch on all cores: an (n, h, w) array, or levels of any sizes.

    >>> closed, open_ = "#####\\n#@#.#\\n# $ #\\n#####", "#####\\n#@$.#\\n#   #\\n#####"
    >>> [each.verdict for each in repair_many([Level.parse(closed), Level.parse(open_)])]
    ['unrepaired', 'solvable']
    """
    if walls not in (1, 2):
        raise MaskobanError(f"walls: expected 1 or 2, got {walls}")
    tokens = gather(boards)
    repairs = [Repair("unknown")] * len(tokens)
    solve = partial(solve_many, threads=threads, limits=limits, solutions=False)
    done = 0
    for where, stack in group_by_shape(tokens):
        for first in range(0, len(stack), _BATCH):
            some = slice(first, first + _BATCH)
            for i, each in zip(
                where[some].tolist(), _repair_batch(stack[some], walls, all, solve), strict=True
            ):
                repairs[i] = each
            done += len(where[some])
            if on_progress is not None:
                on_progress(done, len(tokens))
    return repairs


def interior_walls(tokens: Tokens) -> list[Cell]:
    """The walls of a board that are neither on its border nor beside the outside, in reading order.

    >>> interior_walls(Level.parse("#####\\n#@# #\\n#####").tokens)
    [(1, 2)]
    >>> interior_walls(Level.parse("\\n".join(["      ", " #### ", " #@#  ", " ###  ", "      "])).tokens)
    []
    """
    walls = (tokens == WALL) & ~border(tokens)
    walls &= ~neighbours(exterior(tokens))
    return [(row, column) for row, column in np.argwhere(walls).tolist()]


def _repair_batch(boards: Tokens, walls: int, every: bool, solve: Solve) -> list[Repair]:
    verdicts = {"solved": "solvable", "unsolvable": "unrepaired"}
    repairs = [
        Repair(verdicts.get(result.verdict, result.verdict), result.reason, limit_hit=result.limit_hit)
        for result in solve(boards)
    ]
    for size in range(1, walls + 1):
        # Pairs matter only where every single wall is proved not to help.
        unsolvable = [i for i, each in enumerate(repairs) if each.verdict == "unrepaired"]
        for i, repaired in _fixes(boards, unsolvable, size, every, solve).items():
            repairs[i] = repaired
    return repairs


def _fixes(boards: Tokens, unsolvable: list[int], size: int, every: bool, solve: Solve) -> dict[int, Repair]:
    """Try all removals of ``size`` walls on the unsolvable boards, in rounds over those not finished."""
    fixes: dict[int, list[tuple[Cell, ...]]] = {i: [] for i in unsolvable}
    undecided: dict[int, list[Result]] = {i: [] for i in unsolvable}
    waiting = {i: _removals(boards[i], size) for i in unsolvable}
    while waiting:
        share = max(1, (_BATCH if every else _BATCH_FOR_FIRST) // len(waiting))
        trials = [(i, cells) for i, removals in waiting.items() for cells in islice(removals, share)]
        variants = boards[[i for i, _ in trials]]
        for variant, (_, cells) in zip(variants, trials, strict=True):
            for cell in cells:
                variant[cell] = FLOOR
        for (i, cells), result in zip(trials, solve(variants), strict=True):
            if fixes[i] and not every:
                continue
            if result.solved:
                fixes[i].append(cells)
            elif result.limit_hit is not None:
                undecided[i].append(result)
        tried = {i for i, _ in trials}
        waiting = {i: left for i, left in waiting.items() if i in tried and (every or not fixes[i])}
    return {i: _conclude(fixes[i], undecided[i]) for i in unsolvable}


def _conclude(fixes: list[tuple[Cell, ...]], undecided: list[Result]) -> Repair:
    if not undecided:
        return Repair("repaired" if fixes else "unrepaired", walls=tuple(fixes))
    reason = f"{len(undecided)} removal{'s' * (len(undecided) > 1)} undecided: {undecided[0].reason}"
    return Repair("repaired" if fixes else "unknown", reason, tuple(fixes), undecided[0].limit_hit)


def _removals(board: Tokens, size: int) -> Iterator[tuple[Cell, ...]]:
    """All sets of ``size`` interior walls in reading order, without those that change nothing.

    The removal of a wall with only walls around it opens nothing, so the rest of its set would do as well.
    """
    open_beside = neighbours(board != WALL)
    for cells in combinations(interior_walls(board), size):
        opening = [cell for cell in cells if open_beside[cell]]
        if opening and all(cell in opening or _touch(cell, opening[0]) for cell in cells):
            yield cells


def _touch(one: Cell, other: Cell) -> bool:
    return abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1
