"""The Python interface of the native push solver.

A verdict is ``solved`` with a solution that can be replayed, ``unsolvable`` after an exhausted search or a
proof, ``unknown`` with the limit that stopped the search, or ``malformed`` with what is wrong. docs/solver.md
describes the search and defines effort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban._util.cpu import cpu_count
from maskoban._util.progress import OnProgress
from maskoban.boards import Level, Tokens
from maskoban.boards.geometry import group_by_shape
from maskoban.errors import MaskobanError

MODES = ("any", "pushes", "effort", "decomposed")

LevelLike: TypeAlias = Level | NDArray[Any]
LimitHit: TypeAlias = Literal["states", "memory", "time"]

# The largest values the native core can hold; a larger limit is no limit.
_MAX_STATES, _MAX_MEGABYTES, _MAX_SECONDS = 2**63 - 1, 2**40, 1e9
_MAX_THREADS = 256


@dataclass(frozen=True)
class Limits:
    """What one search may use before it gives up with ``unknown``.

    ``states`` counts expanded states, ``megabytes`` bounds the memory of each thread's search, ``seconds`` is
    wall time per board. The clock is read every few states, so a trivial board may be solved within
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

    @property
    def native_states(self) -> int:
        """The state limit as the native core takes it: negative for none."""
        return -1 if self.states is None else min(int(self.states), _MAX_STATES)

    @property
    def native_seconds(self) -> float:
        """The time limit as the native core takes it: negative for none."""
        return -1.0 if self.seconds is None else float(min(self.seconds, _MAX_SECONDS))


@dataclass(frozen=True)
class Result:
    """The verdict on one board; ``pushes`` and ``moves`` are -1 where there is no solution.

    ``reason`` says why a board is unknown or malformed, and how an unsolvable one was refuted where no
    search was needed. ``limit_hit`` is the limit that left a board unknown. ``expanded`` counts states; on a board
    solved in mode "effort" or "decomposed" it is the measure itself. ``boxes_at_once`` belongs to mode "decomposed"
    and is -1 in all others.
    """

    verdict: str
    reason: str
    solution: str
    pushes: int
    moves: int
    expanded: int
    seconds: float
    limit_hit: LimitHit | None = None
    boxes_at_once: int = -1

    @property
    def solved(self) -> bool:
        """Whether a solution was found."""
        return self.verdict == "solved"

    def as_json(self) -> dict[str, Any]:
        """The fields by name; what only a solution has is None without one."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "pushes": self.pushes if self.solved else None,
            "moves": self.moves if self.solved else None,
            "solution": self.solution if self.solved else None,
            "expanded": self.expanded,
            "seconds": round(self.seconds, 6),
            "limit_hit": self.limit_hit,
        }


@dataclass(frozen=True, eq=False)
class Results(Sequence[Result]):
    """The verdicts on many boards, one array per quantity; ``results[i]`` is the ``Result`` of board i.

    ``verdicts`` holds indices into ``Results.VERDICTS``, ``limits_hit`` into ``Results.LIMITS``; ``solutions`` is
    None after ``solve_many(..., solutions=False)``.
    """

    verdicts: NDArray[np.uint8]
    limits_hit: NDArray[np.uint8]
    reasons: list[str]
    pushes: NDArray[np.int32]
    moves: NDArray[np.int32]
    boxes_at_once: NDArray[np.int32]
    expanded: NDArray[np.int64]
    seconds: NDArray[np.float32]
    solutions: list[str] | None

    VERDICTS: ClassVar[tuple[str, ...]] = ("solved", "unsolvable", "unknown", "malformed")
    LIMITS: ClassVar[tuple[LimitHit | None, ...]] = (None, "states", "memory", "time")

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
            part: dict[str, Any] = {
                name: None if column is None else column[index] for name, column in vars(self).items()
            }
            return Results(**part)
        return Result(
            verdict=self.VERDICTS[self.verdicts[index]],
            reason=self.reasons[index],
            solution="" if self.solutions is None else self.solutions[index],
            pushes=int(self.pushes[index]),
            moves=int(self.moves[index]),
            expanded=int(self.expanded[index]),
            seconds=float(self.seconds[index]),
            limit_hit=self.LIMITS[self.limits_hit[index]],
            boxes_at_once=int(self.boxes_at_once[index]),
        )


def solve(level: LevelLike, mode: str = "any", limits: Limits | None = None) -> Result:
    """Solve one board: ``any`` solution fast, fewest ``pushes``, or measure its ``effort``, also ``decomposed``.

    >>> solve(Level.parse("#####\\n#@$.#\\n#####")).solution
    'R'
    """
    return solve_many([level], mode, threads=1, limits=limits)[0]


def solve_many(
    boards: NDArray[Any] | Iterable[LevelLike],
    mode: str = "any",
    threads: int | None = None,
    limits: Limits | None = None,
    solutions: bool = True,
    on_progress: OnProgress | None = None,
) -> Results:
    """Solve an ``(n, h, w)`` array, or boards of any sizes one after another, on all cores or on ``threads``.

    Ctrl-C stops the whole batch. ``solutions=False`` saves building the texts.

    >>> solve_many([Level.parse("#####\\n#@$.#\\n#####")]).solved.tolist()
    [True]
    """
    if mode not in MODES:
        raise MaskobanError(f"unknown mode {mode!r}: expected one of {', '.join(MODES)}")
    threads = threads_for(threads)
    limits = limits or Limits()
    boards = gather(boards)

    def judge(stack: Tokens, where: NDArray[np.intp], progress: Any) -> Any:
        return _core.solve_boards(
            stack,
            MODES.index(mode),
            limits.native_states,
            min(int(limits.megabytes), _MAX_MEGABYTES),
            limits.native_seconds,
            threads,
            solutions,
            progress,
        )

    return run_by_shape(boards, judge, solutions, on_progress)


def run_by_shape(
    boards: Tokens | list[Tokens],
    judge: Callable[[Tokens, NDArray[np.intp], Any], Any],
    solutions: bool,
    on_progress: OnProgress | None,
) -> Results:
    """What ``judge(stack, where, progress)`` finds out about the boards of each shape, put together in order."""
    n, done = len(boards), 0
    arrays: dict[str, NDArray[Any]] = {
        "verdicts": np.zeros(n, np.uint8),
        "limits_hit": np.zeros(n, np.uint8),
        "pushes": np.zeros(n, np.int32),
        "moves": np.zeros(n, np.int32),
        "boxes_at_once": np.zeros(n, np.int32),
        "expanded": np.zeros(n, np.int64),
        "seconds": np.zeros(n, np.float32),
    }
    texts: dict[str, list[str]] = {"reasons": [""] * n} | ({"solutions": [""] * n} if solutions else {})
    report = on_progress or (lambda done, total: None)
    for where, stack in group_by_shape(boards):
        columns = judge(stack, where, partial(_report_part, report, done, n))
        for name, array in arrays.items():
            array[where] = columns[name]
        for name, column in texts.items():
            for i, text in zip(where, columns[name], strict=True):
                column[i] = text
        done += len(where)
        report(done, n)
    return Results(**arrays, reasons=texts["reasons"], solutions=texts.get("solutions"))


def _report_part(on_progress: OnProgress, before: int, total: int, done: int) -> None:
    on_progress(before + done, total)


def dead_cells(level: LevelLike) -> NDArray[np.bool_]:
    """The cells from which no box can reach a goal, given the walls alone; walls count as dead too.

    >>> dead_cells(Level.parse("######\\n#@$. #\\n######"))[1].tolist()
    [True, True, False, False, True, True]
    """
    return _core.dead_cells(_tokens(level))


def threads_for(threads: int | None) -> int:
    """The number of threads of the native core: ``threads``, at most 256, or one per core.

    >>> threads_for(3), threads_for(1_000_000)
    (3, 256)
    """
    if threads is not None and not _is_count(threads, least=1):
        raise MaskobanError(f"threads must be a whole number, 1 or more, but is {threads!r}")
    return min(int(threads or cpu_count()), _MAX_THREADS)


def gather(boards: NDArray[Any] | Iterable[LevelLike]) -> Tokens | list[Tokens]:
    """The checked tokens of several boards: an (n, h, w) array stays an array, all else becomes a list.

    >>> [tokens.shape for tokens in gather(Level.parse(text) for text in ("#@$.#", "@$."))]
    [(1, 5), (1, 3)]
    """
    if isinstance(boards, np.ndarray):
        return _checked(boards, dimensions=3)
    if isinstance(boards, str | Level) or not isinstance(boards, Iterable):
        raise MaskobanError(f"expected several boards, got one {type(boards).__name__}")
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
