"""What comes of a stream of commits: finished boards, and the trajectory of every board."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maskoban._util.progress import OnProgress
from maskoban.boards.tiles import MASK, TILES, Tokens
from maskoban.diffusion.denoiser import Critic, Denoiser
from maskoban.diffusion.sampler import AttemptEnd, Commit, Ints, SamplerConfig, sample_steps

T = TypeVar("T")


@dataclass(frozen=True)
class Trajectory:
    """Every commit of the accepted attempts at a batch of boards, in order.

    Boards with fewer commits than the longest are filled up with cell -1.
    """

    start: Tokens  # (n, height, width): the boards before the first commit
    boards: Tokens  # (n, height, width): the finished boards
    attempts: Ints  # (n,): attempts until one was accepted; 1 without a critic
    step: NDArray[np.int32]  # (n, commits): the network evaluation of the attempt, from 0
    cell: NDArray[np.int32]  # (n, commits): of the whole board, row by row
    tile: NDArray[np.uint8]  # (n, commits)
    probabilities: NDArray[np.float32]  # (n, commits, 7): of all tiles, when this one was sampled

    def frames(self) -> Tokens:
        """The boards before the first step and after every step: (steps + 1, n, height, width)."""
        boards = self.start.copy()
        flat = boards.reshape(len(boards), -1)
        frames = [boards.copy()]
        for step in range(int(self.step.max(initial=-1)) + 1):
            board, commit = np.nonzero((self.step == step) & (self.cell >= 0))
            flat[board, self.cell[board, commit]] = self.tile[board, commit]
            frames.append(boards.copy())
        return np.stack(frames)

    def probability(self, first: bool = False) -> NDArray[np.float32]:
        """The probability of each cell's tile at its last commit, or at its first; NaN in given cells: (n, h, w).

        They differ where Gibbs sweeps commit a cell again. At the first commit it is the probability of the tile that
        was sampled then.
        """
        found = np.full((len(self.start), self.start[0].size), np.nan, dtype=np.float32)
        chosen = np.take_along_axis(self.probabilities, self.tile[..., None].astype(np.int64), axis=2)[..., 0]
        commits = range(self.cell.shape[1])
        for commit in reversed(commits) if first else commits:
            board = np.flatnonzero(self.cell[:, commit] >= 0)
            found[board, self.cell[board, commit]] = chosen[board, commit]
        return found.reshape(self.start.shape)


def sample_boards(
    denoiser: Denoiser,
    start: Tokens,
    seed: int,
    config: SamplerConfig | None = None,
    numbers: Iterable[int] | None = None,
    critic: Critic | None = None,
    bound: float = 1.0,
    record: bool = False,
    on_progress: OnProgress | None = None,
) -> Trajectory:
    """Consume :func:`~maskoban.diffusion.sampler.sample_steps`: the finished boards, with ``record`` also every commit.

    A denoiser that takes several calls at once is called from several threads. What ``on_progress`` raises ends the
    sampling after the evaluation under way.
    """
    number = np.arange(len(start)) if numbers is None else np.array(list(numbers), dtype=np.int64)
    progress = BoardProgress(start, config or SamplerConfig(), on_progress)

    def part(boards: slice, check: Callable[[], None]) -> list[Commit | AttemptEnd]:
        kept: list[Commit | AttemptEnd] = []
        for event in sample_steps(denoiser, start[boards], seed, config, number[boards], critic, bound):
            check()
            progress.add(event)
            if record or isinstance(event, AttemptEnd):
                kept.append(replace(event, board=event.board + boards.start))
        return kept

    threads = max(min(denoiser.overlap, len(start) // denoiser.batch), 1)
    edges = np.linspace(0, len(start), threads + 1).astype(int).tolist()
    parts = _in_threads(part, [slice(*pair) for pair in pairwise(edges)])
    return collect(start, chain.from_iterable(parts), record)


def collect(start: Tokens, steps: Iterable[Commit | AttemptEnd], record: bool = True) -> Trajectory:
    """A stream of commits as one value; without ``record`` only the finished boards and their attempts."""
    boards, attempts = start.copy(), np.zeros(len(start), dtype=np.int64)
    none = np.zeros(0, np.int64)
    commits, evaluations = [Commit(none, none, none, none, np.zeros((0, TILES)))], [none]
    evaluation = 0  # of the attempts under way
    for event in steps:
        if isinstance(event, AttemptEnd):
            done = event.board[event.accepted]
            boards[done], attempts[done] = event.boards[event.accepted], event.attempt[event.accepted] + 1
            evaluation = 0
        elif record:
            commits.append(event)
            evaluations.append(np.full(len(event.board), evaluation))
            evaluation += 1

    def rows(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(commit, name) for commit in commits])

    accepted = rows("attempt") == attempts[rows("board")] - 1
    by_board = np.flatnonzero(accepted)[np.argsort(rows("board")[accepted], kind="stable")]
    board = rows("board")[by_board]
    counts = np.bincount(board, minlength=len(start))
    place = np.arange(len(board)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(start), int(counts.max(initial=0)))

    def table(values: NDArray[Any], fill: int, dtype: type) -> NDArray[Any]:
        filled: NDArray[Any] = np.full(shape + values.shape[1:], fill, dtype)
        filled[board, place] = values[by_board]
        return filled

    return Trajectory(
        start.copy(),
        boards,
        attempts,
        step=table(np.concatenate(evaluations), -1, np.int32),
        cell=table(rows("cell"), -1, np.int32),
        tile=table(rows("tile"), 0, np.uint8),
        probabilities=table(rows("probabilities"), 0, np.float32),
    )


class BoardProgress:
    """Counts the boards a stream of commits has finished, those under way by the fraction done of their attempt."""

    def __init__(self, start: Tokens, config: SamplerConfig, on_progress: OnProgress | None) -> None:
        self._on_progress, self._total, self._lock = on_progress, len(start), Lock()
        masked = int((start == MASK).sum((1, 2)).max(initial=0))
        self._cost = max(config.cost(masked), 1)
        self._finished, self._under_way, self._most = 0, 0.0, 0

    def add(self, event: Commit | AttemptEnd) -> None:
        """Count an event, and report a number that never falls."""
        if self._on_progress is None:
            return
        with self._lock:
            if isinstance(event, AttemptEnd):
                self._finished += int(event.accepted.sum())
                self._under_way = max(self._under_way - len(event.board), 0)
            else:
                self._under_way += len(np.unique(event.board)) / self._cost
            done = min(self._finished + int(self._under_way), self._total)
            self._most = max(self._most, done)
            self._on_progress(self._most, self._total)


def _in_threads(work: Callable[[slice, Callable[[], None]], T], parts: list[slice]) -> list[T]:
    """Do all parts, each in a thread. An exception in one ends the others, which call the function they are given."""
    failures: list[BaseException] = []

    def check() -> None:
        if failures:
            raise CancelledError

    def one(part: slice) -> T:
        try:
            return work(part, check)
        except BaseException as error:
            failures.append(error)
            raise

    if len(parts) == 1:
        return [one(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        try:
            return list(pool.map(one, parts))
        except BaseException as error:
            failures.append(error)
            raise failures[0] from None
