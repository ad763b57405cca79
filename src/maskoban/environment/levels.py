"""Sets of levels to play, and the supply that an environment takes levels from.

A source (`LevelSet`, `Curriculum`, `Pool`) never changes, so environments may share it. ``start`` begins a `Supply`,
which belongs to one environment and one seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property
from glob import escape, glob
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban.boards import BOX, WALL, Level, Tokens, has_metadata, read, read_boards
from maskoban.errors import FileError, MaskobanError
from maskoban.solving.filters import FILTER_LIMITS
from maskoban.solving.solver import Results, solve_many

#: The index of a level that is not of the environment's source.
NO_INDEX = -1

#: ``random``: every episode takes any level. ``sequential``: the levels in turn, again and again.
Order = Literal["random", "sequential"]

LevelLike: TypeAlias = Level | str | NDArray[Any]

NEVER = 2**62


class Progress:
    """Where a supply stands: the places in its array ``progress``, as in native/games.hpp."""

    START, FILLED, PLAYED, EPISODES, REFRESH_AT = range(5)


@runtime_checkable
class Source(Protocol):
    """What an environment takes levels from."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of every board."""

    def start(self, seed: int, num_envs: int, optimal_pushes: bool) -> Supply:
        """Levels for this seed and number of environments, with the fewest pushes of each if that is wanted."""


class Supply:
    """A ring of boards that the native core takes levels from (``Supply`` in native/games.hpp).

    The arrays have a row a board: ``plays`` counts the episodes on it, ``ended`` those that ended and ``solved`` those
    that were solved. The native core calls for `refresh` when it has begun ``progress[REFRESH_AT]`` episodes.
    """

    #: How often an environment waited for a level since the first episode began.
    waits = 0

    def __init__(
        self,
        levels: LevelSet | None,
        boards: Tokens,
        window: int,
        reuse: int,
        filled: int,
        **more: NDArray[Any],
    ) -> None:
        rows = len(boards)
        self.arrays: dict[str, NDArray[Any]] = {
            "boards": boards,
            "numbers": np.arange(rows, dtype=np.int32),
            **{name: np.zeros(rows, np.int32) for name in ("plays", "ended", "solved")},
            "progress": np.array([0, filled, 0, 0, NEVER]),
            **more,
        }
        self._levels, self.window, self.reuse = levels, window, reuse

    def __getstate__(self) -> dict[str, Any]:
        shared = () if self._levels is None else ("boards",)  # those of a set are not copied
        return self.__dict__ | {"arrays": {k: v for k, v in self.arrays.items() if k not in shared}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        if self._levels is not None:
            self.arrays["boards"] = self._levels.boards

    @property
    def _progress(self) -> NDArray[np.int64]:
        return self.arrays["progress"]

    @property
    def episodes(self) -> int:
        """Episodes begun so far."""
        return int(self._progress[Progress.EPISODES])

    @property
    def boards(self) -> int:
        """Different boards there were to play so far."""
        return len(self.arrays["numbers"])

    @property
    def due(self) -> bool:
        """Whether `refresh` is to be called before the next episode begins."""
        return self.episodes >= int(self._progress[Progress.REFRESH_AT])

    def refresh(self) -> None:
        """Prepare the levels of the next episodes."""

    def level(self, number: int, board: Tokens) -> Level:
        """The level of this number, whose board was played."""
        assert self._levels is not None
        return self._levels.level(number)

    def close(self) -> None:
        """End the work that makes levels."""


class LevelSet:
    """A finite set of levels; every episode takes one, at random or in turn.

    In the order ``sequential`` every level is played once before the first is played again, whatever the seed.
    Smaller boards are filled up with wall to the right and below. Levels are numbered from 0.

    >>> LevelSet(["#@$.#", "####\\n#@*$.\\n####"]).shape
    (3, 5)
    """

    def __init__(self, levels: Iterable[LevelLike], name: str = "level", order: Order = "random") -> None:
        self._levels: list[Level] | None = None  # unless there are only boards
        if isinstance(levels, np.ndarray) and levels.ndim == 2:
            levels = levels[None]
        if isinstance(levels, np.ndarray) and levels.ndim == 3 and levels.dtype == np.uint8:
            self.boards: Tokens = np.array(levels, order="C")  # a copy: the caller may change the array later
        else:
            self._levels = [as_level(level) for level in levels]
            sizes = np.array([level.shape for level in self._levels], int).reshape(-1, 2)
            self.boards = np.full((len(sizes), *sizes.max(0, initial=0)), WALL, np.uint8)
            for board, level in zip(self.boards, self._levels, strict=True):
                board[: level.height, : level.width] = level.tokens
        self.name, self.order = name, _checked(order)
        if not len(self.boards):
            raise MaskobanError("no levels to play; expected at least one")
        for index, reason in enumerate(_core.unplayable(self.boards)):
            if reason:
                title = self._levels[index].title if self._levels else ""
                raise MaskobanError(
                    f"{name} {index}{f' ({title})' if title else ''} cannot be played: {reason}"
                )
        self.boards.flags.writeable = False

    @classmethod
    def read(cls, path: str | os.PathLike[str], order: Order = "random") -> LevelSet:
        """The levels of a file or a folder in any format maskoban reads, or the solved boards of a bulk dataset."""
        name = f"{os.fspath(path)}, level"
        if os.path.isfile(os.path.join(path, "job.json")):
            return _read_dataset(cls, os.fspath(path), name, order)
        if os.fspath(path) != "-":  # which can be read only once
            try:
                if not has_metadata(path):
                    return cls(read_boards(path), name, order)  # many times faster, if all have one size
            except FileError:
                pass
        return cls(read(path), name, order)

    def ordered(self, order: Order) -> LevelSet:
        """The same levels in this order."""
        other = copy(self)
        other.order = _checked(order)
        return other

    def __len__(self) -> int:
        return len(self.boards)

    def __iter__(self) -> Iterator[Level]:
        return map(self.level, range(len(self)))

    def subset(self, indices: Iterable[int]) -> LevelSet:
        """The levels of these numbers as a set, with boards as large as the largest of them.

        >>> [level.title for level in LevelSet(["#@$.#", "#.$@#"]).subset([1])]
        ['level 1']
        """
        numbers = np.asarray(list(indices))
        if numbers.dtype.kind not in "iu" or not np.isin(numbers, np.arange(len(self))).all():
            raise MaskobanError(
                f"indices: expected numbers from 0 to {len(self) - 1} (for a mask, np.flatnonzero)"
            )
        return LevelSet([self.level(int(index)) for index in numbers], self.name, self.order)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the largest board."""
        height, width = self.boards.shape[1:]
        return height, width

    def level(self, index: int) -> Level:
        """The level of this index, counted from 0; one without a title gets its number as title.

        >>> LevelSet(["#@$.#", "#.$@#"]).level(1).title
        'level 1'
        """
        level = Level(self.boards[index]) if self._levels is None else self._levels[index]
        return level if level.title else replace(level, title=f"{self.name} {index}")

    @cached_property
    def solutions(self) -> list[str]:
        """A solution of every level in LURD, with the fewest pushes; "" where the solver found none.

        >>> LevelSet(["#@ $.#", "#@.$ #"]).solutions
        ['rR', '']
        """
        return self._solved.solutions or []

    @cached_property
    def optimal_pushes(self) -> NDArray[np.int32]:
        """The fewest pushes that solve every level; -1 where the solver found no solution."""
        return self._solved.pushes

    @cached_property
    def _solved(self) -> Results:
        return solve_many(self.boards, "pushes", limits=FILTER_LIMITS)

    def start(self, seed: int, num_envs: int, optimal_pushes: bool) -> Supply:
        """The levels in the order of this set."""
        random, rows = self.order == "random", len(self)
        more = {"optimal_pushes": self.optimal_pushes} if optimal_pushes else {}
        # In turn: a window of one board goes round and round.
        window, filled = (rows, rows) if random else (1, NEVER)
        return Supply(self, self.boards, window, 1, filled, **more)

    def __deepcopy__(self, memo: dict[int, Any]) -> LevelSet:
        return self  # environments are copied for search, and the levels never change


def _read_dataset(cls: type[LevelSet], path: str, name: str, order: Order) -> LevelSet:
    """The solved boards of a dataset made with ``maskoban bulk``, and their solutions (docs/datasets.md)."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MaskobanError("a bulk dataset needs pyarrow: pip install 'maskoban[bulk]'") from error
    columns = ["board", "tokens", "solution", "pushes", "reason"]
    solved = [("verdict", "=", "solved")]
    rows = [
        row
        for file in sorted(glob(os.path.join(escape(path), "data", "*.parquet")))
        for row in pq.read_table(file, columns=columns, filters=solved, use_threads=False).to_pylist()
        if BOX in row["tokens"]
    ]
    heights = [row["board"].rstrip("\n").count("\n") + 1 for row in rows]
    boards = [
        np.array(row["tokens"], np.uint8).reshape(height, -1)
        for row, height in zip(rows, heights, strict=True)
    ]
    levels = cls(boards, name, order)
    levels.__dict__["solutions"] = [row["solution"] for row in rows]
    proved = [NO_INDEX if row["reason"] else row["pushes"] for row in rows]
    levels.__dict__["optimal_pushes"] = np.array(proved, np.int32)
    return levels


def _checked(order: Order) -> Order:
    if order not in get_args(Order):
        raise MaskobanError(f"order: expected one of {', '.join(get_args(Order))}, got {order!r}")
    return order


def as_level(level: LevelLike) -> Level:
    """A level, the level a text draws, or the level of these tokens.

    >>> as_level("#@$.#").shape
    (1, 5)
    """
    if isinstance(level, Level):
        return level
    return Level.parse(level) if isinstance(level, str) else Level(np.asarray(level))


def fitted(level: Level, shape: tuple[int, int]) -> Tokens:
    """The board of a level, filled up with wall to this shape.

    >>> fitted(Level.parse("@$."), (2, 4)).tolist()
    [[2, 3, 4, 0], [0, 0, 0, 0]]
    """
    height, width = shape
    if level.height > height or level.width > width:
        raise MaskobanError(
            f"a level of {level.height}x{level.width} does not fit this environment's boards of {height}x{width}"
        )
    board = np.full(shape, WALL, np.uint8)
    board[: level.height, : level.width] = level.tokens
    (reason,) = _core.unplayable(board[None])
    if reason:
        raise MaskobanError(f"the level cannot be played: {reason}")
    return board
