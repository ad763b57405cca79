"""Drawing boards: the paper's Algorithm 2, completion, a critic's choice, and polish, against any :class:`Denoiser`.

A drawing is a sequence of commits. Revealing commits masked cells and never revises them; a critic, where there is
one, may have a revealed board thrown away and drawn anew; a polish sweep masks finished cells again one at a
time and redraws each from the model given all the others. Every commit is drawn in double precision from numbers
that depend only on (seed, board, attempt), so a board comes out the same whatever the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK, TILES, WALL, Tokens
from maskoban.diffusion.denoiser import Critic, Denoiser
from maskoban.diffusion.noise import uniforms

Order = Literal["uniform", "confidence"]
_Result = TypeVar("_Result")

#: The commits of one evaluation: (boards, cells, tiles, probabilities of the seven tiles), one row a commit.
Made = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]

#: A board a critic has thrown away so often, less once, is kept as it comes.
MOST_ATTEMPTS = 1000

# What the random numbers of one board are used for (see noise.py); sweeps use what follows. Attempt a
# reveals with the numbers a * _ATTEMPT further on; the last of an attempt's numbers decides whether it is kept.
_REVEAL_ORDER, _REVEAL_TILE, _SWEEPS = 0, 1, 2
_ATTEMPT = 2**20
_KEEP = _ATTEMPT - 1


@dataclass(frozen=True)
class Drawing:
    """How to draw: everything but the model, the boards to fill and the seed.

    ``steps``: how many network evaluations the reveal may take; None reveals one cell at a time.
    ``order``: which masked cells are committed: ``uniform`` (the paper's) or ``confidence`` (the most certain
    first: the paper's comparison, which drowns boards in walls).
    ``polish``: how many sweeps follow.
    ``critic``: the c of :func:`keeping`, by which a critic keeps what was revealed; None asks no critic.
    """

    temperature: float = 1.0
    steps: int | None = None
    order: Order = "uniform"
    polish: int = 0
    critic: float | None = None

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise MaskobanError(f"the temperature must be above 0, not {self.temperature:g}")
        if self.steps is not None and self.steps < 1:
            raise MaskobanError(f"drawing needs at least 1 step, not {self.steps}")
        if self.polish < 0:
            raise MaskobanError(f"the number of polish sweeps cannot be negative, and is {self.polish}")
        if self.order not in ("uniform", "confidence"):
            raise MaskobanError(f"the reveal order is 'uniform' or 'confidence', not {self.order!r}")
        if self.critic is not None and not 0 < self.critic < math.inf:
            raise MaskobanError(f"a critic's c must be a number above 0, not {self.critic:g}")


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


@dataclass(frozen=True)
class Drawn:
    """Finished boards, and what it took to draw them."""

    boards: Tokens  # (n, height, width)
    attempts: NDArray[np.int64]  # (n,): how often each was revealed until it was kept; 1 without a critic
    commits: list[
        Commits
    ]  # batch after batch, of the attempt that was kept; empty where nothing was recorded


def draw(
    denoiser: Denoiser,
    boards: Tokens,
    seed: int,
    how: Drawing | None = None,
    numbers: Sequence[int] | None = None,
    record: bool = False,
    progress: Callable[[int, int], None] | None = None,
    critic: Critic | None = None,
) -> Drawn:
    """Fill the masked cells of (n, height, width) boards, all of them in one batch.

    ``numbers`` says which board of this seed's sequence each one is: 0, 1, 2, ... by default.

    :func:`reveal`; where ``how`` says so, again until the critic keeps the board (:func:`keeping`; after
    ``MOST_ATTEMPTS`` it is kept as it is); then :func:`polish`. Cells that were given never change.
    ``progress`` is told (evaluations done, evaluations in all) of the attempt that is kept; as long as it is
    sought, none are done. A recorded drawing makes the attempt that was kept a second time.
    """
    how = how or Drawing()
    work = _Work(
        denoiser, boards, seed, how, np.arange(len(boards)) if numbers is None else np.asarray(numbers)
    )
    if len(boards) == 0:
        return Drawn(boards.copy(), work.attempts + 1, [])
    reveals, sweeps = work.evaluations()
    tell = progress or (lambda done, total: None)
    everything, before = slice(0, len(boards)), 0
    if how.critic is not None:
        work.seek(_asked(critic), len(boards), 1, lambda which, share: tell(0, reveals + sweeps))
        if not record:
            before = reveals
            tell(before, reveals + sweeps)
    revealed = how.critic is not None and not record
    log = work.finish(everything, revealed, record, lambda done: tell(before + done, reveals + sweeps))
    return Drawn(work.boards(), work.attempts + 1, [log] if log is not None else [])


def draw_many(
    denoiser: Denoiser,
    boards: Tokens,
    seed: int,
    how: Drawing | None = None,
    first: int = 0,
    record: bool = False,
    progress: Callable[[int, int], None] | None = None,
    critic: Critic | None = None,
) -> Drawn:
    """:func:`draw` for any number of boards, a batch at a time: boards ``first``, ``first + 1``, ... of this seed.

    ``progress`` is told (boards done, boards in all), where a board counts by the share of its evaluations and an
    attempt by half of what is left; what it raises ends the drawing, as Ctrl-C does, after the evaluation under way.
    """
    how = how or Drawing()
    work = _Work(denoiser, boards, seed, how, first + np.arange(len(boards)))
    parts = [slice(i, min(i + denoiser.batch, len(boards))) for i in range(0, len(boards), denoiser.batch)]
    done = _Done(len(boards), progress)
    revealed = how.critic is not None and not record
    sought = 0.0  # the share of the work that seeking is
    if how.critic is not None and parts:
        reveals, sweeps = work.evaluations()
        sought = reveals / max(reveals + sweeps + reveals * record, 1)
        work.seek(
            _asked(critic), denoiser.batch, denoiser.overlap, lambda at, share: done.tell(at, sought * share)
        )

    def batch(part: slice, check: Callable[[], None]) -> Commits | None:
        reveals, sweeps = work.evaluations(part)
        evaluations = sweeps if revealed else reveals + sweeps

        def tell(evaluation: int) -> None:
            check()
            done.tell(part, sought + (1 - sought) * evaluation / evaluations)

        return work.finish(part, revealed, record, tell)

    logs = _side_by_side(denoiser.overlap, batch, parts)
    return Drawn(work.boards(), work.attempts + 1, [log for log in logs if log is not None])


def reveal(
    denoiser: Denoiser,
    tokens: Tokens,
    seed: int,
    numbers: NDArray[np.int64],
    how: Drawing,
    attempts: NDArray[np.int64] | int = 0,
) -> Iterator[Made]:
    """Algorithm 2 on (n, drawn cells) tokens, in place: the commits of one evaluation after the other.

    While cells are masked, at step s of T commit n = max(ceil(|M| / (T - s)), 1) of them, chosen uniformly, each
    drawn from softmax(logits / temperature). The network is told t = T |M| / cells, which is the
    paper's t = T - s whenever T is the number of cells. ``attempts`` says for how many-th time each is drawn, from 0.
    """
    masked = tokens == MASK
    cells = tokens.shape[1]
    u = uniforms(seed, numbers, attempts * _ATTEMPT + _REVEAL_TILE, cells)
    # Masked cells first, in a random order a board; given cells behind them.
    place_in_order = uniforms(seed, numbers, attempts * _ATTEMPT + _REVEAL_ORDER, cells)
    order = np.argsort(np.where(masked, place_in_order, 2.0), axis=1)
    left = masked.sum(1)
    done = np.zeros(len(tokens), dtype=np.int64)
    reveals = min(how.steps or cells, int(left.max()))
    for step in range(reveals):
        t = time_told(denoiser, left)
        count = np.minimum(np.maximum(-(-left // (reveals - step)), 1), left)
        if how.order == "confidence":
            everywhere = np.broadcast_to(np.arange(cells), tokens.shape)
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
        yield _commit(tokens, board, cell, chosen, u)
        done, left = done + count, left - count


def keeping(scores: NDArray[np.float32], c: float) -> NDArray[np.float64]:
    """The probability min(1, exp(score) / c) with which a critic keeps a board.

    What was drawn with probability q(x) is then kept in proportion to q(x) min(exp(score(x)), c).

    >>> keeping(np.log(np.array([1.0, 2.0, 8.0])), 4).round(6).tolist()
    [0.25, 0.5, 1.0]
    """
    kept: NDArray[np.float64] = np.exp(np.minimum(scores.astype(np.float64) - math.log(c), 0))
    return kept


def polish(
    denoiser: Denoiser,
    tokens: Tokens,
    masked: NDArray[np.bool_],
    seed: int,
    numbers: NDArray[np.int64],
    how: Drawing,
) -> Iterator[Made]:
    """Redraw, in place, each cell that was ``masked`` at first from the model given all others, sweep after sweep."""
    cells, count = tokens.shape[1], masked.sum(1)
    for sweep in range(how.polish):
        u = uniforms(seed, numbers, _SWEEPS + 2 * sweep + 1, cells)
        place_in_order = uniforms(seed, numbers, _SWEEPS + 2 * sweep, cells)
        order = np.argsort(np.where(masked, place_in_order, 2.0), axis=1)
        for place in range(int(count.max())):
            board = np.nonzero(place < count)[0]
            cell = order[board, place]
            tokens[board, cell] = MASK
            t = time_told(denoiser, np.ones(len(board), dtype=np.int64))
            p = probabilities(denoiser.logits(tokens[board], t, cell[:, None]), how.temperature)[:, 0]
            yield _commit(tokens, board, cell, p, u)


def _commit(
    tokens: Tokens,
    board: NDArray[np.int64],
    cell: NDArray[np.int64],
    p: NDArray[np.float64],
    u: NDArray[np.float64],
) -> Made:
    tile = pick_tiles(p, u[board, cell])
    tokens[board, cell] = tile
    return board, cell, tile, p


class _Work:
    """Boards on their way from masks to finished: first the attempts that a critic keeps, then all the rest."""

    def __init__(
        self, denoiser: Denoiser, start: Tokens, seed: int, how: Drawing, numbers: NDArray[np.int64]
    ) -> None:
        self.denoiser, self.start, self.seed, self.how, self.numbers = denoiser, start, seed, how, numbers
        self.inside = drawn_cells(denoiser)
        self.blank = np.ascontiguousarray(self._flat()[:, self.inside])
        self.tokens = self.blank.copy()
        self.attempts = np.zeros(len(start), dtype=np.int64)  # before the one that is kept

    def evaluations(self, part: slice | None = None) -> tuple[int, int]:
        """How many the longest of these boards takes to reveal, and to polish."""
        most = int((self.blank[part or slice(None)] == MASK).sum(1).max(initial=0))
        return min(self.how.steps or self.blank.shape[1], most), self.how.polish * most

    def seek(
        self, critic: Critic, batch: int, overlap: int, tell: Callable[[NDArray[np.int64], Any], None]
    ) -> None:
        """Reveal every board until the critic keeps it.

        Rejected boards wait behind the others, so that batches are full as long as there are enough.
        ``tell`` is told (boards, share done), where an attempt under way is half of what is left.
        """
        assert self.how.critic is not None
        waiting = np.arange(len(self.blank))
        while len(waiting):
            front, waiting = waiting[: batch * overlap], waiting[batch * overlap :]
            # Where a batch takes its time anyway, its empty places are used for the next attempts of the same boards.
            ahead = 1 if overlap == 1 else max(batch // len(front), 1)
            board = np.repeat(front, ahead)
            attempt = self.attempts[board] + np.tile(np.arange(ahead), len(front))
            drawn = self._revealed(board, attempt, batch, overlap, tell)
            chance = uniforms(self.seed, self.numbers[board], attempt * _ATTEMPT + _KEEP, 1)[:, 0]
            kept = chance < keeping(critic.scores(drawn), self.how.critic)
            kept |= attempt >= MOST_ATTEMPTS - 1
            kept = kept.reshape(len(front), ahead)
            found, first = kept.any(1), kept.argmax(1)
            self.tokens[front[found]] = drawn.reshape(len(front), ahead, -1)[found, first[found]]
            self.attempts[front] += np.where(found, first, ahead)
            tell(front[found], 1.0)
            waiting = np.concatenate([waiting, front[~found]])

    def _revealed(self, board: NDArray[np.int64], attempt: NDArray[np.int64], batch: int, overlap: int,
                  tell: Callable[[NDArray[np.int64], Any], None]) -> Tokens:  # fmt: skip
        """These attempts at these boards."""

        def one(part: slice, check: Callable[[], None]) -> Tokens:
            tokens = self.blank[board[part]]
            made = reveal(
                self.denoiser, tokens, self.seed, self.numbers[board[part]], self.how, attempt[part]
            )
            told = np.unique(board[part])
            for evaluation, _ in enumerate(made, 1):
                check()
                tell(told, 1 - 0.5 ** (self.attempts[told] + evaluation / evaluations))
            return tokens

        evaluations, _ = self.evaluations()
        parts = [slice(i, i + batch) for i in range(0, len(board), batch)]
        return np.concatenate(_side_by_side(overlap, one, parts))

    def finish(
        self, part: slice, revealed: bool, record: bool, tell: Callable[[int], None]
    ) -> Commits | None:
        """Reveal, unless that is done, and polish one batch; ``tell`` is told how many evaluations are done."""
        start, numbers = self.blank[part], self.numbers[part]
        tokens = self.tokens[part] if revealed else start.copy()
        swept = polish(self.denoiser, tokens, start == MASK, self.seed, numbers, self.how)
        made = swept
        if not revealed:
            attempts = self.attempts[part]
            made = chain(reveal(self.denoiser, tokens, self.seed, numbers, self.how, attempts), swept)
        log: list[tuple[NDArray[Any], ...]] = []
        for evaluation, commits in enumerate(made):
            if record:
                log.append((*commits, np.full(len(commits[0]), evaluation)))
            tell(evaluation + 1)
        self.tokens[part] = tokens
        return _commits(self.start[part], self.inside, log) if record else None

    def boards(self) -> Tokens:
        """The boards as far as they are drawn."""
        finished = self._flat().copy()
        finished[:, self.inside] = self.tokens
        return finished.reshape(self.start.shape)

    def _flat(self) -> Tokens:
        n, height, width = self.start.shape
        return self.start.reshape(n, height * width)


class _Done:
    """Counts boards by the shares of them that are done."""

    def __init__(self, boards: int, progress: Callable[[int, int], None] | None) -> None:
        self._share, self._sum = np.zeros(boards), 0.0
        self._progress, self._telling = progress, Lock()

    def tell(self, which: slice | NDArray[np.int64], share: Any) -> None:
        if self._progress is None:
            return
        with self._telling:  # or one thread's older number could come after another's newer one
            before = self._share[which].sum()
            self._share[which] = np.maximum(self._share[which], share)
            self._sum += self._share[which].sum() - before
            self._progress(int(self._sum + 1e-6), len(self._share))  # sums of shares round a hair off


def _asked(critic: Critic | None) -> Critic:
    if critic is None:
        raise MaskobanError("drawing with a critic needs one, and none was given")
    return critic


def _side_by_side(
    overlap: int, work: Callable[[slice, Callable[[], None]], _Result], parts: Sequence[slice]
) -> list[_Result]:
    """What ``work`` makes of all parts, ``overlap`` at once.

    What one raises ends the others, for they call the function they are given after every evaluation.
    """
    gave_up: list[BaseException] = []  # why, the first reason first

    def check() -> None:
        if gave_up:
            raise CancelledError

    def one(part: slice) -> _Result:
        try:
            return work(part, check)
        except BaseException as reason:
            gave_up.append(reason)  # the other threads know at once; the pool hears in the order of parts
            raise

    if overlap == 1:
        return [one(part) for part in parts]
    with ThreadPoolExecutor(max_workers=overlap) as pool:
        try:
            return list(pool.map(one, parts))
        except BaseException as reason:
            gave_up.append(reason)
            pool.shutdown(wait=False, cancel_futures=True)
            raise gave_up[0] from None


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
