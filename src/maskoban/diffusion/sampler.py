"""Drawing boards: the paper's Algorithm 2, completion, and polish, against any :class:`Denoiser`.

A drawing is a sequence of commits. Revealing commits masked cells and never revises them; a polish sweep
masks finished cells again one at a time and redraws each from the model given all the others. Every
commit is drawn in double precision from numbers that depend only on (seed, board), so a board comes out
the same whatever the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK, TILES, WALL, Tokens
from maskoban.diffusion.denoiser import Denoiser
from maskoban.diffusion.noise import uniforms

Order = Literal["uniform", "confidence"]

# What the random numbers of one board are used for (see noise.py); sweeps use what follows.
_REVEAL_ORDER, _REVEAL_TILE, _SWEEPS = 0, 1, 2


@dataclass(frozen=True)
class Drawing:
    """How to draw: everything but the model, the boards to fill and the seed.

    ``steps``: how many network evaluations the reveal may take; None reveals one cell at a time.
    ``order``: which masked cells are committed: ``uniform`` (the paper's) or ``confidence`` (the most certain
    first: the paper's comparison, which drowns boards in walls).
    ``polish``: how many sweeps follow.
    """

    temperature: float = 1.0
    steps: int | None = None
    order: Order = "uniform"
    polish: int = 0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise MaskobanError(f"the temperature must be above 0, not {self.temperature:g}")
        if self.steps is not None and self.steps < 1:
            raise MaskobanError(f"drawing needs at least 1 step, not {self.steps}")
        if self.polish < 0:
            raise MaskobanError(f"the number of polish sweeps cannot be negative, and is {self.polish}")
        if self.order not in ("uniform", "confidence"):
            raise MaskobanError(f"the reveal order is 'uniform' or 'confidence', not {self.order!r}")


@dataclass(frozen=True)
class Commits:
    """Every commit of a batch of drawings, in order. Cells count over the whole board, row by row.

    Boards with fewer commits than the longest are filled up with cell -1.
    """

    start: Tokens  # (n, height, width): the boards before the first commit
    step: NDArray[np.int32]  # (n, commits): the network evaluation it came from
    cell: NDArray[np.int32]  # (n, commits)
    tile: NDArray[np.uint8]  # (n, commits)
    probabilities: NDArray[np.float32]  # (n, commits, 7): of each tile when it was committed

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

    def probability(self) -> NDArray[np.float32]:
        """The probability of each cell's tile when it was last committed; NaN for given cells: (n, h, w)."""
        shape = self.start.shape
        last = np.full((shape[0], shape[1] * shape[2]), np.nan, dtype=np.float32)
        chosen = np.take_along_axis(self.probabilities, self.tile[..., None].astype(np.int64), axis=2)[..., 0]
        for commit in range(self.cell.shape[1]):
            board = np.nonzero(self.cell[:, commit] >= 0)[0]
            last[board, self.cell[board, commit]] = chosen[board, commit]
        return last.reshape(shape)


def draw(
    denoiser: Denoiser,
    boards: Tokens,
    seed: int,
    how: Drawing | None = None,
    numbers: Sequence[int] | None = None,
    record: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Tokens, Commits | None]:
    """Fill the masked cells of (n, height, width) boards.

    ``numbers`` says which board of this seed's sequence each one is: 0, 1, 2, ... by default.

    Algorithm 2: while cells are masked, at step s of T commit n = max(ceil(|M| / (T - s)), 1) of them, chosen
    uniformly, each drawn from softmax(logits / temperature). The network is told
    t = T |M| / cells, which is the paper's t = T - s whenever T is the number of cells. Polish then redraws the
    cells that were masked at first; cells that were given never change.
    ``progress`` is told (evaluations done, evaluations in all).
    """
    how = how or Drawing()
    which = np.arange(len(boards)) if numbers is None else np.asarray(numbers, dtype=np.int64)
    inside = drawn_cells(denoiser)
    flat = boards.reshape(len(boards), -1)
    tokens = np.ascontiguousarray(flat[:, inside])
    masked = tokens == MASK
    n, cells = tokens.shape
    if n == 0:
        return boards.copy(), None
    most = int(masked.sum(1).max())
    reveals = min(how.steps or cells, most)
    evaluations = reveals + how.polish * most
    log: list[tuple[NDArray[Any], ...]] = []

    def commit(step: int, board: NDArray[np.int64], cell: NDArray[np.int64], u: NDArray[np.float64],
               p: NDArray[np.float64]) -> None:  # fmt: skip
        tile = pick_tiles(p, u)
        tokens[board, cell] = tile
        if record:
            log.append((board, cell, tile, p, np.full(len(board), step)))
        if progress is not None:
            progress(step + 1, evaluations)

    u = uniforms(seed, which, _REVEAL_TILE, cells)
    # Masked cells first, in a random order a board; given cells behind them.
    order = np.argsort(np.where(masked, uniforms(seed, which, _REVEAL_ORDER, cells), 2.0), axis=1)
    left = masked.sum(1)
    done = np.zeros(n, dtype=np.int64)
    for step in range(reveals):
        t = time_told(denoiser, left)
        count = np.minimum(np.maximum(-(-left // (reveals - step)), 1), left)
        if how.order == "confidence":
            everywhere = np.broadcast_to(np.arange(cells), (n, cells))
            p = probabilities(denoiser.logits(tokens, t, everywhere), how.temperature)
            certainty = np.where(tokens == MASK, p.max(2), -1.0)
            ranked = np.argsort(-certainty, axis=1, kind="stable")
            board, rank = np.nonzero(np.arange(cells) < count[:, None])
            cell = ranked[board, rank]
            chosen = p[board, cell]
        else:
            place = np.minimum(done[:, None] + np.arange(int(count.max())), cells - 1)
            ask = np.take_along_axis(order, place, axis=1)
            p = probabilities(denoiser.logits(tokens, t, ask), how.temperature)
            board, rank = np.nonzero(np.arange(ask.shape[1]) < count[:, None])
            cell = ask[board, rank]
            chosen = p[board, rank]
        commit(step, board, cell, u[board, cell], chosen)
        done, left = done + count, left - count

    for sweep in range(how.polish):
        u = uniforms(seed, which, _SWEEPS + 2 * sweep + 1, cells)
        order = np.argsort(np.where(masked, uniforms(seed, which, _SWEEPS + 2 * sweep, cells), 2.0), axis=1)
        for place in range(most):
            board = np.nonzero(place < masked.sum(1))[0]
            cell = order[board, place]
            tokens[board, cell] = MASK
            t = time_told(denoiser, np.ones(len(board), dtype=np.int64))
            p = probabilities(denoiser.logits(tokens[board], t, cell[:, None]), how.temperature)[:, 0]
            commit(reveals + sweep * most + place, board, cell, u[board, cell], p)

    finished = flat.copy()
    finished[:, inside] = tokens
    return finished.reshape(boards.shape), _commits(boards, inside, log) if record else None


def draw_many(
    denoiser: Denoiser,
    boards: Tokens,
    seed: int,
    how: Drawing | None = None,
    first: int = 0,
    record: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Tokens, list[Commits]]:
    """:func:`draw` for any number of boards, a batch at a time: boards ``first``, ``first + 1``, ... of this seed.

    ``progress`` is told (boards done, boards in all), where a batch counts by the share of its evaluations; what it
    raises ends the drawing, as Ctrl-C does, after the evaluation under way.
    """
    starts = range(0, len(boards), denoiser.batch)
    done = dict.fromkeys(starts, 0)
    gave_up: list[BaseException] = []  # why, the first reason first

    def batch(start: int) -> tuple[Tokens, Commits | None]:
        part = boards[start : start + denoiser.batch]

        def tell(evaluation: int, evaluations: int) -> None:
            if gave_up:
                raise CancelledError
            done[start] = len(part) * evaluation // evaluations
            if progress is not None:
                progress(sum(done.values()), len(boards))

        numbers = range(first + start, first + start + len(part))
        try:
            return draw(denoiser, part, seed, how, numbers, record, tell)
        except BaseException as reason:
            gave_up.append(reason)  # the other threads know at once; the pool hears in the order of batches
            raise

    if denoiser.overlap == 1:
        results = list(map(batch, starts))
    else:
        with ThreadPoolExecutor(max_workers=denoiser.overlap) as pool:
            try:
                results = list(pool.map(batch, starts))
            except BaseException as reason:
                gave_up.append(reason)
                pool.shutdown(wait=False, cancel_futures=True)
                raise gave_up[0] from None
    finished = np.concatenate([boards[:0], *(drawn for drawn, _ in results)])
    return finished, [commits for _, commits in results if commits is not None]


def probabilities(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float64]:
    """softmax(logits / temperature) over the last axis, in double precision."""
    z = logits.astype(np.float64) / temperature
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    result: NDArray[np.float64] = z / z.sum(axis=-1, keepdims=True)
    return result


def pick_tiles(p: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
    """The tile at which the cumulative probability passes u: an exact draw from p for uniform u."""
    tile: NDArray[np.int64] = (np.cumsum(p, axis=-1) <= u[..., None]).sum(-1)
    return np.minimum(tile, TILES - 1)  # rounding may leave the last sum a hair under 1


def drawn_cells(denoiser: Denoiser) -> NDArray[np.int64]:
    """The cells a denoiser draws, as indices into the whole board read row by row."""
    m = denoiser.margin
    grid = np.arange(denoiser.height * denoiser.width).reshape(denoiser.height, denoiser.width)
    return grid[m : denoiser.height - m, m : denoiser.width - m].ravel()


def time_told(denoiser: Denoiser, masked: NDArray[np.int64]) -> NDArray[np.int64]:
    """t = T |M| / cells, rounded, at least 1: the time at which so many cells are masked on the linear schedule."""
    cells = len(drawn_cells(denoiser))
    t: NDArray[np.int64] = np.maximum(np.rint(denoiser.steps * masked / cells), 1).astype(np.int64)
    return t


def blank(denoiser: Denoiser, n: int) -> Tokens:
    """Boards with nothing drawn yet: MASK everywhere the denoiser draws, wall around it."""
    boards = np.full((n, denoiser.height * denoiser.width), WALL, dtype=np.uint8)
    boards[:, drawn_cells(denoiser)] = MASK
    return boards.reshape(n, denoiser.height, denoiser.width)


def _commits(start: Tokens, inside: NDArray[np.int64], log: list[tuple[NDArray[Any], ...]]) -> Commits:
    """The log of commits, regrouped board by board."""
    n = len(start)
    if not log:
        none = np.zeros((n, 0), dtype=np.int32)
        return Commits(start.copy(), none, none, none.astype(np.uint8), np.zeros((n, 0, TILES), np.float32))
    board, cell, tile, p, step = (np.concatenate(parts) for parts in zip(*log, strict=True))
    by_board = np.argsort(board, kind="stable")
    board = board[by_board]
    counts = np.bincount(board, minlength=n)
    place = np.arange(len(board)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (n, int(counts.max()))
    steps, cells = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
    tiles, ps = np.zeros(shape, np.uint8), np.zeros((*shape, TILES), np.float32)
    steps[board, place] = step[by_board]
    cells[board, place] = inside[cell[by_board]]
    tiles[board, place] = tile[by_board]
    ps[board, place] = p[by_board]
    return Commits(start.copy(), steps, cells, tiles, ps)
