"""Drawing boards: the paper's Algorithm 2, completion, polish, and a critic's choice, against any :class:`Denoiser`.

A drawing is a sequence of commits. Revealing commits masked cells and never revises them; a polish sweep masks
finished cells again one at a time and redraws each from the model given all the others; a critic, where there is one,
judges the finished board, and may have it thrown away and drawn anew from the beginning. Every commit is drawn in
double precision from numbers that depend only on (seed, board, attempt), so a board comes out the same whatever
the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK, TILES, WALL, Tokens
from maskoban.diffusion.commits import Commits, Made, gathered, no_commits
from maskoban.diffusion.denoiser import Critic, Denoiser, Grid
from maskoban.diffusion.noise import uniforms
from maskoban.diffusion.schedule import time_at
from maskoban.diffusion.side_by_side import Done, Share, cut, side_by_side

Order = Literal["uniform", "confidence"]

#: To be raised when the same settings and seed come to draw other boards: kept drawings are told apart by it.
VERSION = 2

#: What a board's last attempt gives is kept whatever a critic says.
MOST_ATTEMPTS = 1000

# What the random numbers of one board are used for (see noise.py); sweeps use what follows, and every step's candidates
# what follows _CANDIDATES. Attempt a uses those a * _ATTEMPT further on; the last of them decides whether it is kept.
_REVEAL_ORDER, _REVEAL_TILE, _SWEEPS = 0, 1, 2
_ATTEMPT = 2**20
_CANDIDATES = _ATTEMPT // 2
_KEEP = _ATTEMPT - 1


@dataclass(frozen=True)
class Drawing:
    """How to draw: everything but the model, the boards to fill and the seed.

    ``steps``: how many network evaluations the reveal may take; None reveals one cell at a time.
    ``order``: which masked cells are committed: ``uniform`` (the paper's) or ``confidence`` (those whose candidate tile
    is the most probable: the paper's comparison, which drowns boards in walls).
    ``polish``: how many sweeps follow.
    ``critic``: the c of :func:`keeping`, by which a critic keeps what was drawn; None asks no critic.
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
class Drawn:
    """Finished boards, and what it took to draw them."""

    boards: Tokens  # (n, height, width)
    attempts: NDArray[np.int64]  # (n,): how often each was drawn until it was kept; 1 without a critic
    commits: Commits | None  # of the attempts that were kept; None unless recorded


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

    An attempt at a board is to :func:`reveal` and then to :func:`polish` it. Where ``how`` says so, there are attempts
    until the critic keeps one (:func:`keeping`), or ``MOST_ATTEMPTS``. Cells that were given never change.
    ``progress`` is told (evaluations done, evaluations in all) of a single attempt; one that may yet be rejected counts
    by half of what is left.
    """
    which = np.arange(len(boards)) if numbers is None else np.asarray(numbers, dtype=np.int64)
    work = _Work(denoiser, boards, seed, how or Drawing(), which, record, critic)
    return work.finish(max(len(boards), 1), 1, Done(len(boards), work.evaluations(), progress))


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

    ``progress`` is told (boards done, boards in all), where a board counts by the share of its evaluations, and an
    attempt that may yet be rejected by half of what is left; what it raises ends the drawing, as Ctrl-C does, after
    the evaluation under way.
    """
    which = first + np.arange(len(boards))
    work = _Work(denoiser, boards, seed, how or Drawing(), which, record, critic)
    return work.finish(denoiser.batch, denoiser.overlap, Done(len(boards), len(boards), progress))


def draw_in_turn(
    denoiser: Denoiser,
    boards: Tokens,
    seed: int,
    how: Drawing | None = None,
    first: int = 0,
    progress: Callable[[int, int], None] | None = None,
    critic: Critic | None = None,
) -> Iterator[tuple[NDArray[np.int64], Tokens]]:
    """The boards of :func:`draw_many` with their numbers, some at a time: as soon as they and all before them are done.

    Where batches overlap, and no critic is asked, that is all at once. Ctrl-C is raised only after all boards that are
    done have been given, some of which may come after others that are not.
    """
    work = _Work(denoiser, boards, seed, how or Drawing(), first + np.arange(len(boards)), False, critic)
    counted, given = Done(len(boards), len(boards), progress), 0
    try:
        for waiting in work.rounds(denoiser.batch, denoiser.overlap, counted):
            done = slice(given, waiting.min(initial=len(boards)))
            given = done.stop
            if done.start < done.stop:
                yield work.numbers[done], work.boards[done].copy()
    except KeyboardInterrupt:
        late = given + np.flatnonzero(work.finished[given:])
        if len(late):
            yield work.numbers[late], work.boards[late]
        raise


class _Work:
    """Boards on their way from masks to finished: attempt after attempt, until all are kept."""

    def __init__(
        self,
        denoiser: Denoiser,
        start: Tokens,
        seed: int,
        how: Drawing,
        numbers: NDArray[np.int64],
        record: bool,
        critic: Critic | None,
    ) -> None:
        if how.critic is not None and critic is None:
            raise MaskobanError("drawing with a critic needs one, and none was given")
        if not isinstance(seed, int | np.integer) or not -(2**63) <= seed < 2**64:
            raise MaskobanError(f"a seed is a whole number of 64 bits, not {seed!r}")
        if len(numbers) and numbers.min() < 0:
            raise MaskobanError(f"boards of a seed are counted from 0, not {numbers.min()}")
        self.denoiser, self.start, self.seed, self.how = denoiser, start, int(seed), how
        self.numbers, self.critic = numbers, critic
        self.inside = drawn_cells(denoiser)
        self.flat = start.reshape(len(start), denoiser.height * denoiser.width).copy()
        self.blank = np.ascontiguousarray(self.flat[:, self.inside])
        self.masked = (self.blank == MASK).sum(1)
        self.attempts = np.zeros(len(start), dtype=np.int64)  # rejected
        self.finished = np.zeros(len(start), dtype=bool)
        # Before anything is revealed all boards are the same one: of more than a batch, it is asked for once. Not where
        # several cells are asked for at a time, for a network rounds otherwise then.
        self.first: NDArray[np.float32] | None = None
        cells = len(self.inside)
        one_by_one = how.order == "uniform" and (how.steps or cells) >= cells
        if one_by_one and len(start) > max(denoiser.batch, cells) and self.masked.min() == cells:
            self.first = first_logits(denoiser)
        room = (1 + how.polish) * int(self.masked.max(initial=0))
        self.commits = no_commits(start, room) if record else None

    def evaluations(self, boards: NDArray[np.int64] | slice = slice(None)) -> int:
        """How many an attempt at these boards takes in one batch."""
        most = int(self.masked[boards].max(initial=0))
        return min(self.how.steps or most, most) + self.how.polish * most

    @property
    def boards(self) -> Tokens:
        """All of them, as far as they are drawn."""
        return self.flat.reshape(self.start.shape)

    def finish(self, batch: int, overlap: int, done: Done) -> Drawn:
        """Draw all boards, so many in a batch and so many batches at once."""
        for _ in self.rounds(batch, overlap, done):
            pass
        return Drawn(self.boards, self.attempts + 1, self.commits)

    def rounds(self, batch: int, overlap: int, done: Done) -> Iterator[NDArray[np.int64]]:
        """Draw all boards, and say after each round of attempts which are still to be drawn."""
        waiting, asked = np.arange(len(self.blank)), self.how.critic is not None
        while len(waiting):
            # Overlapping batches wait for each other at the end of a round, so there is only one where there can be.
            size = batch * overlap if asked or overlap == 1 else len(waiting)
            front, waiting = np.split(waiting, [size])
            # Where a batch takes its time however empty it is, the next attempts at its boards fill it up.
            ahead = max(batch // len(front), 1) if asked and overlap > 1 else 1
            board = np.repeat(front, ahead)
            attempt = self.attempts[board] + np.tile(np.arange(ahead), len(front))
            parts = cut(len(board), batch)
            made = side_by_side(overlap, partial(self._attempted, board, attempt, done), parts)

            drawn = np.concatenate([tokens for tokens, _ in made])
            kept = self._kept(drawn, board, attempt).reshape(len(front), ahead)
            found = kept.any(1)
            chosen = (kept & (kept.cumsum(1) == 1)).ravel()  # the first that is kept
            self.flat[np.ix_(board[chosen], self.inside)] = drawn[chosen]
            if self.commits is not None:
                for part, (_, commits) in zip(parts, made, strict=True):
                    self.commits.take(board[part][chosen[part]], commits, chosen[part])
            self.attempts[front] += np.where(found, kept.argmax(1), ahead)
            if asked:
                done.tell(front[found], 1.0)
            # Before the others, which fill the batch up: boards are finished in about their order.
            waiting = np.concatenate([front[~found], waiting])
            self.finished[front[found]] = True
            yield waiting

    def _attempted(
        self,
        board: NDArray[np.int64],
        attempt: NDArray[np.int64],
        done: Done,
        part: slice,
        check: Callable[[], None],
    ) -> tuple[Tokens, Commits]:
        """One batch of these attempts at these boards: what is drawn, and, where it is to be recorded, how."""
        board, attempt, log = board[part], attempt[part], list[Made]()
        tokens, numbers, which = self.blank[board], self.numbers[board], np.unique(board)
        masked, evaluations = tokens == MASK, self.evaluations(board)
        made = chain(
            reveal(self.denoiser, tokens, self.seed, numbers, self.how, attempt, self.first),
            polish(self.denoiser, tokens, masked, self.seed, numbers, self.how, attempt),
        )
        for evaluation, commits in enumerate(made, 1):
            if self.commits is not None:
                log.append(commits)
            check()
            share: Share = evaluation / evaluations
            if self.how.critic is not None:
                share = 1 - 0.5 ** (self.attempts[which] + share)
            done.tell(which, share)
        return tokens, gathered(self.start[board], self.inside, log)

    def _kept(self, drawn: Tokens, board: NDArray[np.int64], attempt: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these attempts the critic keeps, if one is to be asked."""
        if self.how.critic is None or self.critic is None:
            return np.ones(len(drawn), dtype=bool)
        u = uniforms(self.seed, self.numbers[board], attempt * _ATTEMPT + _KEEP, 1)[:, 0]
        kept: NDArray[np.bool_] = u < keeping(self.critic.scores(drawn), self.how.critic)
        return kept | (attempt >= MOST_ATTEMPTS - 1)


def reveal(
    denoiser: Denoiser,
    tokens: Tokens,
    seed: int,
    numbers: NDArray[np.int64],
    how: Drawing,
    attempts: NDArray[np.int64] | int = 0,
    first: NDArray[np.float32] | None = None,
) -> Iterator[Made]:
    """Algorithm 2 on (n, drawn cells) tokens, in place: the commits of one evaluation after the other.

    While cells are masked, at step s of T draw a candidate tile for each from softmax(logits / temperature), commit
    n = max(ceil(|M| / (T - s)), 1) of them, and forget the others. ``uniform``: which ones is random, so the others
    need not be drawn at all. ``confidence``: those whose candidate has the highest probability. The network is told
    the time at which so many cells are masked: the paper's t = T - s, on its schedule. ``attempts`` says for how
    many-th time each is drawn, from 0; ``first`` what :func:`first_logits` gives, if nothing is revealed yet and
    it is known.
    """
    masked = tokens == MASK
    cells = tokens.shape[1]
    purpose = attempts * _ATTEMPT
    u = uniforms(seed, numbers, purpose + _REVEAL_TILE, cells)
    # Masked cells first, in a random order a board; given cells behind them.
    place_in_order = uniforms(seed, numbers, purpose + _REVEAL_ORDER, cells)
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
            u = uniforms(seed, numbers, purpose + _CANDIDATES + step, cells)
            confidence = np.take_along_axis(p, pick_tiles(p, u)[..., None], axis=2)[..., 0]
            ranked = np.argsort(np.where(tokens == MASK, -confidence, 1.0), axis=1, kind="stable")
            board, rank = np.nonzero(np.arange(cells) < count[:, None])
            cell = ranked[board, rank]
            chosen = p[board, cell]
        else:
            place = np.minimum(done[:, None] + np.arange(int(count.max())), cells - 1)
            ask = np.take_along_axis(order, place, axis=1)
            known = first if step == 0 else None
            logits = denoiser.logits(tokens, t, ask) if known is None else known[ask]
            p = probabilities(logits, how.temperature)
            board, rank = np.nonzero(np.arange(ask.shape[1]) < count[:, None])
            cell = ask[board, rank]
            chosen = p[board, rank]
        yield _commit(tokens, board, cell, chosen, u)
        done, left = done + count, left - count


def polish(
    denoiser: Denoiser,
    tokens: Tokens,
    masked: NDArray[np.bool_],
    seed: int,
    numbers: NDArray[np.int64],
    how: Drawing,
    attempts: NDArray[np.int64] | int = 0,
) -> Iterator[Made]:
    """Redraw, in place, each cell that was ``masked`` at first from the model given all others, sweep after sweep."""
    cells, count = tokens.shape[1], masked.sum(1)
    for sweep in range(how.polish):
        purpose = attempts * _ATTEMPT + _SWEEPS + 2 * sweep
        u = uniforms(seed, numbers, purpose + 1, cells)
        place_in_order = uniforms(seed, numbers, purpose, cells)
        order = np.argsort(np.where(masked, place_in_order, 2.0), axis=1)
        for place in range(int(count.max())):
            board = np.nonzero(place < count)[0]
            cell = order[board, place]
            tokens[board, cell] = MASK
            t = time_told(denoiser, np.ones(len(board), dtype=np.int64))
            p = probabilities(denoiser.logits(tokens[board], t, cell[:, None]), how.temperature)[:, 0]
            yield _commit(tokens, board, cell, p, u)


def keeping(scores: NDArray[np.float32], c: float) -> NDArray[np.float64]:
    """The probability min(1, exp(score) / c) with which a critic keeps a board.

    What was drawn with probability q(x) is then kept in proportion to q(x) min(exp(score(x)), c).

    >>> keeping(np.log(np.array([1.0, 2.0, 8.0])), 4).round(6).tolist()
    [0.25, 0.5, 1.0]
    """
    kept: NDArray[np.float64] = np.exp(np.minimum(scores.astype(np.float64) - math.log(c), 0))
    return kept


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


def probabilities(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float64]:
    """softmax(logits / temperature) over the last axis, in double precision."""
    z = logits.astype(np.float64)
    # At the least temperatures all but the most probable are infinitely far below.
    with np.errstate(over="ignore"):
        z = np.exp((z - z.max(axis=-1, keepdims=True)) / temperature)
    result: NDArray[np.float64] = z / z.sum(axis=-1, keepdims=True)
    return result


def pick_tiles(p: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
    """The tile at which the cumulative probability passes u: an exact draw from p for uniform u."""
    tile: NDArray[np.int64] = (np.cumsum(p, axis=-1) <= u[..., None]).sum(-1)
    return np.minimum(tile, TILES - 1)  # rounding may leave the last sum a hair under 1


def drawn_cells(grid: Grid) -> NDArray[np.int64]:
    """The cells a denoiser or a network draws, as indices into the whole board read row by row."""
    height, width, m = grid.height, grid.width, grid.margin
    return np.arange(height * width).reshape(height, width)[m : height - m, m : width - m].ravel()


def drawn_part(boards: Tokens, grid: Grid, whose: str, who: str) -> Tokens:
    """The drawn cells of boards, (n, height, width) to (n, cells); boards of another size are refused by these names.

    >>> from types import SimpleNamespace
    >>> drawn_part(np.arange(12).reshape(1, 3, 4), SimpleNamespace(height=3, width=4, margin=1), "this", "a model")
    array([[5, 6]])
    """
    if boards.shape[1:] != (grid.height, grid.width):
        size = "x".join(map(str, boards.shape[1:]))
        raise MaskobanError(f"{whose} has {size} boards, but {who} draws {grid.height}x{grid.width}")
    return boards.reshape(-1, grid.height * grid.width)[:, drawn_cells(grid)]


def first_logits(denoiser: Denoiser) -> NDArray[np.float32]:
    """The logits of every cell while all are masked, (cells, tiles): each asked for by itself, as in drawing."""
    cells = len(drawn_cells(denoiser))
    tokens = np.full((cells, cells), MASK, dtype=np.uint8)
    t = time_told(denoiser, np.full(cells, cells))
    return denoiser.logits(tokens, t, np.arange(cells)[:, None])[:, 0].copy()


def time_told(denoiser: Denoiser, masked: NDArray[np.int64]) -> NDArray[np.int64]:
    """The time at which so many cells are masked, rounded, at least 1: t = T |M| / cells on the linear schedule."""
    t = time_at(denoiser.schedule, masked, len(drawn_cells(denoiser)), denoiser.steps)
    return np.maximum(np.rint(t), 1).astype(np.int64)


def blank(denoiser: Denoiser, n: int) -> Tokens:
    """Boards with nothing drawn yet: MASK everywhere the denoiser draws, wall around it."""
    boards = np.full((n, denoiser.height * denoiser.width), WALL, dtype=np.uint8)
    boards[:, drawn_cells(denoiser)] = MASK
    return boards.reshape(n, denoiser.height, denoiser.width)
