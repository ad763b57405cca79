"""Which walls to take away so that an unsolvable board can be solved.

An interior wall is a wall cell that lies neither in the first or last row nor in the first or last column of
the grid, and none of whose four neighbours lies outside. Outside is the blank around a ragged level: floor
open to the edge of the grid from which there is no way to a player, box or goal. So neither the rim nor the hull
of a level is ever opened, not even by a pair of walls, since what goes touches nothing outside; a wall that
touches the outside at a corner only may go. A board walled to its rim has no outside.

Taking an interior wall away leaves a floor tile. A solvable board cannot become unsolvable that way, because
every solution stays legal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban.bars import bar
from maskoban.boards import Level, MaskobanError
from maskoban.boards.areas import beside, outside, rim
from maskoban.boards.batches import by_shape
from maskoban.boards.tiles import FLOOR, WALL, Tokens
from maskoban.solving.solver import LevelLike, Limits, Results, gather, solve_many

Cell = tuple[int, int]
Solve = Callable[[Tokens], Results]

# How many boards are judged together: enough to keep every core busy, few enough to bound the memory. Where
# the first cure ends a board's trials, fewer, because trials beyond it are wasted.
_BATCH, _BATCH_FOR_FIRST = 4096, 64


@dataclass(frozen=True)
class Repair:
    """How a board is mended.

    ``verdict`` is "solvable" (nothing to mend), "repaired" (see ``walls``), "unrepaired" (proved: no removal
    of so few walls helps), "unknown" (a limit, named in ``reason``, stopped a search that mattered) or
    "malformed" (no wall can cure it; ``reason`` says what is wrong). Each entry of ``walls`` is one cure:
    the (row, column) cells to be taken away together. In a "repaired" board ``reason`` is empty unless
    some removals stayed undecided.
    """

    verdict: str
    reason: str = ""
    walls: tuple[tuple[Cell, ...], ...] = ()

    def apply(self, level: LevelLike) -> Level:
        """The level without the walls of its first cure; as it is where there is none.

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
    Repair(verdict='repaired', reason='', walls=(((1, 3),),))
    """
    return repair_many([level], walls, all, threads, limits=limits)[0]


def repair_many(
    boards: NDArray[Any] | Iterable[LevelLike],
    walls: int = 1,
    all: bool = False,
    threads: int | None = None,
    progress: bool = False,
    limits: Limits | None = None,
) -> list[Repair]:
    """`repair` for a whole batch on all cores: an (n, h, w) array, or levels of any sizes.

    >>> closed, open_ = "#####\\n#@#.#\\n# $ #\\n#####", "#####\\n#@$.#\\n#   #\\n#####"
    >>> [each.verdict for each in repair_many([Level.parse(closed), Level.parse(open_)])]
    ['unrepaired', 'solvable']
    """
    if walls not in (1, 2):
        raise MaskobanError(f"walls must be 1 or 2, not {walls}")
    tokens = gather(boards)
    repairs = [Repair("unknown")] * len(tokens)
    solve = partial(solve_many, threads=threads, limits=limits, solutions=False)
    done = 0
    with bar("repairing", len(tokens), progress) as show:
        for where, stack in by_shape(tokens):
            for first in range(0, len(stack), _BATCH):
                some = slice(first, first + _BATCH)
                mended = _repair_batch(stack[some], walls, all, solve)
                for i, each in zip(where[some].tolist(), mended, strict=True):
                    repairs[i] = each
                done += len(mended)
                show(done)
    return repairs


def interior_walls(tokens: Tokens) -> list[Cell]:
    """The walls of a board that are neither on its rim nor beside what lies outside, in reading order.

    >>> interior_walls(Level.parse("#####\\n#@# #\\n#####").tokens)
    [(1, 2)]
    >>> interior_walls(Level.parse("\\n".join(["      ", " #### ", " #@#  ", " ###  ", "      "])).tokens)
    []
    """
    walls = (tokens == WALL) & ~rim(tokens)
    walls &= ~beside(outside(tokens))
    return [(row, column) for row, column in np.argwhere(walls).tolist()]


def _repair_batch(boards: Tokens, walls: int, every: bool, solve: Solve) -> list[Repair]:
    as_given = {"solved": "solvable", "unsolvable": "unrepaired"}
    repairs = [
        Repair(as_given.get(result.verdict, result.verdict), result.reason) for result in solve(boards)
    ]
    for size in range(1, walls + 1):
        # Pairs are of interest only where every single wall is proved not to help.
        broken = [i for i, each in enumerate(repairs) if each.verdict == "unrepaired"]
        for i, mended in _cures(boards, broken, size, every, solve).items():
            repairs[i] = mended
    return repairs


def _cures(boards: Tokens, broken: list[int], size: int, every: bool, solve: Solve) -> dict[int, Repair]:
    """Try all removals of ``size`` walls on the broken boards, in rounds over those that still wait."""
    cures: dict[int, list[tuple[Cell, ...]]] = {i: [] for i in broken}
    undecided: dict[int, list[str]] = {i: [] for i in broken}
    waiting = {i: _removals(boards[i], size) for i in broken}
    while waiting:
        share = max(1, (_BATCH if every else _BATCH_FOR_FIRST) // len(waiting))
        trials = [(i, cells) for i, removals in waiting.items() for cells in islice(removals, share)]
        variants = boards[[i for i, _ in trials]]
        for variant, (_, cells) in zip(variants, trials, strict=True):
            for cell in cells:
                variant[cell] = FLOOR
        for (i, cells), result in zip(trials, solve(variants), strict=True):
            if cures[i] and not every:
                continue
            if result.solved:
                cures[i].append(cells)
            elif result.verdict == "unknown":
                undecided[i].append(result.reason)
        tried = {i for i, _ in trials}
        waiting = {i: left for i, left in waiting.items() if i in tried and (every or not cures[i])}
    return {i: _conclude(cures[i], undecided[i]) for i in broken}


def _conclude(cures: list[tuple[Cell, ...]], undecided: list[str]) -> Repair:
    reason = ""
    if undecided:
        reason = f"{len(undecided)} removal{'s' * (len(undecided) > 1)} undecided: {undecided[0]}"
    if cures:
        return Repair("repaired", reason, tuple(cures))
    return Repair("unknown" if undecided else "unrepaired", reason)


def _removals(board: Tokens, size: int) -> Iterator[tuple[Cell, ...]]:
    """All sets of ``size`` interior walls in reading order, less those that change nothing.

    A wall with only walls around it opens nothing when it goes, so the rest of its set would do as well.
    """
    open_beside = beside(board != WALL)
    for cells in combinations(interior_walls(board), size):
        opening = [cell for cell in cells if open_beside[cell]]
        if opening and all(cell in opening or _touch(cell, opening[0]) for cell in cells):
            yield cells


def _touch(one: Cell, other: Cell) -> bool:
    return abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1
