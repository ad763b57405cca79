"""Drawing boards for many people at once, each commit told the moment it is made.

Drawings run on a few threads: the network computes without the interpreter's lock, and between two evaluations
each drawing asks whether anybody still wants it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Level, Tokens
from maskoban.diffusion.denoiser import Denoiser
from maskoban.diffusion.model import Model, load
from maskoban.diffusion.sampler import drawn_cells, probabilities
from maskoban.studio.refusals import Busy, Gone

#: Drawings under way at once, and drawings that may wait for them.
AT_ONCE, WAITING = 2, 16


def shipped_model() -> Model:
    """The shipped model on one core a drawing.

    Two drawings side by side keep two cores as busy as one drawing on both would, and on a busy machine none waits
    for its other half: there this is twice as fast.
    """
    return load(threads=1)


@dataclass(frozen=True)
class Reveal:
    """One evaluation of the network: in every board one cell is committed."""

    step: int
    steps: int
    cells: list[int]  # of each board, counted row by row over the whole board
    tiles: list[int]
    probabilities: list[list[float]]  # of the seven tiles, at the commit


class Watched:
    """A denoiser that remembers what it was asked last.

    The sampler hands over the very array it draws on, so after a commit the drawn tile can be read there.
    """

    def __init__(self, denoiser: Denoiser) -> None:
        self._denoiser = denoiser
        self.height, self.width, self.margin = denoiser.height, denoiser.width, denoiser.margin
        self.steps, self.schedule = denoiser.steps, denoiser.schedule
        self.batch, self.overlap = denoiser.batch, denoiser.overlap
        self.board: Tokens | None = None
        self.asked: NDArray[np.int64] = np.zeros((0, 1), np.int64)
        self.answered: NDArray[np.float32] = np.zeros((0, 1, 7), np.float32)

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        """What the denoiser says."""
        if self.board is None:
            self.board = tokens
        self.asked, self.answered = cells, self._denoiser.logits(tokens, t, cells)
        return self.answered

    def reveal(self, temperature: float, step: int, steps: int) -> Reveal:
        """The commit that has just been made in every board."""
        assert self.board is not None
        cells = self.asked[:, 0]
        tiles = self.board[np.arange(len(cells)), cells]
        shares = probabilities(self.answered[:, 0], temperature).round(4)
        return Reveal(step, steps, drawn_cells(self)[cells].tolist(), tiles.tolist(), shares.tolist())


def drawn(
    model: Model, start: Level | None, count: int, seed: int, temperature: float, polish: int | None,
    tell: Callable[[Reveal], None],
) -> list[Level]:  # fmt: skip
    """``count`` boards of this seed, new ones or completions of ``start``, each commit told to ``tell``.

    What ``tell`` raises ends the drawing. No critic is asked: who watches is to see every board from its first commit,
    and a board that is thrown away would be watched for nothing.
    """
    watched = Watched(model.denoiser)
    commits = Model(watched, model.card).trajectory(
        count, seed, board=start, temperature=temperature, polish=polish, critic=False,
        progress=lambda step, steps: tell(watched.reveal(temperature, step, steps)),
    )  # fmt: skip
    return [Level(board) for board in commits.frames()[-1]]


class Easel:
    """Where the server draws; the model is loaded in the background, so that the page is there at once."""

    def __init__(self, load: Callable[[], Model]) -> None:
        self.inside = 0
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="drawing")
        self._loading = self._threads.submit(load)
        self._stopped = threading.Event()

    @property
    def model(self) -> Model | None:
        """The model, once it is loaded."""
        ready = self._loading.done() and self._loading.exception() is None
        return self._loading.result() if ready else None

    async def draw(
        self, start: Level | None, count: int, seed: int, temperature: float, polish: int | None
    ) -> AsyncIterator[Reveal | list[Level]]:
        """Every reveal as it is made, then the finished boards. Leaving the loop ends the drawing."""
        if self.inside >= AT_ONCE + WAITING:
            raise Busy.crowded("easel")
        self.inside += 1
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[Reveal | list[Level] | BaseException] = asyncio.Queue()
        left = threading.Event()

        def tell(reveal: Reveal) -> None:
            self._check(left)
            loop.call_soon_threadsafe(told.put_nowait, reveal)

        def work() -> None:
            last: list[Level] | BaseException
            try:
                model = self._loading.result()
                self._check(left)
                last = drawn(model, start, count, seed, temperature, polish, tell)
            except BaseException as error:
                last = error
            loop.call_soon_threadsafe(done, last)

        def done(last: list[Level] | BaseException) -> None:
            self.inside -= 1  # only now: a drawing nobody wants any more still takes its thread for a moment
            told.put_nowait(last)

        try:
            self._threads.submit(work)
        except RuntimeError as error:
            self.inside -= 1
            raise Busy.stopping() from error
        try:
            while True:
                event = await told.get()
                if isinstance(event, BaseException):
                    raise event
                yield event
                if isinstance(event, list):
                    return
        finally:
            left.set()

    def _check(self, left: threading.Event) -> None:
        if left.is_set():
            raise Gone
        if self._stopped.is_set():
            raise Busy.stopping()

    def stop(self) -> None:
        """End all drawings; whoever watches is told so."""
        self._stopped.set()

    def close(self) -> None:
        """End all drawings and threads."""
        self.stop()
        self._threads.shutdown(wait=True, cancel_futures=True)
