"""Endless levels: from the model or the synthesizer, made in the background while an environment plays.

A producer (`ModelLevels`, `SynthLevels`, or any object with ``shape``, ``make`` and ``title``) makes the boards of a
seed in the order of their numbers. `Pool` keeps the newest of them in play. `main` is the process that makes them.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from queue import Empty, Queue
from typing import IO, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban.boards import Level, Tokens
from maskoban.boards.synth import synthesize
from maskoban.diffusion.loading import load
from maskoban.diffusion.model import RAREST, Model
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.environment.levels import (
    EPISODES,
    FILLED,
    PLAYED,
    REFRESH_AT,
    START,
    LevelLike,
    LevelSet,
    Order,
    Source,
    Supply,
)
from maskoban.errors import MaskobanError
from maskoban.solving.filters import FILTER_LIMITS, BoardFilter
from maskoban.solving.solver import solve_many

#: A producer is given up when it keeps fewer than one board in RAREST, after the first so many times that number.
PATIENCE = 3

#: Episodes after which an environment that does not wait looks for new boards again.
LOOK_EVERY = 64

#: Batches that wait to be taken.
_BATCHES = 4


class Made(NamedTuple):
    """Boards that were made, and the fewest pushes of each if that was wanted."""

    numbers: NDArray[np.int64]
    boards: Tokens
    optimal_pushes: NDArray[np.int32]
    next: int  # the number of the first board that was not made yet


@runtime_checkable
class Producer(Protocol):
    """What makes endless levels."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of every board."""

    def make(self, seed: int, first: int, count: int) -> tuple[NDArray[np.int64], Tokens]:
        """Of boards ``first`` to ``first + count - 1`` of this seed, those to play: their numbers and boards."""

    def title(self, seed: int, number: int) -> str:
        """The title of a board."""


class ModelLevels:
    """Endless boards from a model, the shipped one by default.

    ``sampler`` is ``fast`` by default: 16 network evaluations a board instead of about 170. Only boards that the solver
    proves solvable are played; with ``only_solvable=False`` all that can be played. ``difficulty`` (easy, medium, hard,
    expert) and ``boxes`` filter further. Up to ``batch`` boards are sampled at a time. Board n of seed s is the board
    that ``maskoban generate --sampler fast --seed s`` samples as number n.

    >>> ModelLevels(only_solvable=False).shape
    (10, 10)
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        only_solvable: bool = True,
        difficulty: str | None = None,
        boxes: int | None = None,
        sampler: str | SamplerConfig = "fast",
        batch: int = 8,
    ) -> None:
        if batch < 1:
            raise MaskobanError(f"batch: expected at least 1, got {batch}")
        self.filter = BoardFilter(only_solvable, difficulty, boxes)
        self._model, self._sampler, self.batch = model, sampler, batch
        self.model.sampler(sampler)  # raises the error of a wrong one here

    @property
    def model(self) -> Model:
        """The model; the shipped one is loaded once a process."""
        return self._model or _shipped(os.getpid())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the model's boards."""
        return self.model.height, self.model.width

    def make(self, seed: int, first: int, count: int) -> tuple[NDArray[np.int64], Tokens]:
        """Of boards ``first`` to ``first + count - 1`` of this seed, those that can be played and match the filter."""
        boards = self.model.sample(count, seed, self.model.sampler(self._sampler), first=first)
        keep = np.array([not reason for reason in _core.unplayable(boards)])
        keep[keep] = self.filter.matches(boards[keep])
        return first + np.flatnonzero(keep), boards[keep]

    def title(self, seed: int, number: int) -> str:
        """The title that ``maskoban generate`` gives a board."""
        return self.model.title(seed, number)

    def __str__(self) -> str:
        return f"playable and {self.filter}" if self.filter else "playable"

    def __deepcopy__(self, memo: dict[int, Any]) -> ModelLevels:
        return self  # it never changes, and a network's session cannot be copied


class SynthLevels:
    """Endless boards of ``maskoban corpus synth``: rooms of one size, with boxes pulled away from their goals.

    They need no model and no solver, and about 1 ms each.

    >>> SynthLevels(8, 8, boxes=2).shape
    (8, 8)
    """

    batch = 32

    def __init__(self, height: int = 10, width: int = 10, boxes: int = 4, walls: float = 0.55) -> None:
        self.shape, self.boxes, self.walls = (height, width), boxes, walls
        synthesize(1, height, width, boxes, walls=walls)  # raises the error of a size that is impossible here

    def make(self, seed: int, first: int, count: int) -> tuple[NDArray[np.int64], Tokens]:
        """Boards ``first`` to ``first + count - 1`` of this seed."""
        boards = synthesize(count, *self.shape, self.boxes, seed, walls=self.walls, first=first)
        return np.arange(first, first + count), boards

    def title(self, seed: int, number: int) -> str:
        """Seed and number of a board."""
        return f"synth {seed}-{number}"


class Pool:
    """Endless levels from a producer, of which ``size`` boards are in play at a time.

    Each episode takes one of them at random. A new board replaces the oldest one when at least ``reuse`` episodes were
    begun since the last replacement. By default an environment never waits for a board once it has the first one: while
    no new board is ready, it plays those it has again. With ``wait=True`` it waits instead, and the same seed and the
    same play give the same levels.

    ``worker`` is where boards are made: in a ``process`` of their own, in a ``thread`` of this one (for a model on a
    GPU, or a producer that cannot be pickled), or with ``None`` in the step that needs them.

    >>> supply = Pool(SynthLevels(6, 6, boxes=1), size=4, wait=True, worker=None).start(7, num_envs=2)
    >>> supply.refresh(); supply.boards >= 4
    True
    """

    def __init__(
        self,
        producer: Producer,
        *,
        size: int = 1024,
        reuse: int = 1,
        wait: bool = False,
        worker: Literal["process", "thread"] | None = "process",
    ) -> None:
        if size < 1 or reuse < 1:
            raise MaskobanError(f"size and reuse: expected at least 1, got {size} and {reuse}")
        if worker not in ("process", "thread", None):
            raise MaskobanError(f"worker: expected process, thread or None, got {worker!r}")
        self.producer, self.size, self.reuse, self.wait, self.worker = producer, size, reuse, wait, worker

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of every board."""
        return self.producer.shape

    def start(self, seed: int, num_envs: int, optimal_pushes: bool = False) -> Supply:
        """The boards of this seed."""
        return _PoolSupply(self, seed, num_envs, optimal_pushes)


class _Maker:
    """Makes the boards of one seed, batch after batch: 1, 2, 4 boards at first, so that play can begin soon."""

    def __init__(self, producer: Producer, seed: int, optimal_pushes: bool, first: int = 0) -> None:
        self._producer, self._seed, self._optimal_pushes = producer, seed, optimal_pushes
        self._next, self._kept, self._made, self._count = first, 0, 0, 1

    def make(self) -> Made:
        numbers = np.zeros(0, np.int64)
        while not len(numbers):
            numbers, boards = self._producer.make(self._seed, self._next, self._count)
            self._next += self._count
            self._made += self._count
            self._kept += len(numbers)
            self._count = min(2 * self._count, _batch(self._producer))
            if not len(numbers) and self._made >= RAREST * (self._kept + PATIENCE):
                raise MaskobanError(
                    f"only {self._kept} of {self._made} sampled boards were {self._producer}; gave up"
                )
        pushes = np.full(len(boards), -1, np.int32)
        if self._optimal_pushes:
            pushes = solve_many(boards, "pushes", threads=1, limits=FILTER_LIMITS, solutions=False).pushes
        return Made(numbers, np.ascontiguousarray(boards, np.uint8), pushes, self._next)


def _batch(producer: Producer) -> int:
    """Boards that a producer makes at a time."""
    return int(getattr(producer, "batch", 8))


class _PoolSupply(Supply):
    def __init__(self, pool: Pool, seed: int, num_envs: int, optimal_pushes: bool) -> None:
        # Room for the boards in play, for those that one step may need, and for a batch.
        rows = pool.size + -(-num_envs // pool.reuse) + _batch(pool.producer)
        boards = np.zeros((rows, *pool.shape), np.uint8)
        super().__init__(None, boards, pool.size, pool.reuse, 0, optimal_pushes=np.full(rows, -1, np.int32))
        self.arrays["progress"][REFRESH_AT] = 0
        self._pool, self._seed, self._num_envs, self._optimal_pushes = pool, seed, num_envs, optimal_pushes
        self._next = 0  # the number of the first board that was not received
        self._left: Made | None = None  # received, and no room yet
        self._worker: _Worker | None = None

    def refresh(self) -> None:
        progress, first = self.arrays["progress"], not self.arrays["progress"][FILLED]
        # Episodes since the newest board came, after the next step at most; every `reuse` of them need another board.
        begun = int(progress[PLAYED]) + self._num_envs
        wanted = self.window + (begun - 1) // self.reuse if self._pool.wait else 1
        while progress[FILLED] - progress[START] < wanted:
            made = self._receive(wait=False)
            if made is None:
                self.waits += not first
                made = self._receive(wait=True)
            self._take(made)
        while not self._pool.wait and (made := self._receive(wait=False)) is not None and self._take(made):
            pass
        spare = int(progress[FILLED] - progress[START]) - self.window
        enough_for = (spare + 1) * self.reuse - begun + 1 if self._pool.wait else LOOK_EVERY
        progress[REFRESH_AT] = progress[EPISODES] + enough_for

    def _receive(self, wait: bool) -> Made | None:
        """Boards that were made; without ``wait`` None where there are none yet."""
        if self._left is not None:
            return self._left
        if self._worker is None:
            maker = _Maker(self._pool.producer, self._seed, self._optimal_pushes, self._next)
            self._worker = _WORKERS[self._pool.worker](maker)
        made = self._worker.receive(wait)
        if made is not None:
            self._next = made.next
        return made

    def _take(self, made: Made | None) -> bool:
        """Put boards into the ring, as many as there is room for."""
        assert made is not None
        progress, rows = self.arrays["progress"], len(self.arrays["numbers"])
        room = min(len(made.numbers), rows - int(progress[FILLED] - progress[START]))
        where = np.arange(progress[FILLED], progress[FILLED] + room) % rows
        for name in ("numbers", "boards", "optimal_pushes"):
            self.arrays[name][where] = getattr(made, name)[:room]
        for name in ("plays", "ended", "solved"):
            self.arrays[name][where] = 0
        progress[FILLED] += room
        left = Made(made.numbers[room:], made.boards[room:], made.optimal_pushes[room:], made.next)
        self._left = left if len(left.numbers) else None
        return self._left is None

    @property
    def boards(self) -> int:
        return int(self.arrays["progress"][FILLED])

    def level(self, number: int, board: Tokens) -> Level:
        return Level(board, title=self._pool.producer.title(self._seed, number))

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._worker = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {
            "_worker": None
        }  # a copy starts a worker of its own, if it needs one


class _Worker(Protocol):
    def __init__(self, maker: _Maker) -> None: ...
    def receive(self, wait: bool) -> Made | None: ...
    def close(self) -> None: ...


class _Here:
    """Makes boards when they are needed."""

    def __init__(self, maker: _Maker) -> None:
        self._maker = maker

    def receive(self, wait: bool) -> Made | None:
        return self._maker.make() if wait else None

    def close(self) -> None:
        pass


class _Thread:
    """Makes boards in a thread, a few batches ahead. What goes wrong there is raised in ``receive``."""

    def __init__(self, maker: _Maker) -> None:
        self._queue: Queue[Made | Exception] = Queue(_BATCHES)
        self._closed = threading.Event()
        threading.Thread(target=_fill, args=(self._queue, self._closed, maker.make), daemon=True).start()
        weakref.finalize(self, self._closed.set)

    def receive(self, wait: bool) -> Made | None:
        try:
            made = self._queue.get(block=wait)
        except Empty:
            return None
        if isinstance(made, Exception):
            self._queue.put(made)  # for the next call
            raise made
        return made

    def close(self) -> None:
        self._closed.set()


def _fill(queue: Queue[Made | Exception], closed: threading.Event, make: Any) -> None:
    while not closed.is_set():
        try:
            made: Made | Exception = make()
        except Exception as error:
            made = error
        while not closed.is_set():
            with suppress(Exception):
                queue.put(made, timeout=0.5)
                break
        if isinstance(made, Exception):
            return


class _Process(_Thread):
    """Makes boards in a process; a thread here only receives them."""

    def __init__(self, maker: _Maker) -> None:
        try:
            task = pickle.dumps(maker)
        except Exception as error:
            raise MaskobanError(
                f"the producer cannot be sent to a process ({error}); use worker='thread'"
            ) from error
        path = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from maskoban.environment.pool import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(task)
        self._process.stdin.flush()
        self._queue = Queue(_BATCHES)
        self._closed = threading.Event()
        receive = _Receive(self._process.stdout)
        threading.Thread(target=_fill, args=(self._queue, self._closed, receive), daemon=True).start()
        weakref.finalize(self, _end, self._process, self._closed)

    def close(self) -> None:
        _end(self._process, self._closed)


class _Receive:
    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe

    def __call__(self) -> Made:
        try:
            made = pickle.load(self._pipe)
        except (EOFError, pickle.UnpicklingError, ValueError):
            raise MaskobanError("the process that makes levels ended") from None
        if isinstance(made, str):
            raise MaskobanError(made)
        return Made(*made)


def _end(process: subprocess.Popen[bytes], closed: threading.Event) -> None:
    closed.set()
    process.kill()
    process.wait()


_WORKERS: dict[str | None, type[_Worker]] = {None: _Here, "thread": _Thread, "process": _Process}

Levels: TypeAlias = "str | os.PathLike[str] | Iterable[LevelLike] | Source | Producer | None"


def as_source(levels: Levels, order: Order | None = None, num_envs: int = 1) -> Source:
    """The source for the argument ``levels`` of an environment.

    A producer makes boards in the background for many environments. For one environment it makes them when they are
    needed, and each is played once.

    >>> as_source(["#@$.#"]).shape
    (1, 5)
    """
    if levels is None:
        levels = ModelLevels()
    if isinstance(levels, Producer):
        levels = Pool(levels) if num_envs > 1 else Pool(levels, size=1, wait=True, worker=None)
    if isinstance(levels, LevelSet):
        return levels if order is None else levels.ordered(order)
    if isinstance(levels, Source):
        if order is not None:
            raise MaskobanError("order: expected none, for levels that are not a set")
        return levels
    order = order or "random"
    if isinstance(levels, str | os.PathLike):
        if isinstance(levels, str) and "\n" in levels:
            raise MaskobanError(
                "levels: expected a file, got a level as text; put it into a list: levels=[text]"
            )
        return LevelSet.read(levels, order)
    if isinstance(levels, Level) or not isinstance(levels, Iterable):
        kind = type(levels).__name__
        raise MaskobanError(
            f"levels: expected a file, a folder, an array or a list of levels, got one {kind}"
        )
    return LevelSet(levels, order=order)


@lru_cache(maxsize=1)
def _shipped(process: int) -> Model:
    """The shipped model, once for all environments of a process: its threads do not survive a fork."""
    return load()


def main() -> None:
    """Make boards, as the process of a pool: a pickled task comes in, pickled boards go out until nobody reads them."""
    with suppress(AttributeError, OSError):  # the agent goes first, where the system knows priorities
        os.nice(10)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anyone prints must not get between the boards
    with suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            maker = pickle.load(sys.stdin.buffer)
            while True:
                pickle.dump(tuple(maker.make()), out)
                out.flush()
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:
            pickle.dump(str(error), out)
            out.flush()
    os._exit(0)  # nothing is left to tidy up, and the pipe may be broken
