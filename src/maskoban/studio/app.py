"""The server: the HTTP API and the page, as one FastAPI application."""

from __future__ import annotations

import asyncio
import json
import secrets
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from importlib.resources import files
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse

import maskoban
from maskoban.boards import Level, MaskobanError
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import blank
from maskoban.studio import messages, refusals
from maskoban.studio.drawing import Easel, Reveal, shipped_model
from maskoban.studio.guard import Door, Guard
from maskoban.studio.messages import REPAIR_SECONDS
from maskoban.studio.refusals import RESPONSES, Broken, Busy, Gone
from maskoban.studio.searches import Searches
from maskoban.studio.tiles import tile_sheet

_T = TypeVar("_T")

#: Seconds the solver may take for each board it judges after a drawing.
JUDGING_SECONDS = 2.0

_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["start", "reveal", "finished", "judged", "end", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: start, a reveal for every evaluation, finished, a judged for every "
        "board, end; or error, where something went wrong on the way",
        "content": {"text/event-stream": {"schema": _EVENT}},
    }
}
_PICTURES = {"png": "image/png", "svg": "image/svg+xml", "gif": "image/gif"}


def create_app(
    load_model: Callable[[], Model] = shipped_model, door: Door | None = None, capacity: int = 64
) -> FastAPI:
    """The application, with its own threads and solver processes while it runs.

    >>> create_app().title
    'maskoban studio'
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.easel, app.state.searches = Easel(load_model), Searches(capacity)
        warming = asyncio.create_task(app.state.searches.quick.warm())
        yield
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
        app.state.easel.close()
        await app.state.searches.close()

    app = FastAPI(
        title="maskoban studio",
        version=maskoban.__version__,
        description="Draw, complete, solve, repair, rate and convert Sokoban boards.",
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
    )
    refusals.install(app)
    app.add_middleware(Guard, door=door or Door())
    _add_drawing(app)
    _add_judging(app)
    _add_files(app)
    _add_page(app)
    return app


def _add_drawing(app: FastAPI) -> None:
    """Where boards come from."""

    @app.get("/api/health", responses=RESPONSES)
    async def health() -> messages.Health:
        """Whether the server is there, and how busy."""
        model = app.state.easel.model
        facts = model and messages.ModelFacts(name=model.name, height=model.height, width=model.width)
        return messages.Health(
            status="ok",
            version=maskoban.__version__,
            model=facts,
            drawing=app.state.easel.inside,
            solving=app.state.searches.inside,
        )

    @app.post("/api/generate", responses=RESPONSES)
    async def generate(request: Request, asked: messages.Generate) -> messages.DrawnBoards:
        """Draw new boards; the solver judges them afterwards."""
        return await _while_connected(request, _finished(app, asked, None))

    @app.post("/api/complete", responses=RESPONSES)
    async def complete(request: Request, asked: messages.Complete) -> messages.DrawnBoards:
        """Fill the ? cells of a half-drawn board; every other cell stays as it is."""
        return await _while_connected(request, _finished(app, asked, Level.parse(asked.board)))

    @app.post("/api/generate/stream", responses=RESPONSES | _STREAM, response_class=StreamingResponse)
    async def generate_stream(request: Request, asked: messages.Generate) -> StreamingResponse:
        """Draw new boards and tell every commit, with the probabilities of the seven tiles at it."""
        return await _streamed(app, request, asked, None)

    @app.post("/api/complete/stream", responses=RESPONSES | _STREAM, response_class=StreamingResponse)
    async def complete_stream(request: Request, asked: messages.Complete) -> StreamingResponse:
        """Complete a half-drawn board and tell every commit."""
        return await _streamed(app, request, asked, Level.parse(asked.board))


def _add_judging(app: FastAPI) -> None:
    """What is found out about boards."""

    @app.post("/api/solve", responses=RESPONSES)
    async def solve(request: Request, asked: messages.Solve) -> messages.Solution:
        """Solve a board, or prove that it cannot be solved."""
        job = {"kind": "solve", "board": asked.board, "mode": asked.mode}
        found = await _while_connected(request, app.state.searches.search(job, asked.seconds))
        return messages.Solution(**found)

    @app.post("/api/rate", responses=RESPONSES)
    async def rate(request: Request, asked: messages.Rate) -> messages.Judgement:
        """Say how hard a board is, and why."""
        job = {"kind": "rate", "board": asked.board}
        found = await _while_connected(request, app.state.searches.search(job, asked.seconds))
        return messages.Judgement(**found)

    @app.post("/api/repair", responses=RESPONSES)
    async def repair(request: Request, asked: messages.Repair) -> messages.Repaired:
        """Find the interior walls whose removal makes an unsolvable board solvable."""
        job = {"kind": "repair", "board": asked.board, "walls": asked.walls, "all": asked.all}
        found = await _while_connected(request, app.state.searches.long(job, REPAIR_SECONDS))
        if found is None:
            reason = f"time limit of {REPAIR_SECONDS:g} seconds reached"
            return messages.Repaired(verdict="unknown", reason=reason, walls=[], board=None)
        return messages.Repaired(**found)

    @app.post("/api/dead-cells", responses=RESPONSES)
    async def dead_cells(request: Request, asked: messages.DeadCells) -> messages.Dead:
        """The cells from which no box could ever reach a goal, looking at walls only."""
        job = {"kind": "dead-cells", "board": asked.board}
        return messages.Dead(**await _while_connected(request, app.state.searches.short(job)))


def _add_files(app: FastAPI) -> None:
    """Where boards go."""

    @app.post("/api/convert", responses=RESPONSES)
    async def convert(request: Request, asked: messages.Convert) -> messages.Converted:
        """Read levels of any format, and write them in another."""
        job = {"kind": "convert", **asked.model_dump()}
        return messages.Converted(**await _while_connected(request, app.state.searches.short(job)))

    content: dict[str, Any] = {kind: {} for kind in _PICTURES.values()}
    pictures: dict[int | str, dict[str, Any]] = {200: {"description": "The picture", "content": content}}

    @app.post("/api/picture", responses=RESPONSES | pictures, response_class=Response)
    async def picture(request: Request, asked: messages.Picture) -> Response:
        """A board as PNG or SVG, or its solution as an animated GIF."""
        job = {"kind": "picture", **asked.model_dump()}
        found = await _while_connected(request, app.state.searches.long(job, REPAIR_SECONDS))
        if found is None:
            raise MaskobanError(f"this took longer than {REPAIR_SECONDS:g} seconds")
        return Response(b64decode(found["data"]), media_type=_PICTURES[asked.format])


def _add_page(app: FastAPI) -> None:
    """The page: a handful of files, read once, each at its own address and nothing else at any other."""
    kinds = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    for file in files("maskoban.studio").joinpath("page").iterdir():
        kind = kinds.get(file.name[file.name.rfind(".") :])
        if kind is None:
            continue
        address = "/" if file.name == "index.html" else f"/{file.name}"
        app.add_api_route(
            address, _file(file.read_bytes(), kind), include_in_schema=False, methods=["GET", "HEAD"]
        )
    sheet = _file(tile_sheet().encode(), "image/svg+xml")
    app.add_api_route("/tiles.svg", sheet, include_in_schema=False, methods=["GET", "HEAD"])


def _file(content: bytes, kind: str) -> Callable[[], Response]:
    return lambda: Response(content, media_type=f"{kind}; charset=utf-8")


async def _while_connected(request: Request, work: Awaitable[_T]) -> _T:
    """What the work gives; it is cancelled when the client goes away."""

    async def leaving() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, left = asyncio.ensure_future(work), asyncio.ensure_future(leaving())
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Gone
    finally:
        task.cancel()
        left.cancel()


def _seed(asked: messages.Drawing) -> int:
    return secrets.randbelow(1_000_000) if asked.seed is None else asked.seed


async def _judge(app: FastAPI, board: Level) -> messages.Judgement:
    job = {"kind": "rate", "board": str(board)}
    return messages.Judgement(**await app.state.searches.search(job, JUDGING_SECONDS))


async def _finished(app: FastAPI, asked: messages.Drawing, start: Level | None) -> messages.DrawnBoards:
    seed = _seed(asked)
    boards: list[Level] = []
    drawing = app.state.easel.draw(start, asked.count, seed, asked.temperature, asked.polish)
    async with aclosing(drawing) as events:
        async for event in events:
            if isinstance(event, list):
                boards = event
    drawn = [
        messages.Drawn(number=number, board=str(board), judgement=await _judge(app, board))
        for number, board in enumerate(boards)
    ]
    return messages.DrawnBoards(seed=seed, model=app.state.easel.model.name, boards=drawn)


async def _streamed(
    app: FastAPI, request: Request, asked: messages.Drawing, start: Level | None
) -> StreamingResponse:
    events = _events(app, asked, start)
    # The first event is made before the answer begins, so that a refusal can still be one with its own status.
    first = await _while_connected(request, anext(events))

    async def stream() -> AsyncIterator[str]:
        async with aclosing(events):
            yield first
            try:
                async for event in events:
                    yield event
            except (MaskobanError, Busy, Broken) as error:
                yield _event("error", message=str(error))

    return StreamingResponse(stream(), media_type="text/event-stream")


async def _events(app: FastAPI, asked: messages.Drawing, start: Level | None) -> AsyncGenerator[str, None]:
    seed = _seed(asked)
    boards: list[Level] = []
    began = False
    drawing = app.state.easel.draw(start, asked.count, seed, asked.temperature, asked.polish)
    async with aclosing(drawing) as told:
        async for event in told:
            if not began:
                began = True
                model = app.state.easel.model
                board = start or Level(blank(model.denoiser, 1)[0])
                yield _event("start", seed=seed, count=asked.count, model=model.name, board=str(board))
            if isinstance(event, Reveal):
                yield _event("reveal", **asdict(event))
            else:
                boards = event
    yield _event("finished", boards=[str(board) for board in boards])
    for number, board in enumerate(boards):
        judgement = await _judge(app, board)
        yield _event("judged", number=number, judgement=judgement.model_dump())
    yield _event("end")


def _event(name: str, **data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
