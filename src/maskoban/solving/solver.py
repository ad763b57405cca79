"""Is a board solvable, and how: the Python face of the native push solver.

A verdict is ``solved`` with a solution that can be replayed, ``unsolvable`` after an exhausted search or a
proof, ``unknown`` with the limit that stopped the search, or ``malformed`` with what is wrong. docs/solver.md
says how it works and defines effort.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban.boards import Level, MaskobanError, Tokens

MODES = ("any", "pushes", "effort")

LevelLike: TypeAlias = Level | NDArray[Any]


@dataclass(frozen=True)
class Limits:
    """What one search may use before it gives up with ``unknown``.

    ``states`` counts expanded states, ``megabytes`` bounds the memory of each thread's search, ``seconds`` is
    wall time a board. ``None`` means no limit.

    >>> Limits(states=1000).states
    1000
    """

    states: int | None = None
    megabytes: int = 1024
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.states is not None and self.states < 0:
            raise MaskobanError(f"a state limit cannot be negative, but is {self.states}")
        if self.megabytes < 1:
            raise MaskobanError(f"a memory limit must be at least 1 MB, but is {self.megabytes}")
        if self.seconds is not None and not self.seconds >= 0:
            raise MaskobanError(f"a time limit cannot be negative, but is {self.seconds}")


@dataclass(frozen=True)
class Result:
    """The verdict on one board; ``pushes`` and ``moves`` are -1 where there is no solution.

    ``reason`` says why a board is unknown or malformed, and how an unsolvable one was refuted where no
    search was needed.
    """

    verdict: str
    reason: str
    solution: str
    pushes: int
    moves: int
    expanded: int
    seconds: float

    @property
    def solved(self) -> bool:
        """Whether a solution was found."""
        return self.verdict == "solved"


@dataclass(frozen=True, eq=False)
class Results(Sequence[Result]):
    """The verdicts on many boards, one array a quantity; ``results[i]`` is the ``Result`` of board i.

    ``verdicts`` holds indices into ``Results.VERDICTS``; ``solutions`` is None when they were not asked for.
    """

    verdicts: NDArray[np.uint8]
    reasons: list[str]
    pushes: NDArray[np.int32]
    moves: NDArray[np.int32]
    expanded: NDArray[np.int64]
    seconds: NDArray[np.float32]
    solutions: list[str] | None

    VERDICTS: ClassVar[tuple[str, ...]] = ("solved", "unsolvable", "unknown", "malformed")

    @property
    def solved(self) -> NDArray[np.bool_]:
        """Which boards were solved."""
        return np.equal(self.verdicts, 0)

    def __len__(self) -> int:
        return len(self.verdicts)

    # Slices are left to NumPy on the arrays themselves.
    def __getitem__(self, index: int) -> Result:  # type: ignore[override]
        return Result(
            verdict=self.VERDICTS[self.verdicts[index]],
            reason=self.reasons[index],
            solution="" if self.solutions is None else self.solutions[index],
            pushes=int(self.pushes[index]),
            moves=int(self.moves[index]),
            expanded=int(self.expanded[index]),
            seconds=float(self.seconds[index]),
        )


def solve(level: LevelLike, mode: str = "any", limits: Limits | None = None) -> Result:
    """Solve one board: ``any`` solution fast, fewest ``pushes``, or measure its ``effort`` (``expanded``).

    >>> solve(Level.parse("#####\\n#@$.#\\n#####")).solution
    'R'
    """
    return solve_many([level], mode, threads=1, limits=limits)[0]


def solve_many(
    boards: NDArray[Any] | Sequence[LevelLike],
    mode: str = "any",
    threads: int | None = None,
    progress: bool = False,
    limits: Limits | None = None,
    solutions: bool = True,
) -> Results:
    """Solve an ``(n, h, w)`` array, or a sequence of boards of any sizes, on all cores or on ``threads``.

    ``progress`` shows a bar; Ctrl-C stops the whole batch; ``solutions=False`` saves building the texts.

    >>> solve_many([Level.parse("#####\\n#@$.#\\n#####")]).solved.tolist()
    [True]
    """
    if mode not in MODES:
        raise MaskobanError(f"unknown mode {mode!r}: expected any, pushes or effort")
    if threads is not None and threads < 1:
        raise MaskobanError(f"at least one thread is needed, but threads is {threads}")
    limits = limits or Limits()
    n = len(boards)
    found = Results(
        verdicts=np.zeros(n, np.uint8),
        reasons=[""] * n,
        pushes=np.zeros(n, np.int32),
        moves=np.zeros(n, np.int32),
        expanded=np.zeros(n, np.int64),
        seconds=np.zeros(n, np.float32),
        solutions=[""] * n if solutions else None,
    )
    with _bar(n, progress) as bar:
        for where, stack in _by_shape(boards):
            part = _core.solve_boards(
                stack,
                MODES.index(mode),
                -1 if limits.states is None else limits.states,
                limits.megabytes,
                -1.0 if limits.seconds is None else limits.seconds,
                threads or _cores(),
                solutions,
                bar.show if progress else None,
            )
            bar.finish(len(where))
            found.verdicts[where] = part["verdicts"]
            found.pushes[where] = part["pushes"]
            found.moves[where] = part["moves"]
            found.expanded[where] = part["expanded"]
            found.seconds[where] = part["seconds"]
            for i, reason in zip(where, part["reasons"], strict=True):
                found.reasons[i] = reason
            if found.solutions is not None and part["solutions"] is not None:
                for i, solution in zip(where, part["solutions"], strict=True):
                    found.solutions[i] = solution
    return found


def dead_cells(level: LevelLike) -> NDArray[np.bool_]:
    """The cells from which no box could ever reach a goal, looking at walls only; walls count as dead too.

    >>> dead_cells(Level.parse("######\\n#@$. #\\n######"))[1].tolist()
    [True, True, False, False, True, True]
    """
    return _core.dead_cells(_tokens(level))


def _tokens(level: LevelLike) -> Tokens:
    """A contiguous (h, w) array of tokens."""
    board = level.tokens if isinstance(level, Level) else level
    return _checked(board, dimensions=2)


def _checked(boards: NDArray[Any], dimensions: int) -> Tokens:
    array = np.asarray(boards)
    if array.ndim != dimensions:
        wanted = "(h, w)" if dimensions == 2 else "(n, h, w)"
        raise MaskobanError(f"boards must have shape {wanted}, but this array has shape {array.shape}")
    if array.dtype != np.uint8:
        whole = np.issubdtype(array.dtype, np.integer)
        if not whole or (array.size and not 0 <= array.min() <= array.max() <= 255):
            raise MaskobanError("boards must hold tile numbers from 0 to 7")
        array = array.astype(np.uint8)
    return np.ascontiguousarray(array)


def _by_shape(boards: NDArray[Any] | Sequence[LevelLike]) -> Iterator[tuple[NDArray[np.int64], Tokens]]:
    """Batches of equal shape, each with the places of its boards in the whole."""
    if isinstance(boards, np.ndarray):
        if len(boards):
            yield np.arange(len(boards)), _checked(boards, dimensions=3)
        return
    tokens = [_tokens(board) for board in boards]
    places: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, board in enumerate(tokens):
        places[board.shape].append(i)
    for where in places.values():
        yield np.array(where), np.stack([tokens[i] for i in where])


def _cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Bar:
    """No bar at all; what is drawn on a terminal overrides ``draw``."""

    def __init__(self) -> None:
        self._before = 0

    def show(self, done: int) -> None:
        """So many boards of the batch at hand are done."""
        self.draw(self._before + done)

    def finish(self, size: int) -> None:
        """The batch at hand, of so many boards, is done."""
        self._before += size
        self.draw(self._before)

    def draw(self, done: int) -> None:
        pass


@contextmanager
def _bar(total: int, wanted: bool) -> Iterator[_Bar]:
    """A progress bar on the error stream, or nothing."""
    if not wanted:
        yield _Bar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("solving"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("solving", total=total)

        class Drawn(_Bar):
            def draw(self, done: int) -> None:
                shown.update(task, completed=done)

        yield Drawn()
