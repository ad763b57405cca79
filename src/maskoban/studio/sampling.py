"""Sampling for several clients at once: a stream of events, sent as the sampler makes its commits.

Sampling runs on a few threads; the network computes without the interpreter's lock. Between two evaluations each
thread checks whether its client is still connected.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from maskoban.boards import MASK, Level, Tokens
from maskoban.diffusion.denoiser import interior_cells
from maskoban.diffusion.loading import load
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import SAMPLERS, AttemptEnd, Commit, SamplerConfig
from maskoban.solving.filters import BoardFilter
from maskoban.studio.limits import FULL, MAX_SAMPLED, SAMPLING_THREADS, SAMPLING_WAITING, STOPPING, Busy
from maskoban.studio.schemas import Complete, Generate, Judgement, ModelFacts, NamedSampler

#: A name and data.
Event = tuple[str, dict[str, Any]]

#: By model and sampler: the share of solvable boards, and attempts a board. The tests compare them with docs/reports.
MEASURED = {
    ("best", "best"): (0.902, 1.326),
    ("best", "plain"): (0.826, 1.0),
    ("best", "fast"): (0.571, 1.0),
}


def shipped_model() -> Model:
    """The shipped model, on one core a request: on a busy machine that is twice as fast as two cores for each."""
    return load(threads=1)


def any_model() -> Model:
    """The shipped model of boards of any size, on one core a request."""
    return load("any", threads=1)


def facts(model: Model) -> ModelFacts:
    """What the page shows of a model and its samplers."""
    cells, samplers = len(interior_cells(model.denoiser)), []
    for name in SAMPLERS:
        config = model.sampler(name)
        solvable, attempts = MEASURED.get((model.name, name), (None, None if config.critic else 1.0))
        cost = None if attempts is None else round(config.cost(cells, attempts), 1)
        samplers.append(
            NamedSampler(name=name, config=config, solvable=solvable, attempts=attempts, evaluations=cost)
        )
    return ModelFacts(name=model.name, height=model.height, width=model.width, samplers=samplers)


class SamplingThreads:
    """The threads, and the model; it is loaded in the background, so that the page opens at once.

    The model of other sizes and numbers of boxes is loaded when it is first asked for.
    """

    def __init__(self, load: Callable[[], Model], load_any: Callable[[], Model] = any_model) -> None:
        self._load_any, self._loading_any = load_any, list[Future[Model]]()
        self.requests = 0  # that wait or run
        self._threads = ThreadPoolExecutor(SAMPLING_THREADS, thread_name_prefix="sampling")
        self._loading = self._threads.submit(load)
        self._stopped = threading.Event()

    @property
    def model(self) -> Model | None:
        """The model, or None while it is being loaded."""
        ready = self._loading.done() and self._loading.exception() is None
        return self._loading.result() if ready else None

    async def loaded(self) -> Model:
        """The model, as soon as it is loaded."""
        return await asyncio.shield(asyncio.wrap_future(self._loading))

    async def model_for(self, size: tuple[int, int] | None, boxes: int | None) -> Model:
        """The model that samples boards of this size with so many boxes."""
        main = await self.loaded()
        if main.conditional or (size in (None, (main.height, main.width)) and boxes in (None, 4)):
            return main
        if not self._loading_any or (self._loading_any[0].done() and self._loading_any[0].exception()):
            self._loading_any[:] = [self._threads.submit(self._load_any)]
        return await asyncio.shield(asyncio.wrap_future(self._loading_any[0]))

    async def steps(
        self, model: Model, start: Tokens, seed: int, config: SamplerConfig, numbers: range
    ) -> AsyncGenerator[Commit | AttemptEnd, None]:
        """``model.steps`` on a thread. Closing the generator ends the sampling."""
        loop, closed = asyncio.get_running_loop(), threading.Event()
        queue: asyncio.Queue[Commit | AttemptEnd | BaseException | None] = asyncio.Queue()

        def work() -> None:
            last: BaseException | None = None
            try:
                for event in model.steps(start, seed, config, numbers):
                    if self._stopped.is_set():
                        raise Busy(STOPPING)
                    if closed.is_set():
                        break
                    loop.call_soon_threadsafe(queue.put_nowait, event)
            except BaseException as error:
                last = error
            loop.call_soon_threadsafe(queue.put_nowait, last)

        try:
            self._threads.submit(work)
        except RuntimeError as error:
            raise Busy(STOPPING) from error
        try:
            while (event := await queue.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            closed.set()

    def stop(self) -> None:
        """End all sampling; the clients get an error."""
        self._stopped.set()

    def close(self) -> None:
        """End all sampling and the threads."""
        self.stop()
        self._threads.shutdown(wait=True, cancel_futures=True)


async def sample(
    threads: SamplingThreads, judge: Callable[[str], Awaitable[Judgement]], request: Generate | Complete
) -> AsyncGenerator[Event, None]:
    """The boards of a request as events: start, boards, commit, attempt, judged, end (see docs/studio.md).

    With a filter the first boards of the seed's sequence that match are kept, as everywhere. Boards that do not match
    are replaced by the next ones of the sequence, in rounds.
    """
    if threads.requests >= SAMPLING_THREADS + SAMPLING_WAITING:
        raise Busy(FULL.format("sampler"))
    threads.requests += 1
    try:
        board, size = None, None
        if isinstance(request, Complete):
            board = Level.parse(request.board)
            size = board.shape
        elif request.size is not None:
            height, width = map(int, request.size.split("x"))
            size = height, width
        model = await threads.model_for(size, request.boxes)
        wanted = BoardFilter(request.only_solvable, request.difficulty, request.boxes)
        if board is None or model.conditional:
            model, wanted = model.conditioned(wanted, size)
        seed = secrets.randbelow(1_000_000) if request.seed is None else request.seed
        config = _config(model, request)
        start = model.start(request.count, board)
        evaluations = int(config.cost(int((start[0] == MASK).sum())))
        head = {"seed": seed, "count": request.count, "model": model.name, "board": str(Level(start[0]))}
        yield "start", {**head, "sampler": asdict(config), "evaluations": evaluations}
        kept = sampled = 0
        while kept < request.count and sampled < MAX_SAMPLED * request.count:
            numbers = range(sampled, sampled + request.count - kept)
            sampled += len(numbers)
            yield "boards", {"numbers": list(numbers)}
            async with aclosing(threads.steps(model, start[: len(numbers)], seed, config, numbers)) as steps:
                async for step in steps:
                    which = [numbers[i] for i in step.board]
                    if isinstance(step, Commit):
                        made = {"cells": step.cell.tolist(), "tiles": step.tile.tolist()}
                        shares = step.probabilities.round(4).tolist()
                        yield "commit", {"numbers": which, **made, "probabilities": shares}
                        continue
                    yield "attempt", {"numbers": which, "accepted": step.accepted.tolist()}
                    for i in step.accepted.nonzero()[0]:
                        text = str(Level(step.boards[i]))
                        judgement = await judge(text)
                        solvable = judgement.verdict == "solved" or not wanted.only_solvable
                        matches = solvable and wanted.difficulty in (None, judgement.word)
                        matches = matches and bool(
                            BoardFilter(boxes=wanted.boxes).matches(step.boards[i : i + 1])[0]
                        )
                        kept += matches
                        found = {"number": which[i], "title": model.title(seed, which[i]), "board": text}
                        found |= {"attempts": int(step.attempt[i]) + 1, "judgement": judgement.model_dump()}
                        yield "judged", {**found, "kept": matches}
        yield "end", {"kept": kept, "sampled": sampled}
    finally:
        threads.requests -= 1


def _config(model: Model, request: Generate | Complete) -> SamplerConfig:
    names = {"steps", "order", "temperature", "sweeps", "critic", "precision"}
    changes = request.model_dump(include=names)
    if isinstance(request, Complete) and request.critic is None:
        changes["critic"] = False
    return model.sampler(request.sampler, **changes)
