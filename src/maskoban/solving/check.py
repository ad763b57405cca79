"""Whether a collection is in order: its solutions replayed, and levels that are there twice, or nearly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Level, canonical_text, name_of, symmetries
from maskoban.boards.level import level_ids
from maskoban.errors import MaskobanError
from maskoban.solving.replay import count, pushing_sessions, solves

#: Levels are near-duplicates if at most so many cells differ.
NEAR = 4

# Candidates compared for one level: boards that share a part of their cells, the last ones first.
_MOST_CANDIDATES = 200


@dataclass(frozen=True)
class CheckedSolution:
    """A solution that a file gives: whether it solves its level, why not, and its length in every measure."""

    name: str
    solves: bool
    problem: str
    moves: int
    pushes: int
    box_changes: int
    box_lines: int
    pushing_sessions: int


@dataclass(frozen=True)
class Twin:
    """An earlier level that is the same puzzle, or differs in ``cells`` cells."""

    index: int
    cells: int


def check_solutions(level: Level) -> list[CheckedSolution]:
    """The solutions of a level, replayed.

    >>> check_solutions(Level(Level.parse("#@$.#").tokens, solutions=("R", "rr")))[1].problem
    "step 0 ('r'): this pushes a box, written 'R'"
    """
    found = []
    for lurd in level.solutions:
        problem = ""
        try:
            problem = "" if solves(level, lurd) else "boxes are left off the goals"
        except MaskobanError as error:
            problem = str(error)
        counts = count(lurd)
        measures = counts.moves, counts.pushes, counts.box_changes, counts.box_lines, pushing_sessions(lurd)
        found.append(CheckedSolution(name_of(lurd), not problem, problem, *measures))
    return found


def best(solutions: Sequence[CheckedSolution], by: str) -> CheckedSolution | None:
    """The shortest solution that works, by moves or pushes; of equal ones, the shorter by the other."""
    other = "moves" if by == "pushes" else "pushes"
    good = [solution for solution in solutions if solution.solves]
    return min(good, key=lambda each: (getattr(each, by), getattr(each, other)), default=None)


def twins(levels: Sequence[Level]) -> Iterator[Twin | None]:
    """For each level an earlier one that is the same puzzle, rotated, mirrored or shifted, or nearly the same.

    >>> rows = ("#@ $ .#", "#. $ @#", "#@ $. #")
    >>> same = [Level.parse(f"#######\\n{row}\\n#######") for row in rows]
    >>> [twin.cells for twin in twins(same) if twin]
    [0, 2]
    """
    seen: dict[str, int] = {}
    parts: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    boards: list[list[NDArray[np.uint8]]] = []
    for index, (level, level_id) in enumerate(zip(levels, level_ids(levels), strict=True)):
        turned = _symmetric(level)
        boards.append(turned)
        if level_id in seen:
            yield Twin(seen[level_id], 0)
            continue
        seen[level_id] = index
        yield _nearest(turned[0], parts, boards)
        for turn, board in enumerate(turned):
            for key in _parts(board):
                parts.setdefault(key, []).append((index, turn))


def _symmetric(level: Level) -> list[NDArray[np.uint8]]:
    """The eight symmetries of a board in its standard form, as letters."""
    rows = canonical_text(level.tokens).split("\n")[:-1]
    grid = np.array([list(row.encode()) for row in rows] or [[35]], np.uint8)
    return [np.ascontiguousarray(board[0]) for board in symmetries(grid[None])]


def _parts(board: NDArray[np.uint8]) -> Iterator[tuple[object, ...]]:
    """Every (NEAR + 1)th cell: of boards that differ in NEAR cells, at least one of these parts is equal."""
    cells = board.ravel()
    for part in range(NEAR + 1):
        yield board.shape, part, cells[part :: NEAR + 1].tobytes()


def _nearest(
    board: NDArray[np.uint8],
    parts: dict[tuple[object, ...], list[tuple[int, int]]],
    boards: list[list[NDArray[np.uint8]]],
) -> Twin | None:
    best: Twin | None = None
    for key in _parts(board):
        for index, turn in parts.get(key, [])[-_MOST_CANDIDATES:]:
            cells = int(np.count_nonzero(boards[index][turn] != board))
            if cells <= NEAR and (best is None or cells < best.cells):
                best = Twin(index, cells)
    return best
