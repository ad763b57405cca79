"""Is a board solvable, and how: the Python face of the native push solver.

A verdict is ``solved`` with a solution that can be replayed, ``unsolvable`` after an exhausted search or a
proof, ``unknown`` with the limit that stopped the search, or ``malformed`` with what is wrong. docs/solver.md
says how it works and defines effort.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban.bars import bar
from maskoban.boards import Level, MaskobanError, Tokens
from maskoban.boards.batches import by_shape
from maskoban.solving.threads import threads_for

MODES = ("any", "pushes", "effort")

LevelLike: TypeAlias = Level | NDArray[Any]

# What the native core can count to; a larger limit is no limit.
_MOST_STATES, _MOST_MEGABYTES, _MOST_SECONDS = 2**63 - 1, 2**40, 1e9


@dataclass(frozen=True)
class Limits:
    """What one search may use before it gives up with ``unknown``.

    ``states`` counts expanded states, ``megabytes`` bounds the memory of each thread's search, ``seconds`` is
    wall time a board; the clock is looked at now and then, so a trivial board may be solved within
    ``seconds=0``. ``None`` means no limit.

    >>> Limits(states=1000).states
    1000
    """

    states: int | None = None
    megabytes: int = 1024
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.states is not None and not _is_count(self.states, least=0):
            raise MaskobanError(f"a state limit must be a whole number, 0 or more, but is {self.states!r}")
        if not _is_count(self.megabytes, least=1):
            raise MaskobanError(
                f"a memory limit must be a whole number of MB, 1 or more, but is {self.megabytes!r}"
            )
        if self.seconds is not None and not (isinstance(self.seconds, Real) and self.seconds >= 0):
            raise MaskobanError(
                f"a time limit must be a number of seconds, 0 or more, but is {self.seconds!r}"
            )


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

    def as_json(self) -> dict[str, Any]:
        """By name, with None for what only a solution has."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "pushes": self.pushes if self.solved else None,
            "moves": self.moves if self.solved else None,
            "solution": self.solution if self.solved else None,
            "expanded": self.expanded,
            "seconds": round(self.seconds, 6),
        }


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

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Results: ...
    def __getitem__(self, index: int | slice) -> Result | Results:
        if isinstance(index, slice):
            return Results(
                self.verdicts[index],
                self.reasons[index],
                self.pushes[index],
                self.moves[index],
                self.expanded[index],
                self.seconds[index],
                None if self.solutions is None else self.solutions[index],
            )
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
    boards: NDArray[Any] | Iterable[LevelLike],
    mode: str = "any",
    threads: int | None = None,
    progress: bool = False,
    limits: Limits | None = None,
    solutions: bool = True,
) -> Results:
    """Solve an ``(n, h, w)`` array, or boards of any sizes one after another, on all cores or on ``threads``.

    ``progress`` shows a bar; Ctrl-C stops the whole batch; ``solutions=False`` saves building the texts.

    >>> solve_many([Level.parse("#####\\n#@$.#\\n#####")]).solved.tolist()
    [True]
    """
    if mode not in MODES:
        raise MaskobanError(f"unknown mode {mode!r}: expected any, pushes or effort")
    threads = threads_for(threads)
    limits = limits or Limits()
    boards = gather(boards)
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
    done = 0
    with bar("solving", n, progress) as show:
        for where, stack in by_shape(boards):

            def tell(of_these: int, before: int = done) -> None:
                show(before + of_these)

            part = _core.solve_boards(
                stack,
                MODES.index(mode),
                -1 if limits.states is None else min(int(limits.states), _MOST_STATES),
                min(int(limits.megabytes), _MOST_MEGABYTES),
                -1.0 if limits.seconds is None else float(min(limits.seconds, _MOST_SECONDS)),
                threads,
                solutions,
                tell if progress else None,
            )
            done += len(where)
            show(done)
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


def gather(boards: NDArray[Any] | Iterable[LevelLike]) -> Tokens | list[Tokens]:
    """The tokens of many boards, checked: an (n, h, w) array stays one, all else becomes a list.

    >>> [tokens.shape for tokens in gather(Level.parse(text) for text in ("#@$.#", "@$."))]
    [(1, 5), (1, 3)]
    """
    if isinstance(boards, np.ndarray):
        return _checked(boards, dimensions=3)
    if isinstance(boards, str | Level) or not isinstance(boards, Iterable):
        raise MaskobanError(f"many boards are wanted, but this is one {type(boards).__name__}")
    return [_tokens(board) for board in boards]


def _is_count(number: object, least: int) -> bool:
    return isinstance(number, Integral) and int(number) >= least


def _tokens(level: LevelLike) -> Tokens:
    """A contiguous (h, w) array of tokens."""
    if isinstance(level, str):
        raise MaskobanError("a board is a Level or an array, not text: use Level.parse")
    board = level.tokens if isinstance(level, Level) else level
    return _checked(board, dimensions=2)


def _checked(boards: NDArray[Any], dimensions: int) -> Tokens:
    try:
        array = np.asarray(boards)
    except ValueError:
        raise MaskobanError("the rows of a board must be equally long") from None
    if array.ndim != dimensions:
        wanted = "(h, w)" if dimensions == 2 else "(n, h, w)"
        raise MaskobanError(f"boards must have shape {wanted}, but this array has shape {array.shape}")
    if array.dtype != np.uint8:
        whole = np.issubdtype(array.dtype, np.integer)
        if not whole or (array.size and not 0 <= array.min() <= array.max() <= 255):
            raise MaskobanError("boards must hold tile numbers from 0 to 7")
        array = array.astype(np.uint8)
    return np.ascontiguousarray(array)
