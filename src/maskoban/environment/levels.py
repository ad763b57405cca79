"""Sets of levels to play, curricula over them, and the supply that an environment takes levels from.

A source (`LevelSet`, `Curriculum`, and `maskoban.environment.pool.Pool`) never changes, so environments may share it.
``start`` begins a `Supply`, which belongs to one environment and one seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskoban import _core
from maskoban.boards import BOX, BOX_ON_GOAL, WALL, Level, Tokens, has_metadata, read, read_boards
from maskoban.errors import FileError, MaskobanError
from maskoban.solving.filters import FILTER_LIMITS
from maskoban.solving.rating import DIFFICULTIES, rate_many
from maskoban.solving.solver import Results, solve_many

#: The index of a level that is not of the environment's source.
NO_INDEX = -1

#: ``random``: every episode takes any level. ``sequential``: the levels in turn, again and again.
Order = Literal["random", "sequential"]

#: What a curriculum goes by: a name, a number for each level, or a function of (ended, solved) that returns weights.
By: TypeAlias = "Literal['success', 'difficulty', 'boxes', 'size'] | ArrayLike | Weigh"
Weigh: TypeAlias = Callable[[NDArray[np.int32], NDArray[np.int32]], ArrayLike]

LevelLike: TypeAlias = Level | str | NDArray[Any]

# Rows of Supply.progress, as in native/games.hpp.
START, FILLED, PLAYED, EPISODES, REFRESH_AT = range(5)
NEVER = 2**62


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
        kept = {
            name: array for name, array in self.arrays.items() if self._levels is None or name != "boards"
        }
        return self.__dict__ | {"arrays": kept}  # the boards of a set are shared, not copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        if self._levels is not None:
            self.arrays["boards"] = self._levels.boards

    @property
    def episodes(self) -> int:
        """Episodes begun so far."""
        return int(self.arrays["progress"][EPISODES])

    @property
    def boards(self) -> int:
        """Different boards there were to play so far."""
        return int(min(self.arrays["progress"][FILLED], len(self.arrays["numbers"])))

    @property
    def due(self) -> bool:
        """Whether `refresh` is to be called before the next episode begins."""
        return self.episodes >= int(self.arrays["progress"][REFRESH_AT])

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


class Curriculum:
    """Levels of a set, chosen by how well the agent plays. The same seed and the same play give the same levels.

    ``by="success"`` prefers levels that the agent solves about half of the time. Otherwise levels are played in stages:
    ``by`` is ``"difficulty"`` (the rating of docs/solver.md), ``"boxes"``, ``"size"`` (cells that are not wall) or an
    array with a number for each level, and lower numbers come first. The next stage opens when the share of episodes
    solved on the newest one reaches ``threshold``; half of the episodes play the newest stage, half those before it.
    ``by`` may also be a function: it gets the episodes ended and solved since the last call, by level, and returns a
    weight for each level. Weights are computed again after every ``every`` episodes.

    >>> Curriculum(["#@$.#", "#@$$..#"], by="boxes").shape
    (1, 7)
    """

    def __init__(
        self, levels: Any, by: By = "success", *, every: int = 1024, threshold: float = 0.5, stages: int = 8
    ) -> None:
        self.levels = levels if isinstance(levels, LevelSet) else LevelSet(levels)
        if every < 1 or stages < 1 or not 0 < threshold <= 1:
            raise MaskobanError("every and stages: expected at least 1; threshold: above 0, and at most 1")
        self.every, self._threshold = every, threshold
        self._weigh, self._stage = by if callable(by) else None, None
        if self._weigh is None and not (isinstance(by, str) and by == "success"):
            self._stage = _stages(self._keys(by), stages)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the largest board."""
        return self.levels.shape

    def start(self, seed: int, num_envs: int, optimal_pushes: bool) -> Supply:
        """All levels, with weights that follow the agent's play."""
        weigh = self._weigh
        if weigh is None:
            weigh = _BySuccess() if self._stage is None else _ByStage(self._stage, self._threshold)
        more = {"optimal_pushes": self.levels.optimal_pushes} if optimal_pushes else {}
        return _CurriculumSupply(self.levels, weigh, self.every, **more)

    def _keys(self, by: Any) -> NDArray[Any]:
        boards = self.levels.boards
        if isinstance(by, str):
            if by == "difficulty":
                words = [rating.difficulty for rating in rate_many(boards, limits=FILTER_LIMITS)]
                return np.array([DIFFICULTIES.index(word) if word else len(DIFFICULTIES) for word in words])
            if by == "boxes":
                return np.asarray(((boards == BOX) | (boards == BOX_ON_GOAL)).sum((1, 2)))
            if by == "size":
                return np.asarray((boards != WALL).sum((1, 2)))
            raise MaskobanError(f"by: expected success, difficulty, boxes, size or an array, got {by!r}")
        keys = np.asarray(by)
        if keys.shape != (len(boards),) or keys.dtype.kind not in "iuf":
            raise MaskobanError(f"by: expected {len(boards)} numbers, got {keys.dtype} of shape {keys.shape}")
        return keys


class _CurriculumSupply(Supply):
    def __init__(self, levels: LevelSet, weigh: Weigh, every: int, **more: NDArray[Any]) -> None:
        rows = len(levels)
        more["cumulative"] = np.zeros(rows)
        super().__init__(levels, levels.boards, rows, 1, rows, **more)
        self._weigh, self._every = weigh, every
        self.arrays["progress"][REFRESH_AT] = 0

    def refresh(self) -> None:
        ended, solved = self.arrays["ended"], self.arrays["solved"]
        weights = np.asarray(self._weigh(ended, solved), float)
        if weights.shape != ended.shape or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
            raise MaskobanError(f"weights of levels: expected {len(ended)} numbers, none below 0, not all 0")
        np.cumsum(weights, out=self.arrays["cumulative"])
        ended[:] = solved[:] = 0
        self.arrays["progress"][REFRESH_AT] = self.episodes + self._every


class _BySuccess:
    """Weights p (1 - p), where p is the share of recent episodes solved; a level never played has p = 1/2."""

    FORGET = 0.9  # what an episode still counts after each refresh

    def __init__(self) -> None:
        self._ended = self._solved = np.zeros(1)

    def __call__(self, ended: NDArray[np.int32], solved: NDArray[np.int32]) -> NDArray[np.float64]:
        self._ended = self.FORGET * self._ended + ended
        self._solved = self.FORGET * self._solved + solved
        share = (self._solved + 1) / (self._ended + 2)
        return share * (1 - share) + 0.01  # solved or hopeless levels still come, now and then


class _ByStage:
    """Half of the weight on the newest stage, and half on those before it."""

    def __init__(self, stage: NDArray[np.int64], threshold: float) -> None:
        self._stage, self._threshold, self._newest = stage, threshold, 0

    def __call__(self, ended: NDArray[np.int32], solved: NDArray[np.int32]) -> NDArray[np.float64]:
        newest = self._stage == self._newest
        if ended[newest].sum() and solved[newest].sum() >= self._threshold * ended[newest].sum():
            self._newest = min(self._newest + 1, int(self._stage.max()))
            newest = self._stage == self._newest
        before = self._stage < self._newest
        weights: NDArray[np.float64] = newest / newest.sum() + before / max(1, before.sum())
        return weights


def _stages(keys: NDArray[Any], most: int) -> NDArray[np.int64]:
    """The stage of every level: one for each different key, or ``most`` of about the same size.

    >>> _stages(np.array([3, 1, 1, 2]), 8).tolist(), _stages(np.arange(6), 2).tolist()
    ([2, 0, 0, 1], [0, 0, 0, 1, 1, 1])
    """
    values, stage = np.unique(keys, return_inverse=True)
    if len(values) > most:
        edges = np.quantile(keys, np.arange(1, most) / most, method="higher")
        stage = np.unique(np.searchsorted(edges, keys, side="right"), return_inverse=True)[1]
    return np.asarray(stage, np.int64)


def _read_dataset(cls: type[LevelSet], path: str, name: str, order: Order) -> LevelSet:
    """The solved boards of a dataset made with ``maskoban bulk``, and their solutions (docs/datasets.md)."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MaskobanError("a bulk dataset needs pyarrow: pip install 'maskoban[bulk]'") from error
    boards, solutions, pushes = [], [], []
    folder = os.path.join(path, "data")
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not file.endswith(".parquet"):
            continue
        columns = ["board", "tokens", "verdict", "solution", "pushes", "reason"]
        rows = pq.ParquetFile(os.path.join(folder, file)).read(columns, use_threads=False).to_pydict()
        for i in np.flatnonzero(np.array(rows["verdict"]) == "solved"):
            height = rows["board"][i].rstrip("\n").count("\n") + 1
            boards.append(np.array(rows["tokens"][i], np.uint8).reshape(height, -1))
            solutions.append(rows["solution"][i])
            pushes.append(NO_INDEX if rows["reason"][i] else rows["pushes"][i])
    keep = [i for i, board in enumerate(boards) if (board == BOX).any()]
    levels = cls([boards[i] for i in keep], name, order)
    levels.__dict__["solutions"] = [solutions[i] for i in keep]
    levels.__dict__["optimal_pushes"] = np.array([pushes[i] for i in keep], np.int32)
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
