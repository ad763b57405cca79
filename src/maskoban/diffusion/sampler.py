"""Sampling boards: ancestral unmasking (the paper's Algorithm 2), Gibbs sweeps, rejection sampling with a critic.

:func:`sample_steps` is a generator of commits, and everything that samples consumes it. One attempt at a board unmasks
its cells and never revises them, then runs Gibbs sweeps (``polish`` on the command line): each sweep masks the cells
again one at a time and resamples each from the model given all others. Where the config says so, a critic then accepts
or rejects the board; a rejected board starts again from its first masks.

Every random number depends only on (seed, number of the board, attempt), so a board is the same in any batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from maskoban._util.registry import Registry
from maskoban.boards.tiles import MASK, TILES, Tokens
from maskoban.diffusion.denoiser import Critic, Denoiser, diffusion_time, interior_cells
from maskoban.diffusion.rng import uniforms
from maskoban.errors import MaskobanError

Precision = Literal["fp32", "int8"]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Raised whenever the same seed and config come to give other boards. Stored samples carry it.
VERSION = 2

#: The last attempt at a board is accepted whatever the critic says.
MAX_ATTEMPTS = 1000

# Streams of random numbers of one board (see rng.py). Sweep s uses _SWEEPS + 2s and the stream after it, and step s of
# the unmasking _CANDIDATES + s. Attempt a uses the streams from a * _ATTEMPT on; the last of them decides acceptance.
_UNMASK_ORDER, _UNMASK_TILE, _SWEEPS = 0, 1, 2
_ATTEMPT = 2**20
_CANDIDATES = _ATTEMPT // 2
_ACCEPT = _ATTEMPT - 1


@dataclass(frozen=True)
class SamplerConfig:
    """How boards are sampled: everything but the model, the seed and the given cells.

    ``steps``: network evaluations for unmasking; None unmasks one cell per evaluation.
    ``order``: which masked cells are unmasked first; a name in ``ORDERS``.
    ``temperature``: logits are divided by it.
    ``sweeps``: Gibbs sweeps after unmasking.
    ``critic``: reject boards by the model's critic.
    ``precision``: of the network on a CPU. Other devices compute in their own precision, which ``fp32`` stands for.

    >>> SamplerConfig(steps=16).cost(cells=64)
    16.0
    """

    steps: int | None = None
    order: str = "uniform"
    temperature: float = 1.0
    sweeps: int = 0
    critic: bool = False
    precision: Precision = "fp32"

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise MaskobanError(f"steps: expected at least 1, got {self.steps}")
        _ = ORDERS[self.order]
        if not 0 < self.temperature < math.inf:
            raise MaskobanError(f"temperature: expected a number above 0, got {self.temperature:g}")
        if self.sweeps < 0:
            raise MaskobanError(f"sweeps: expected 0 or more, got {self.sweeps}")
        if self.precision not in get_args(Precision):
            expected = ", ".join(get_args(Precision))
            raise MaskobanError(f"precision: expected one of {expected}, got {self.precision!r}")

    def change(self, **changes: Any) -> SamplerConfig:
        """The config with some fields changed; a change to None is no change.

        Sweeps and critic are tuned for unmasking one cell at a time in random order at temperature 1. So another
        temperature or order turns the critic off, and another number of steps turns off both, unless they are given.

        >>> SamplerConfig(sweeps=1, critic=True).change(steps=16)
        SamplerConfig(steps=16, order='uniform', temperature=1.0, sweeps=0, critic=False, precision='fp32')
        """
        given = {name: value for name, value in changes.items() if value is not None}
        changed = {name for name, value in given.items() if value != getattr(self, name)}
        if changed & {"steps", "order", "temperature"}:
            given = {"critic": False} | given
        if "steps" in changed:
            given = {"sweeps": 0} | given
        return replace(self, **given)

    def cost(self, cells: int, attempts: float = 1.0) -> float:
        """Network evaluations per board of so many masked cells, the critic's included."""
        return attempts * (min(self.steps or cells, cells) + self.sweeps * cells + self.critic)


@dataclass(frozen=True)
class Commit:
    """The cells that one network evaluation commits, one row a cell."""

    board: Ints  # (k,): index into the boards that are sampled
    attempt: Ints  # (k,): from 0
    cell: Ints  # (k,): of the whole board, row by row
    tile: Ints  # (k,)
    probabilities: Floats  # (k, 7): of all tiles, when this one was sampled


@dataclass(frozen=True)
class AttemptEnd:
    """Attempts that are finished, one row a board; without a critic each is accepted."""

    board: Ints  # (k,): index into the boards that are sampled
    attempt: Ints  # (k,): of an accepted board, the accepted one
    accepted: NDArray[np.bool_]  # (k,): the others start again
    boards: Tokens  # (k, height, width): what was sampled


def sample_steps(
    denoiser: Denoiser,
    start: Tokens,
    seed: int,
    config: SamplerConfig | None = None,
    numbers: Sequence[int] | Ints | None = None,
    critic: Critic | None = None,
    bound: float = 1.0,
) -> Iterator[Commit | AttemptEnd]:
    """Fill the masked cells of (n, height, width) boards, a batch at a time: every commit, and the end of attempts.

    Given cells never change. ``numbers`` says which boards of the seed's sequence these are: 0, 1, 2, ... by default.
    Boards are finished in about their order. ``bound`` is the c of :func:`acceptance`.
    """
    config = config or SamplerConfig()
    number = np.arange(len(start)) if numbers is None else np.asarray(numbers, dtype=np.int64)
    _check(config, seed, number, critic)
    inside = interior_cells(denoiser)
    whole = start.reshape(len(start), denoiser.height * denoiser.width)
    rejected = np.zeros(len(start), dtype=np.int64)  # attempts, by board
    waiting = np.arange(len(start))
    while len(waiting):
        front, waiting = np.split(waiting, [denoiser.batch])
        # Where a batch costs the same however empty it is, further attempts at its boards fill it up.
        ahead = max(denoiser.batch // len(front), 1) if config.critic and denoiser.overlap > 1 else 1
        board = np.repeat(front, ahead)
        attempt = rejected[board] + np.tile(np.arange(ahead), len(front))
        tokens = np.ascontiguousarray(whole[board][:, inside])
        rng = BoardRng(int(seed), number[board], attempt)
        masked = tokens == MASK
        for row, cell, tile, p in chain(
            _unmask(denoiser, tokens, config, rng), _gibbs_sweeps(denoiser, tokens, masked, config, rng)
        ):
            yield Commit(board[row], attempt[row], inside[cell], tile, p)

        accepted = np.ones(len(board), dtype=bool)
        if config.critic and critic is not None:
            u = rng.uniforms(_ACCEPT, 1)[:, 0]
            accepted = (u < acceptance(critic.scores(tokens), bound)) | (attempt >= MAX_ATTEMPTS - 1)
        tries = accepted.reshape(len(front), ahead)
        found: NDArray[np.bool_] = np.logical_or.reduce(tries, axis=1)
        chosen = np.where(found, tries.argmax(1), ahead - 1)  # the first that is accepted
        rejected[front] += np.where(found, chosen, ahead)
        rows = np.arange(len(front)) * ahead + chosen
        done = whole[front].copy()
        done[:, inside] = tokens[rows]
        yield AttemptEnd(front, attempt[rows], found, done.reshape(len(front), *start.shape[1:]))
        waiting = np.concatenate([front[~found], waiting])


def acceptance(scores: NDArray[np.float32], c: float) -> Floats:
    """Rejection sampling: a board is accepted with probability min(1, r / c), r = exp(score) its density ratio.

    Boards sampled from q(x) are then accepted in proportion to q(x) min(r(x), c).

    >>> acceptance(np.log(np.array([1.0, 2.0, 8.0])), 4).round(6).tolist()
    [0.25, 0.5, 1.0]
    """
    log_ratio: Floats = np.minimum(scores.astype(np.float64) - math.log(c), 0)
    return np.exp(log_ratio)


class BoardRng:
    """Random numbers of attempts at boards; they depend on the seed, the boards' numbers and the attempts alone."""

    def __init__(self, seed: int, number: Ints, attempt: Ints) -> None:
        self._seed, self._number, self._attempt = seed, number, attempt
        self._kept: dict[int, Floats] = {}

    def uniforms(self, stream: int, count: int) -> Floats:
        """Numbers in [0, 1) of one stream: (n, count)."""
        return uniforms(self._seed, self._number, self._attempt * _ATTEMPT + stream, count)

    def kept(self, stream: int, count: int) -> Floats:
        """The same, computed once: for streams that every step reads."""
        if stream not in self._kept:
            self._kept[stream] = self.uniforms(stream, count)
        return self._kept[stream]


class UnmaskStep:
    """What an order sees when it chooses the cells to unmask.

    ``masked`` (n, cells) are the cells left, ``count`` (n,) is how many of them the step budget wants unmasked now.
    """

    def __init__(
        self, denoiser: Denoiser, tokens: Tokens, config: SamplerConfig, rng: BoardRng, step: int, steps: int
    ) -> None:
        self._denoiser, self._tokens, self._config, self._rng = denoiser, tokens, config, rng
        self.step = step
        self.masked = tokens == MASK
        left = self.masked.sum(1)
        self.count = np.minimum(np.maximum(-(-left // max(steps - step, 1)), 1), left)
        self._t = diffusion_time(denoiser, left)

    @property
    def shuffle(self) -> Floats:
        """A random number a cell, the same in every step of an attempt: sorted, a random order of the cells."""
        return self._rng.kept(_UNMASK_ORDER, self.masked.shape[1])

    @cached_property
    def probabilities(self) -> Floats:
        """Of the seven tiles in every cell, (n, cells, 7). The network is evaluated at every cell for it."""
        every = np.broadcast_to(np.arange(self.masked.shape[1]), self.masked.shape)
        return softmax(self._denoiser.logits(self._tokens, self._t, every), self._config.temperature)

    @cached_property
    def candidates(self) -> Ints:
        """A tile sampled for every cell, (n, cells); the cells that are unmasked get these."""
        return sample_tiles(self.probabilities, self._candidate_uniforms)

    @cached_property
    def confidence(self) -> Floats:
        """The probability of every cell's candidate, (n, cells)."""
        return np.take_along_axis(self.probabilities, self.candidates[..., None], axis=2)[..., 0]

    @cached_property
    def _candidate_uniforms(self) -> Floats:
        return self._rng.uniforms(_CANDIDATES + self.step, self.masked.shape[1])

    def sample(self, row: Ints, cell: Ints) -> tuple[Ints, Floats]:
        """The tiles of the cells that are unmasked, and their probabilities."""
        if "probabilities" in self.__dict__:
            p = self.probabilities[row, cell]
            return sample_tiles(p, self._candidate_uniforms[row, cell]), p
        # Logits of the chosen cells alone: each row's cells, filled up with cell 0.
        counts = np.bincount(row, minlength=len(self.masked))
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        cells = np.zeros((len(self.masked), max(int(counts.max()), 1)), dtype=np.int64)
        cells[row, place] = cell
        p = softmax(self._denoiser.logits(self._tokens, self._t, cells), self._config.temperature)[row, place]
        u = self._rng.kept(_UNMASK_TILE, self.masked.shape[1])
        return sample_tiles(p, u[row, cell]), p


#: Chooses the cells to unmask: (rows, cells), rows ascending, at least one of every row that has masked cells.
Order = Callable[[UnmaskStep], tuple[Ints, Ints]]


def uniform_order(step: UnmaskStep) -> tuple[Ints, Ints]:
    """The paper's order: masked cells at random, whatever the network says of them."""
    return lowest(np.where(step.masked, step.shuffle, 2.0), step.count)


def confidence_order(step: UnmaskStep) -> tuple[Ints, Ints]:
    """The cells whose candidate tile is the most probable first (MaskGIT). The paper's comparison: too many walls."""
    return lowest(np.where(step.masked, -step.confidence, 1.0), step.count)


def lowest(keys: Floats, count: Ints) -> tuple[Ints, Ints]:
    """The ``count`` cells of every row with the lowest keys: (rows, cells).

    >>> lowest(np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]]), np.array([2, 1]))
    (array([0, 0, 1]), array([1, 2, 0]))
    """
    if count.max(initial=0) <= 1:
        row = np.flatnonzero(count)
        return row, keys.argmin(1)[row]
    row, rank = np.nonzero(np.arange(keys.shape[1]) < count[:, None])
    return row, np.argsort(keys, axis=1, kind="stable")[row, rank]


#: The orders by name.
ORDERS = Registry[Order]("order", {"uniform": uniform_order, "confidence": confidence_order})


def register_order(name: str, order: Order) -> None:
    """Add an order under a name, for every :class:`SamplerConfig`."""
    ORDERS.register(name, order)


#: Samplers by name. ``best`` is narrowed to what the model's card says: its sweeps, and the critic if it has one.
SAMPLERS = Registry[SamplerConfig](
    "sampler",
    {
        "best": SamplerConfig(sweeps=1, critic=True),
        "plain": SamplerConfig(),
        "fast": SamplerConfig(steps=16),
    },
)


def register_sampler(name: str, config: SamplerConfig) -> None:
    """Add a sampler under a name, for the library and every command."""
    SAMPLERS.register(name, config)


_Made = tuple[Ints, Ints, Ints, Floats]  # rows, interior cells, tiles, probabilities


def _unmask(denoiser: Denoiser, tokens: Tokens, config: SamplerConfig, rng: BoardRng) -> Iterator[_Made]:
    """Algorithm 2 on (n, interior cells) tokens, in place.

    While cells are masked, at step s of S sample tiles for the cells the order chooses from softmax(logits /
    temperature): max(ceil(|M| / (S - s)), 1) of them. The network gets the time at which so many cells are masked.
    """
    left = int((tokens == MASK).sum(1).max(initial=0))
    steps, step = min(config.steps or left, left), 0
    while (tokens == MASK).any():
        state = UnmaskStep(denoiser, tokens, config, rng, step, steps)
        row, cell = ORDERS[config.order](state)
        if not len(row):
            raise MaskobanError(
                f"order {config.order!r} chose no cell to unmask; expected at least one a board"
            )
        tile, p = state.sample(row, cell)
        tokens[row, cell] = tile
        yield row, cell, tile, p
        step += 1


def _gibbs_sweeps(
    denoiser: Denoiser, tokens: Tokens, masked: NDArray[np.bool_], config: SamplerConfig, rng: BoardRng
) -> Iterator[_Made]:
    """Gibbs sampling, in place: resample each cell that was masked at first given all others, in random order."""
    cells, count = tokens.shape[1], masked.sum(1)
    for sweep in range(config.sweeps):
        u = rng.uniforms(_SWEEPS + 2 * sweep + 1, cells)
        shuffle = rng.uniforms(_SWEEPS + 2 * sweep, cells)
        order = np.argsort(np.where(masked, shuffle, 2.0), axis=1)
        for place in range(int(count.max(initial=0))):
            row = np.flatnonzero(place < count)
            cell = order[row, place]
            tokens[row, cell] = MASK
            t = diffusion_time(denoiser, np.ones(len(row), dtype=np.int64))
            p = softmax(denoiser.logits(tokens[row], t, cell[:, None]), config.temperature)[:, 0]
            tile = sample_tiles(p, u[row, cell])
            tokens[row, cell] = tile
            yield row, cell, tile, p


def softmax(logits: NDArray[np.float32], temperature: float = 1.0) -> Floats:
    """softmax(logits / temperature) over the last axis, in double precision."""
    z = logits.astype(np.float64)
    with np.errstate(over="ignore"):  # at the lowest temperatures all but the largest are minus infinity
        z = np.exp((z - z.max(axis=-1, keepdims=True)) / temperature)
    result: Floats = z / z.sum(axis=-1, keepdims=True)
    return result


def sample_tiles(p: Floats, u: Floats) -> Ints:
    """The tile at which the cumulative probability passes u: an exact sample of p for uniform u."""
    tile: Ints = (np.cumsum(p, axis=-1) <= u[..., None]).sum(-1)
    return np.minimum(tile, TILES - 1)  # rounding may leave the last sum below 1


def _check(config: SamplerConfig, seed: int, number: Ints, critic: Critic | None) -> None:
    if config.critic and critic is None:
        raise MaskobanError("the sampler config asks for a critic, but none is given")
    if not isinstance(seed, int | np.integer) or not -(2**63) <= seed < 2**64:
        raise MaskobanError(f"seed: expected a whole number of 64 bits, got {seed!r}")
    if len(number) and number.min() < 0:
        raise MaskobanError(f"numbers of boards: expected 0 or more, got {number.min()}")
