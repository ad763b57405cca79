"""Where an environment's levels come from: a collection, or the model, which never runs out.

A source never changes, so that environments may share one; ``episodes`` begins a sequence of levels from a seed,
and the same seed gives the same sequence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban.boards import (
    WALL,
    Level,
    LevelFileError,
    MaskobanError,
    Tokens,
    has_notes,
    read,
    read_boards,
)
from maskoban.diffusion.model import RAREST, Model, load
from maskoban.solving.picking import Wishes

#: How many different boards a vector environment has in play at a time, unless told otherwise.
TOGETHER = 16

#: Boards are drawn until fewer than one in RAREST is as asked, after the first so many times that number.
PATIENCE = 3

#: The index of a level that is not of the environment's own.
NO_INDEX = -1

#: How the levels of a set are played: each episode takes any, or each level comes once in turn, and then again.
Order = Literal["random", "sequential"]

LevelLike: TypeAlias = Level | str | NDArray[Any]
Levels: TypeAlias = "str | os.PathLike[str] | Iterable[LevelLike] | Source | None"


class Episodes(Protocol):
    """A sequence of levels: the first episode's, the second's, and so on."""

    def take(self, n: int) -> tuple[NDArray[np.int64], Tokens]:
        """The next ``n`` levels: their numbers in the source, and their boards (n, h, w)."""

    def level(self, number: int, board: Tokens) -> Level:
        """The level whose number and board were taken."""


@runtime_checkable
class Source(Protocol):
    """What an environment can take levels from: a set, a model, or anything of one's own that does this."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of every board."""

    def episodes(self, seed: int, num_envs: int) -> Episodes:
        """The sequence of levels for this seed and so many environments playing side by side."""


class LevelSet:
    """A finite collection; every episode takes one of its levels, at random or in turn.

    In the order ``sequential`` every level is played once before the first is played again, whatever the seed.
    Smaller boards are filled up with wall to the right and below. Levels are counted from 0.

    >>> LevelSet(["#@$.#", "####\\n#@*$.\\n####"]).shape
    (3, 5)
    """

    def __init__(self, levels: Iterable[LevelLike], name: str = "level", order: Order = "random") -> None:
        self._levels: list[Level] | None = None  # unless there is nothing but boards
        if isinstance(levels, np.ndarray) and levels.ndim == 2:
            levels = levels[None]
        if isinstance(levels, np.ndarray) and levels.ndim == 3 and levels.dtype == np.uint8:
            self.boards: Tokens = np.array(levels, order="C")  # a copy: whoever gave it may change it
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
        """The levels of a file or a folder, in any format maskoban reads."""
        name = f"{os.fspath(path)}, level"
        if os.fspath(path) != "-":  # which can be read only once
            try:
                if not has_notes(path):
                    return cls(read_boards(path), name, order)  # many times faster, where all have one size
            except LevelFileError:
                pass
        return cls(read(path), name, order)

    def ordered(self, order: Order) -> LevelSet:
        """The same levels, played in this order."""
        other = copy(self)
        other.order = _checked(order)
        return other

    def __len__(self) -> int:
        return len(self.boards)

    def __iter__(self) -> Iterator[Level]:
        return map(self.level, range(len(self)))

    def subset(self, indices: Iterable[int]) -> LevelSet:
        """The levels of these numbers as a set of their own, whose boards are as large as its own largest.

        >>> [level.title for level in LevelSet(["#@$.#", "#.$@#"]).subset([1])]
        ['level 1']
        """
        numbers = np.asarray(list(indices))
        if numbers.dtype.kind not in "iu" or not np.isin(numbers, np.arange(len(self))).all():
            raise MaskobanError(
                f"levels are numbered from 0 to {len(self) - 1}; expected such numbers (of a mask, np.flatnonzero)"
            )
        return LevelSet([self.level(int(index)) for index in numbers], self.name, self.order)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the largest board."""
        height, width = self.boards.shape[1:]
        return height, width

    def level(self, index: int) -> Level:
        """The level of this index, counted from 0; one without a title is called by its number.

        >>> LevelSet(["#@$.#", "#.$@#"]).level(1).title
        'level 1'
        """
        level = Level(self.boards[index]) if self._levels is None else self._levels[index]
        return level if level.title else replace(level, title=f"{self.name} {index}")

    def episodes(self, seed: int, num_envs: int) -> Episodes:
        """Levels in the order of this set."""
        return _InTurn(self) if self.order == "sequential" else _Picked(self, seed)

    def __deepcopy__(self, memo: dict[int, Any]) -> LevelSet:
        return self  # environments are copied to search in them, and the levels never change


class _Picked:
    """Levels at random from a collection, each as likely as any other."""

    def __init__(self, source: LevelSet, seed: int) -> None:
        self._source, self._random = source, np.random.default_rng(seed)

    def take(self, n: int) -> tuple[NDArray[np.int64], Tokens]:
        picks = self._random.integers(len(self._source), size=n)
        return picks, self._source.boards[picks]

    def level(self, number: int, board: Tokens) -> Level:
        return self._source.level(number)


class _InTurn:
    """The levels of a collection one after the other, round and round."""

    def __init__(self, source: LevelSet) -> None:
        self._source, self._begun = source, 0

    def take(self, n: int) -> tuple[NDArray[np.int64], Tokens]:
        turns = np.arange(self._begun, self._begun + n) % len(self._source)
        self._begun += n
        return turns, self._source.boards[turns]

    def level(self, number: int, board: Tokens) -> Level:
        return self._source.level(number)


class DrawnLevels:
    """Endless boards, drawn from a model when they are needed.

    ``model`` is the shipped one unless given. By default boards are drawn in 16 network evaluations, which takes
    an eighth of the time of one a cell and a polish sweep (``steps=None``), and only those the solver proves
    solvable are played; with ``only_solvable=False`` all are that can be played at all. ``difficulty`` (easy, medium,
    hard, expert) keeps those that are rated so, and ``boxes`` those that have so many. The model's critic is not
    asked: it would have boards drawn again that can be played. ``batch`` boards are drawn at a time, fewer at
    first, so that the first episode need not wait for all. Every board is played by ``episodes_per_board`` episodes
    in turn: by one in a plain environment unless told otherwise, and by a sixteenth of ``num_envs`` in a vector
    environment, which would begin episodes far faster than any model draws.

    >>> DrawnLevels(only_solvable=False).shape
    (10, 10)
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        only_solvable: bool = True,
        difficulty: str | None = None,
        boxes: int | None = None,
        steps: int | None = 16,
        batch: int = 8,
        episodes_per_board: int | None = None,
    ) -> None:
        if batch < 1 or (episodes_per_board is not None and episodes_per_board < 1):
            raise MaskobanError("batch and episodes_per_board must be at least 1")
        self.model = model or _shipped(os.getpid())
        self.wishes, self.steps = Wishes(only_solvable, difficulty, boxes), steps
        self.batch, self.episodes_per_board = batch, episodes_per_board

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the model's boards."""
        return self.model.height, self.model.width

    def episodes(self, seed: int, num_envs: int) -> Episodes:
        """The boards of this seed in their order, as ``maskoban generate --no-critic --seed`` draws them."""
        return _Drawn(self, seed, self.episodes_per_board or max(1, num_envs // TOGETHER))

    def __deepcopy__(self, memo: dict[int, Any]) -> DrawnLevels:
        return self  # a network's session cannot be copied, and need not be


class _Drawn:
    """The boards of one seed, each as often as it is to be played."""

    def __init__(self, source: DrawnLevels, seed: int, plays: int) -> None:
        self._source, self._seed, self._plays = source, seed, plays
        self._begun = 0  # episodes so far
        self._kept = self._dropped = 0  # boards that passed, and how many of them are past playing
        self._drawn, self._batch = 0, 1
        height, width = source.shape
        self._numbers = np.zeros(0, np.int64)
        self._boards = np.zeros((0, height, width), np.uint8)

    def take(self, n: int) -> tuple[NDArray[np.int64], Tokens]:
        which = np.arange(self._begun, self._begun + n) // self._plays
        self._draw_until(int(which[-1]) + 1)
        places = which - self._dropped
        numbers, boards = self._numbers[places], self._boards[places]
        self._begun += n
        past = self._begun // self._plays - self._dropped
        self._numbers, self._boards = self._numbers[past:], self._boards[past:]
        self._dropped += past
        return numbers, boards

    def level(self, number: int, board: Tokens) -> Level:
        return self._source.model.titled(board, self._seed, number)

    def _draw_until(self, wanted: int) -> None:
        source = self._source
        while self._kept < wanted:
            count = max(self._batch, wanted - self._kept)
            boards = source.model.sample(
                count, self._seed, first=self._drawn, steps=source.steps, critic=False
            )
            keep = np.array([not reason for reason in _core.unplayable(boards)])
            keep[keep] = source.wishes.met(boards[keep])
            self._numbers = np.concatenate([self._numbers, self._drawn + np.flatnonzero(keep)])
            self._boards = np.concatenate([self._boards, boards[keep]])
            self._kept += int(keep.sum())
            self._drawn += count
            self._batch = min(2 * self._batch, source.batch)
            if self._kept < wanted and self._drawn >= RAREST * (self._kept + PATIENCE):
                wished = f" and {source.wishes}" if source.wishes else ""
                raise MaskobanError(
                    f"only {self._kept} of {self._drawn} boards drawn were playable{wished}; gave up"
                )


def as_source(levels: Levels, order: Order | None = None) -> Source:
    """What an environment is given as ``levels``, as a source; a set is played in this order, or else in its own.

    >>> as_source(["#@$.#"]).shape
    (1, 5)
    """
    if isinstance(levels, LevelSet):
        return levels if order is None else levels.ordered(order)
    if levels is None or isinstance(levels, Source):
        if order is not None:
            raise MaskobanError(
                "order is for a set of levels; boards of a model are played as they are drawn"
            )
        return DrawnLevels() if levels is None else levels
    if order is None:
        order = "random"
    if isinstance(levels, str | os.PathLike):
        if isinstance(levels, str) and "\n" in levels:
            raise MaskobanError(
                "a text names a file here; a level drawn as text goes into a list: levels=[text]"
            )
        return LevelSet.read(levels, order)
    if isinstance(levels, Level) or not isinstance(levels, Iterable):
        kind = type(levels).__name__
        raise MaskobanError(f"levels is a file, a folder, an array or a list of levels, not one {kind}")
    return LevelSet(levels, order=order)


def _checked(order: Order) -> Order:
    if order not in get_args(Order):
        raise MaskobanError(f"an order is one of {', '.join(get_args(Order))}, not {order!r}")
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
    """The board of a level to be played where boards have this shape, filled up with wall.

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


@lru_cache(maxsize=1)
def _shipped(process: int) -> Model:
    """The shipped model, once for all environments of a process: its threads do not survive a fork."""
    return load()
