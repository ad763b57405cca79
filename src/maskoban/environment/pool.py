"""`Pool`: endless levels, made in the background while an environment plays. `main` is the process that makes them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from queue import Empty, Full, Queue
from typing import IO, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Level, Tokens
from maskoban.diffusion.model import RAREST
from maskoban.environment.levels import LevelLike, LevelSet, Order, Progress, Source, Supply
from maskoban.environment.producers import ModelLevels, Producer
from maskoban.errors import MaskobanError
from maskoban.solving.filters import FILTER_LIMITS
from maskoban.solving.solver import solve_many

#: A producer is given up when it keeps fewer than one board in RAREST, after the first so many times that number.
PATIENCE = 3

#: Episodes after which an environment that does not wait looks for new boards again.
LOOK_EVERY = 64

#: Batches that wait to be taken.
_BATCHES = 4


class Pool:
    """Endless levels from a producer, of which ``size`` boards are in play at a time.

    Each episode takes one of them at random. A new board replaces the oldest one when at least ``reuse`` episodes were
    begun since the last replacement. By default an environment never waits for a board once it has the first one: while
    no new board is ready, it plays those it has again. With ``wait=True`` it waits instead, and the same seed and the
    same play give the same levels.

    ``worker`` is where boards are made: in a ``process`` of their own, in a ``thread`` of this one (for a model on a
    GPU, or a producer that cannot be pickled), or with ``None`` in the step that needs them.

    >>> from maskoban.environment.producers import SynthLevels
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


class _PoolSupply(Supply):
    def __init__(self, pool: Pool, seed: int, num_envs: int, optimal_pushes: bool) -> None:
        # Room for the boards in play, for those that one step may need, and for a batch.
        rows = pool.size + -(-num_envs // pool.reuse) + pool.producer.batch
        boards = np.zeros((rows, *pool.shape), np.uint8)
        super().__init__(None, boards, pool.size, pool.reuse, 0, optimal_pushes=np.full(rows, -1, np.int32))
        self._progress[Progress.REFRESH_AT] = 0
        self._pool, self._seed, self._num_envs, self._optimal_pushes = pool, seed, num_envs, optimal_pushes
        self._next = 0  # the number of the first board that was not received
        self._worker: _Here | _Background | None = None

    def refresh(self) -> None:
        pool, progress, batch = self._pool, self._progress, self._pool.producer.batch
        first = not progress[Progress.FILLED]
        # Episodes since the newest board came, after the next step at most; every `reuse` of them need another board.
        begun = int(progress[Progress.PLAYED]) + self._num_envs
        wanted = self.window + (begun - 1) // self.reuse if pool.wait else 1
        while self._held < wanted:
            made = self._receive(wait=False)
            if made is None:
                self.waits += not first
                made = self._receive(wait=True)
            self._add(made)
        while not pool.wait and self._held + batch <= len(self.arrays["numbers"]):
            if (made := self._receive(wait=False)) is None:
                break
            self._add(made)
        spare = self._held - self.window
        enough_for = (spare + 1) * self.reuse - begun + 1 if pool.wait else LOOK_EVERY
        progress[Progress.REFRESH_AT] = self.episodes + enough_for

    def _receive(self, wait: bool) -> Made | None:
        """Boards that were made; without ``wait`` None where there are none yet."""
        if self._worker is None:
            maker = _Maker(self._pool.producer, self._seed, self._optimal_pushes, self._next)
            where = self._pool.worker
            self._worker = _Here(maker) if where is None else _Background(maker, where == "process")
        return self._worker.receive(wait)

    def _add(self, made: Made | None) -> None:
        """Put boards into the ring, where there is room for a batch."""
        assert made is not None
        filled, rows = int(self._progress[Progress.FILLED]), len(self.arrays["numbers"])
        assert self._held + len(made.numbers) <= rows
        where = np.arange(filled, filled + len(made.numbers)) % rows
        for name in ("numbers", "boards", "optimal_pushes"):
            self.arrays[name][where] = getattr(made, name)
        for name in ("plays", "ended", "solved"):
            self.arrays[name][where] = 0
        self._progress[Progress.FILLED] += len(where)
        self._next = made.next

    @property
    def _held(self) -> int:
        """Boards in the ring."""
        return int(self._progress[Progress.FILLED] - self._progress[Progress.START])

    @property
    def boards(self) -> int:
        return int(self._progress[Progress.FILLED])

    def level(self, number: int, board: Tokens) -> Level:
        return Level(board, title=self._pool.producer.title(self._seed, number))

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._worker = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_worker": None}  # a copy starts its own, if it needs one


class Made(NamedTuple):
    """Boards that were made, and the fewest pushes of each if that was wanted."""

    numbers: NDArray[np.int64]
    boards: Tokens
    optimal_pushes: NDArray[np.int32]
    next: int  # the number of the first board that was not made yet


class _Maker:
    """Makes the boards of one seed, batch after batch: 1, 2, 4 boards at first, so that play can begin soon."""

    def __init__(self, producer: Producer, seed: int, optimal_pushes: bool, first: int) -> None:
        self._producer, self._seed, self._optimal_pushes = producer, seed, optimal_pushes
        self._next, self._kept, self._made, self._count = first, 0, 0, 1

    def make(self) -> Made:
        numbers = np.zeros(0, np.int64)
        while not len(numbers):
            numbers, boards = self._producer.make(self._seed, self._next, self._count)
            self._next += self._count
            self._made += self._count
            self._kept += len(numbers)
            self._count = min(2 * self._count, self._producer.batch)
            if not len(numbers) and self._made >= RAREST * (self._kept + PATIENCE):
                raise MaskobanError(
                    f"only {self._kept} of {self._made} sampled boards were {self._producer}; gave up"
                )
        pushes = np.full(len(boards), -1, np.int32)
        if self._optimal_pushes:
            pushes = solve_many(boards, "pushes", threads=1, limits=FILTER_LIMITS, solutions=False).pushes
        return Made(numbers, np.ascontiguousarray(boards, np.uint8), pushes, self._next)


class _Here:
    """Makes boards when they are needed."""

    def __init__(self, maker: _Maker) -> None:
        self._maker = maker

    def receive(self, wait: bool) -> Made | None:
        return self._maker.make() if wait else None

    def close(self) -> None:
        pass


class _Background:
    """Makes boards in a thread or a process, a few batches ahead. An error there is raised in ``receive``."""

    def __init__(self, maker: _Maker, in_process: bool) -> None:
        self.process = _start_process(maker) if in_process else None
        make = partial(_read, self.process.stdout) if self.process else maker.make
        self._queue: Queue[Made | Exception] = Queue(_BATCHES)
        closed = threading.Event()
        threading.Thread(target=_fill, args=(self._queue, closed, make), daemon=True).start()
        self.close = weakref.finalize(self, _close, closed, self.process)

    def receive(self, wait: bool) -> Made | None:
        try:
            made = self._queue.get(block=wait)
        except Empty:
            return None
        if isinstance(made, Exception):
            self._queue.put(made)  # for the next call
            raise made
        return made


def _fill(queue: Queue[Made | Exception], closed: threading.Event, make: Callable[[], Made]) -> None:
    made: Made | Exception | None = None
    while not closed.is_set() and not isinstance(made, Exception):
        try:
            made = make()
        except Exception as error:
            made = error
        while not closed.is_set():
            with suppress(Full):
                queue.put(made, timeout=0.5)
                break


def _close(closed: threading.Event, process: subprocess.Popen[bytes] | None) -> None:
    closed.set()
    if process is not None and process.stdout is not None:
        process.kill()
        process.wait()
        process.stdout.close()


def _start_process(maker: _Maker) -> subprocess.Popen[bytes]:
    try:
        task = pickle.dumps(maker)
    except Exception as error:
        message = f"the producer cannot be sent to a process ({error}); use worker='thread'"
        raise MaskobanError(message) from error
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdin is not None
    process.stdin.write(task)
    process.stdin.close()
    return process


def _read(pipe: IO[bytes] | None) -> Made:
    assert pipe is not None
    try:
        made: Made | Exception = pickle.load(pipe)
    except (EOFError, pickle.UnpicklingError, ValueError):
        raise MaskobanError("the process that makes levels ended") from None
    if isinstance(made, Exception):
        raise made
    return made


def main() -> None:
    """The process of a pool: a pickled task comes in, pickled boards go out until nobody reads them."""
    with suppress(AttributeError, OSError):  # the agent goes first, where the system knows priorities
        os.nice(10)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anyone prints must not get between the boards
    made: Made | Exception | None = None
    with suppress(BrokenPipeError, KeyboardInterrupt):
        maker = None
        while not isinstance(made, Exception):
            try:
                maker = maker or pickle.load(sys.stdin.buffer)
                made = maker.make()
            except Exception as error:
                made = MaskobanError(str(error))
            pickle.dump(made, out)
            out.flush()
    os._exit(0)  # nothing is left to tidy up, and the pipe may be broken


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
