"""The model as people use it: sample boards, complete partly given ones, watch the sampling, ask for likelihoods.

model = maskoban.load()
for level in model.generate(9, seed=7):
    print(level)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban._util.progress import OnProgress
from maskoban.boards import Level
from maskoban.boards.tiles import MASK, Tokens
from maskoban.diffusion.completion import check_counts, model_tokens, partial_board
from maskoban.diffusion.conditions import ConditionalCritic, Conditioned, Conditions
from maskoban.diffusion.denoiser import Critic, Denoiser, blank_boards, interior_cells
from maskoban.diffusion.likelihood import cell_probabilities, negative_log_likelihood
from maskoban.diffusion.sampler import SAMPLERS, AttemptEnd, Commit, SamplerConfig, sample_steps
from maskoban.diffusion.trajectory import BoardProgress, Trajectory, sample_boards
from maskoban.errors import MaskobanError
from maskoban.solving.filters import BoardFilter

#: Sampling for a filter ends when it keeps fewer than one board in this many.
RAREST = 500


class TooRareError(MaskobanError):
    """A board filter keeps so few boards that sampling was given up."""


class Model:
    """A denoiser, its critic and its card. The same seed and sampler give the same boards, whatever the batch.

    ``int8`` loads the same network with int8 products: a denoiser, or a ``ConditionalNet``. The critic is used only
    where the card has its ``critic``, the bound c of :func:`~maskoban.diffusion.sampler.acceptance`.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        card: dict[str, Any],
        folder: Path | None = None,
        critic: Critic | ConditionalCritic | None = None,
        int8: Callable[[], Any] | None = None,
    ) -> None:
        self.denoiser, self.card, self.folder = denoiser, card, folder
        self.critic = critic if card.get("critic") is not None else None
        self.name: str = card.get("name", "unnamed")
        self.height, self.width = denoiser.height, denoiser.width
        self._load_int8, self._int8 = int8, list[Any]()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_int8": []}

    # --- conditions -------------------------------------------------------------------------------------------------

    @property
    def conditional(self) -> bool:
        """Whether the model samples boards of many sizes, and takes boxes and difficulty as conditions."""
        return isinstance(self.denoiser, Conditioned)

    @property
    def conditions(self) -> Conditions | None:
        """What its boards are to be; None of a model without conditions."""
        return self.denoiser.conditions if isinstance(self.denoiser, Conditioned) else None

    def given(
        self, size: tuple[int, int] | None = None, boxes: int | None = None, difficulty: str | None = None,
        corpus: str | None = None, guidance: float | None = None,
    ) -> Model:  # fmt: skip
        """The model for boards of this size (height, width), with these conditions; None leaves one to the model.

        Without a size, a conditional model samples the one most frequent in its corpus. Other models have one size and
        no conditions.

        >>> from maskoban.diffusion.loading import load
        >>> load().given(size=(8, 12))
        Traceback (most recent call last):
            ...
        maskoban.errors.MaskobanError: model 'best' samples 10x10 boards, not 8x12; model 'any' samples other sizes
        """
        if isinstance(self.denoiser, Conditioned):
            height, width = size or (None, None)
            denoiser = self.denoiser.given(
                height=height,
                width=width,
                boxes=boxes,
                difficulty=difficulty,
                corpus=corpus,
                guidance=guidance,
            )
            if denoiser.conditions == self.denoiser.conditions:
                return self
            model = Model(denoiser, self.card, self.folder, self.critic, self._load_int8)
            model._int8 = self._int8  # loaded once for all conditions
            return model
        if size not in (None, (self.height, self.width)):
            own, other = f"{self.height}x{self.width}", "x".join(map(str, size or ()))
            raise MaskobanError(
                f"model {self.name!r} samples {own} boards, not {other}; model 'any' samples other sizes"
            )
        if (boxes, difficulty, corpus, guidance) != (None, None, None, None):
            raise MaskobanError(f"model {self.name!r} has no conditions; filter its boards instead")
        return self

    def conditioned(
        self, wanted: BoardFilter, size: tuple[int, int] | None = None, guidance: float | None = None
    ) -> tuple[Model, BoardFilter]:
        """The model given what it takes as conditions of a filter and a size, and the filter for the rest.

        Difficulty by decomposed effort, or by a reference of one's own, is always a filter.
        """
        if not self.conditional:
            return self.given(size, guidance=guidance), wanted
        by_effort = wanted.difficulty_by == "effort" and wanted.quartiles is None
        difficulty = wanted.difficulty if by_effort else None
        left = replace(wanted, boxes=None, difficulty=None if by_effort else wanted.difficulty)
        return self.given(size, wanted.boxes, difficulty, guidance=guidance), left

    def conditioned_on(
        self, board: Level | Tokens, wanted: BoardFilter, guidance: float | None = None
    ) -> tuple[Model, BoardFilter]:
        """:meth:`conditioned` for completions of this board, whose size is the size."""
        model, left = self, wanted
        if self.conditional:
            height, width = board.shape
            model, left = self.conditioned(wanted, (height, width), guidance)
        model.check_completable(board, wanted.boxes)
        return model, left

    # --- how boards are sampled -------------------------------------------------------------------------------------

    def sampler(self, sampler: str | SamplerConfig = "best", **changes: Any) -> SamplerConfig:
        """The config a name stands for with this model, with some fields changed (:meth:`SamplerConfig.change`).

        >>> from maskoban.diffusion.loading import load
        >>> load().sampler("best")
        SamplerConfig(steps=None, order='uniform', temperature=1.0, sweeps=1, critic=True, precision='fp32')
        """
        config = SAMPLERS[sampler] if isinstance(sampler, str) else sampler
        if sampler == "best":
            config = SamplerConfig(sweeps=self.card.get("polish", 0), critic=self.critic is not None)
        config = config.change(**changes)
        if config.critic and self.critic is None:
            raise MaskobanError(f"model {self.name!r} has no critic; expected a sampler without one")
        if config.precision == "int8" and self._load_int8 is None:
            raise MaskobanError(
                f"model {self.name!r} has no int8 version; expected an exported model on a cpu"
            )
        return config

    def steps(
        self,
        start: Tokens,
        seed: int = 0,
        sampler: str | SamplerConfig = "best",
        numbers: Sequence[int] | None = None,
    ) -> Iterator[Commit | AttemptEnd]:
        """Fill the masked cells of :meth:`start` boards: every commit as it is made, and the end of every attempt.

        >>> from maskoban.diffusion.loading import load
        >>> model = load()
        >>> commit = next(model.steps(model.start(2), seed=7))
        >>> commit.cell.shape, commit.probabilities.shape
        ((2,), (2, 7))
        """
        denoiser, config, critic, bound = self._resolved(sampler, start)
        return sample_steps(denoiser, start, seed, config, numbers, critic, bound)

    def start(self, n: int, board: Level | Tokens | None = None) -> Tokens:
        """``n`` boards to sample: fully masked ones, or copies of a board with masked (``?``) cells."""
        if n < 1:
            raise MaskobanError(f"number of boards: expected at least 1, got {n}")
        if board is None:
            return blank_boards(self.denoiser, n)
        self.check_completable(board)
        return np.repeat(partial_board(self, board)[None], n, axis=0)

    def _resolved(
        self, sampler: str | SamplerConfig, start: Tokens
    ) -> tuple[Denoiser, SamplerConfig, Critic | None, float]:
        """The denoiser, the config, the critic and its bound for these boards.

        The critic compares whole boards: none for partly given ones.
        """
        config = self.sampler(sampler)
        inside = start.reshape(len(start), -1)[:, interior_cells(self.denoiser)]
        if config.critic and not (inside == MASK).all():
            if not isinstance(sampler, str):
                raise MaskobanError("a critic is for boards sampled from nothing, not for partly given ones")
            config = config.change(critic=False)
        denoiser, bound = self.denoiser, float(self.card["critic"]) if config.critic else 1.0
        if config.precision == "int8" and self._load_int8 is not None:
            with _LOADING:
                if not self._int8:
                    self._int8.append(self._load_int8())
            denoiser = self._int8[0]
            if isinstance(self.denoiser, Conditioned):
                denoiser = Conditioned(self._int8[0], self.denoiser.conditions)
        critic: Any = self.critic if config.critic else None
        if critic is not None and isinstance(self.denoiser, Conditioned):
            critic = self.denoiser.critic(critic)
        return denoiser, config, critic, bound

    # --- boards -----------------------------------------------------------------------------------------------------

    def sample(
        self,
        n: int,
        seed: int = 0,
        sampler: str | SamplerConfig = "best",
        *,
        first: int = 0,
        on_progress: OnProgress | None = None,
    ) -> Tokens:
        """``n`` boards as one uint8 array, unfiltered: boards ``first``, ``first + 1``, ... of this seed.

        >>> from maskoban.diffusion.loading import load
        >>> load().sample(2, seed=7, sampler="fast").shape
        (2, 10, 10)
        """
        numbers = range(first, first + n)
        return self._sampled(self.start(n), seed, sampler, numbers, False, on_progress).boards

    def trajectory(
        self,
        n: int = 1,
        seed: int = 0,
        sampler: str | SamplerConfig = "best",
        *,
        board: Level | Tokens | None = None,
        numbers: Sequence[int] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Trajectory:
        """Every commit of the accepted attempts, with its probabilities; the boards are those of :meth:`sample`.

        ``board`` completes a partly given board instead. ``numbers`` are the boards of the seed's sequence, ``n`` of
        them; 0, 1, 2, ... by default.
        """
        start = self.start(n if numbers is None else len(numbers), board)
        return self._sampled(start, seed, sampler, numbers, True, on_progress)

    def _sampled(
        self,
        start: Tokens,
        seed: int,
        sampler: str | SamplerConfig,
        numbers: Sequence[int] | None,
        record: bool,
        on_progress: OnProgress | None,
    ) -> Trajectory:
        denoiser, config, critic, bound = self._resolved(sampler, start)
        return sample_boards(denoiser, start, seed, config, numbers, critic, bound, record, on_progress)

    def generate(
        self,
        n: int,
        seed: int = 0,
        sampler: str | SamplerConfig = "best",
        *,
        size: tuple[int, int] | None = None,
        only_solvable: bool = False,
        difficulty: str | None = None,
        boxes: int | None = None,
        guidance: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[Level]:
        """``n`` boards as levels, each titled with its number in the seed's sequence.

        Sampling never uses the solver. With a filter (``only_solvable``, ``difficulty``: easy, medium, hard, expert,
        ``boxes``), the solver judges finished boards, and the first ``n`` boards of the sequence that match are kept.

        For a conditional model (:meth:`given`) ``size`` (height, width), ``boxes`` and ``difficulty`` are conditions,
        and only ``only_solvable`` filters; ``guidance`` says how much the difficulty counts (3; 1 is twice as fast).
        """
        model, wanted = self.conditioned(BoardFilter(only_solvable, difficulty, boxes), size, guidance)
        return [level for _, level in model.stream(n, seed, sampler, wanted, on_progress=on_progress)]

    def complete(
        self,
        board: Level | Tokens,
        n: int = 1,
        seed: int = 0,
        sampler: str | SamplerConfig = "best",
        *,
        only_solvable: bool = False,
        difficulty: str | None = None,
        boxes: int | None = None,
        guidance: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[Level]:
        """``n`` completions of the masked (``?``) cells of a board; given cells never change.

        Filters and conditions are those of :meth:`generate`; a conditional model completes boards of any size in its
        range. ``best`` is without the critic here, which compares whole boards.
        """
        model, wanted = self.conditioned_on(board, BoardFilter(only_solvable, difficulty, boxes), guidance)
        found = model.stream(n, seed, sampler, wanted, board=board, on_progress=on_progress)
        return [level for _, level in found]

    def stream(
        self,
        n: int,
        seed: int = 0,
        sampler: str | SamplerConfig = "best",
        board_filter: BoardFilter | None = None,
        *,
        board: Level | Tokens | None = None,
        on_progress: OnProgress | None = None,
    ) -> Iterator[tuple[int, Level]]:
        """:meth:`generate` or :meth:`complete`, each level as soon as it is sampled, with its number in the sequence.

        ``on_progress`` counts the boards that match. Ctrl-C is raised after all finished boards were given.

        >>> from maskoban.diffusion.loading import load
        >>> [number for number, level in load().stream(2, seed=7, sampler="fast")]
        [0, 1]
        """
        wanted = board_filter or BoardFilter()
        start = self.start(min(n, 1), board)
        if board is not None:
            self.check_completable(board, wanted.boxes)
            if not (start == MASK).any() and not wanted.matches(start)[0]:
                raise TooRareError(f"the board has no masked cells, and does not match the filter ({wanted})")
        kept = sampled = 0
        while kept < n:
            if sampled >= RAREST * n:
                raise TooRareError(f"only {kept} of {sampled} sampled boards match ({wanted}); gave up")
            count = max(n - kept, min(self.denoiser.batch, 2 * n)) if wanted else n - kept
            count = min(count, 4 * self.denoiser.batch)
            report = None if wanted or on_progress is None else _shifted(on_progress, sampled, n)
            for numbers, boards in self._in_order(start, count, sampled, seed, sampler, report):
                matching = np.flatnonzero(wanted.matches(boards))[: n - kept]
                kept += len(matching)
                sampled += len(boards)
                if wanted and on_progress is not None:
                    on_progress(kept, n)
                for i in matching:
                    title = board.title if isinstance(board, Level) else self.title(seed, int(numbers[i]))
                    yield int(numbers[i]), Level(boards[i], title=title)
                if kept == n and numbers[-1] + 1 == sampled:  # else boards are missing before it: Ctrl-C came
                    return

    def _in_order(
        self,
        start: Tokens,
        count: int,
        first: int,
        seed: int,
        sampler: str | SamplerConfig,
        on_progress: OnProgress | None,
    ) -> Iterator[tuple[NDArray[np.int64], Tokens]]:
        """Boards ``first``, ``first + 1``, ... with their numbers, as soon as they and all before them are finished.

        On Ctrl-C finished boards behind unfinished ones are given, too, before it is raised.
        """
        start = np.repeat(start, count, axis=0)
        numbers = first + np.arange(count)
        denoiser, config, *_ = self._resolved(sampler, start)
        if denoiser.overlap > 1:  # a device that is best used by several threads
            yield numbers, self._sampled(start, seed, config, numbers.tolist(), False, on_progress).boards
            return
        progress = BoardProgress(start, config, on_progress)
        boards, finished, given = start.copy(), np.zeros(count + 1, dtype=bool), 0
        try:
            for event in self.steps(start, seed, config, numbers.tolist()):
                progress.add(event)
                if isinstance(event, AttemptEnd):
                    done = event.board[event.accepted]
                    boards[done], finished[done] = event.boards[event.accepted], True
                    new, given = slice(given, int(finished.argmin())), int(finished.argmin())
                    if new.start < new.stop:
                        yield numbers[new], boards[new].copy()
        except KeyboardInterrupt:
            late = given + np.flatnonzero(finished[given:])
            if len(late):
                yield numbers[late], boards[late]
            raise

    def title(self, seed: int, number: int) -> str:
        """The title of a board of a seed's sequence: model, seed and number."""
        return f"{self.name} {seed}-{number}"

    # --- probabilities ----------------------------------------------------------------------------------------------

    def odds(self, board: Level | Tokens) -> NDArray[np.float64]:
        """The probabilities of the seven tiles in every cell of a partly masked board: (height, width, 7).

        In masked (``?``) cells they are the model's, given all other cells; a given cell has probability 1 on its tile.
        Many boards (n, height, width) give (n, height, width, 7), faster than one by one.

        >>> from maskoban.diffusion.loading import load
        >>> load().odds(np.full((10, 10), 7)).shape
        (10, 10, 7)
        """
        model = self._of_size(board.shape)
        if isinstance(board, np.ndarray) and board.ndim == 3:
            if not len(board):
                raise MaskobanError("boards: expected at least one, got none")
            return cell_probabilities(model.denoiser, np.array([model_tokens(model, each) for each in board]))
        found: NDArray[np.float64] = cell_probabilities(model.denoiser, model_tokens(model, board)[None])[0]
        return found

    def _of_size(self, shape: Sequence[int]) -> Model:
        """The model of boards (..., height, width), where it has the choice."""
        return self.given(size=(shape[-2], shape[-1])) if self.conditional else self

    def negative_log_likelihood(
        self,
        boards: Level | Tokens | Sequence[Level | Tokens],
        orders: int = 1,
        seed: int = 0,
        *,
        on_progress: OnProgress | None = None,
    ) -> NDArray[np.float64]:
        """An upper bound of the negative log-likelihood of finished boards, in nats: the negative ELBO on average.

        Each board costs as many evaluations as sampling it plainly, in each of ``orders`` random orders of unmasking,
        whose mean is returned. All boards use the same orders.

        >>> from maskoban.diffusion.loading import load
        >>> model = load()
        >>> bool(model.negative_log_likelihood(model.generate(1, seed=7))[0] < 100)
        True
        """
        if orders < 1:
            raise MaskobanError(f"orders: expected at least 1, got {orders}")
        if isinstance(boards, Level) or (isinstance(boards, np.ndarray) and boards.ndim == 2):
            boards = [boards]
        model = self._of_size(boards[0].shape) if len(boards) else self
        tokens = [model_tokens(model, board) for board in boards]
        for number, board in enumerate(tokens):
            if (board == MASK).any():
                raise MaskobanError(f"board {number} has masked cells; expected finished boards")
        if not tokens:
            return np.zeros(0)
        return negative_log_likelihood(model.denoiser, np.array(tokens), seed, orders, on_progress)

    #: The older name.
    surprise = negative_log_likelihood

    # --- checks -----------------------------------------------------------------------------------------------------

    def check_completable(self, board: Level | Tokens, boxes: int | None = None) -> None:
        """Raise a :class:`MaskobanError` if no completion of this board, or none with so many boxes, is possible.

        >>> from maskoban.diffusion.loading import load
        >>> load().check_completable(Level.parse("#####\\n#@$?#\\n#####"))
        Traceback (most recent call last):
            ...
        maskoban.errors.MaskobanError: the board is 3x5, but model 'best' samples 10x10 boards; surround it with #
        """
        check_counts(partial_board(self, board), boxes)


_LOADING = Lock()


def _shifted(on_progress: OnProgress, before: int, total: int) -> OnProgress:
    """Progress of a part as progress of the whole."""
    return lambda done, _: on_progress(before + done, total)
