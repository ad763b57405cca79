"""The server of the studio: the HTTP API and the page as one FastAPI application, and how it runs."""

from __future__ import annotations

import asyncio
import errno
import json
import math
import re
import secrets
import socket
import sys
import threading
import webbrowser
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import quote

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.auto import AutoHTTPProtocol

import maskoban
from maskoban.boards import TILES
from maskoban.diffusion.model import Model
from maskoban.errors import MaskobanError
from maskoban.pictures import palette
from maskoban.pictures.tileset import OUTSIDE, shapes_svg, tile
from maskoban.studio import limits, schemas
from maskoban.studio.limits import Access, Broken, Busy
from maskoban.studio.sampling import Event, SamplingThreads, any_model, facts, sample, shipped_model
from maskoban.studio.solver_pool import SolverPool
from maskoban.studio.worker import Job

_T = TypeVar("_T")

#: Seconds that requests under way get when the server stops.
GRACE = 3

_PICTURES = {"png": "image/png", "svg": "image/svg+xml", "gif": "image/gif"}


def _content(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """A response of other content than JSON, for the OpenAPI description."""
    return {200: {"description": "Not JSON", "content": {kind: {} for kind in kinds}}}


api = APIRouter(prefix="/api", responses=limits.RESPONSES)


@api.get("/health")
async def health(request: Request) -> schemas.Health:
    """The state of the server."""
    threads, solvers = request.app.state.threads, request.app.state.solvers
    return schemas.Health(
        status="ok",
        version=maskoban.__version__,
        model=None if threads.model is None else facts(threads.model),
        sampling=threads.requests,
        solving=solvers.jobs,
    )


@api.post("/generate")
async def generate(request: Request, body: schemas.Generate) -> schemas.SampledBoards:
    """Sample new boards. The solver judges them when they are finished."""
    return await _while_connected(request, _collected(_events(request, body)))


@api.post("/complete")
async def complete(request: Request, body: schemas.Complete) -> schemas.SampledBoards:
    """Fill the ? cells of a board; all other cells stay."""
    return await _while_connected(request, _collected(_events(request, body)))


@api.post("/generate/stream", responses=_content("text/event-stream"), response_class=StreamingResponse)
async def generate_stream(request: Request, body: schemas.Generate) -> StreamingResponse:
    """Sample new boards, and send every commit with the probabilities of the seven tiles."""
    return await _streamed(request, body)


@api.post("/complete/stream", responses=_content("text/event-stream"), response_class=StreamingResponse)
async def complete_stream(request: Request, body: schemas.Complete) -> StreamingResponse:
    """Fill the ? cells of a board, and send every commit."""
    return await _streamed(request, body)


@api.post("/solve")
async def solve(request: Request, body: schemas.Solve) -> schemas.Solution:
    """Solve a board, or prove that it cannot be solved."""
    return schemas.Solution(**await _solver(request, "solve", body))


@api.post("/rate")
async def rate(request: Request, body: schemas.Rate) -> schemas.Judgement:
    """Rate the difficulty of a board."""
    return schemas.Judgement(**await _solver(request, "rate", body))


@api.post("/repair")
async def repair(request: Request, body: schemas.Repair) -> schemas.Repaired:
    """Find the interior walls whose removal makes an unsolvable board solvable."""
    return schemas.Repaired(**await _solver(request, "repair", body))


@api.post("/dead-cells")
async def dead_cells(request: Request, body: schemas.DeadCells) -> schemas.Dead:
    """The cells from which a box can reach no goal, whatever the other boxes do."""
    return schemas.Dead(**await _solver(request, "dead-cells", body))


@api.post("/convert")
async def convert(request: Request, body: schemas.Convert) -> schemas.Converted:
    """Read levels of any format, and write them in another."""
    return schemas.Converted(**await _solver(request, "convert", body))


@api.post("/picture", responses=_content(*_PICTURES.values()), response_class=Response)
async def picture(request: Request, body: schemas.Picture) -> Response:
    """A board as PNG or SVG, or its solution as an animated GIF."""
    found = await _solver(request, "picture", body)
    return Response(b64decode(found["data"]), media_type=_PICTURES[body.format])


async def _solver(request: Request, kind: str, body: BaseModel) -> Job:
    return await _while_connected(request, request.app.state.solvers.run(kind, **body.model_dump()))


async def _while_connected(request: Request, work: Awaitable[_T]) -> _T:
    """The result of the work; it is cancelled when the client disconnects."""

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, left = asyncio.ensure_future(work), asyncio.ensure_future(disconnected())
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise HTTPException(400, "the client has left")
    finally:
        task.cancel()
        left.cancel()


def _events(request: Request, body: schemas.Generate | schemas.Complete) -> AsyncGenerator[Event, None]:
    async def judge(board: str) -> schemas.Judgement:
        solvers = request.app.state.solvers
        return schemas.Judgement(**await solvers.run("rate", board=board, seconds=limits.JUDGE_SECONDS))

    return sample(request.app.state.threads, judge, body)


async def _collected(events: AsyncGenerator[Event, None]) -> schemas.SampledBoards:
    boards: list[dict[str, Any]] = []
    facts: dict[str, Any] = {}
    async with aclosing(events):
        async for name, data in events:
            if name == "judged" and data["kept"]:
                boards.append(data)
            elif name in ("start", "end"):
                facts |= data
    boards.sort(key=lambda board: board["number"])  # one that the critic accepted late comes last
    return schemas.SampledBoards(**facts, boards=[schemas.SampledBoard(**board) for board in boards])


async def _streamed(request: Request, body: schemas.Generate | schemas.Complete) -> StreamingResponse:
    events = _events(request, body)
    # The first event comes before the response begins, so that a refusal has its own status.
    first = await _while_connected(request, anext(events))

    async def stream() -> AsyncIterator[str]:
        async with aclosing(events):
            yield _sent(first)
            try:
                async for event in events:
                    yield _sent(event)
            except (MaskobanError, Busy, Broken) as error:
                yield _sent(("error", {"message": str(error)}))

    return StreamingResponse(stream(), media_type="text/event-stream")


def _sent(event: Event) -> str:
    name, data = event
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


#: Light colours of the tiles, and what they are on a dark page.
_DARK = {
    palette.FLOOR_TILE: "#343a52",
    palette.FLOOR_SEAM: "#2c3147",
    palette.GOAL_MARK: "#4fc3cf",
    palette.GOAL_GLOW: "#20505d",
    palette.WALL_TOP: "#66738c",
    palette.WALL_EDGE: "#7c8aa3",
    palette.WALL_SEAM: "#56627a",
    palette.WALL_FACE: "#3f4a61",
    palette.WALL_BRICK: "#4d5a73",
    palette.WALL_BRICK_LIGHT: "#5b6883",
    palette.ROCK: "#47526a",
    palette.ROCK_SEAM: "#404a61",
    palette.MASK_PAPER: "#3d3a5c",
    palette.MASK_INSET: "#4a466e",
    palette.MASK_STAR: "#8d84c4",
    palette.CRATE_PLANK: "#dc9a3a",
    palette.COAT: "#7b6bd0",
    palette.COAT_DARK: "#5a4aa8",
}


def tile_sheet(dark: bool = False) -> str:
    """The tiles of every picture as one SVG: a column a token, a row a look.

    >>> tile_sheet()[:44]
    '<svg xmlns="http://www.w3.org/2000/svg" widt'
    """
    columns, rows, side = TILES + 1, OUTSIDE, 64
    cells = (
        f'<svg x="{token}" y="{look}" width="1" height="1" viewBox="0 0 1 1">{shapes_svg(tile(token, look))}</svg>'
        for look in range(rows)
        for token in range(columns)
    )
    size = f'width="{columns * side}" height="{rows * side}" viewBox="0 0 {columns} {rows}"'
    sheet = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(cells)}</svg>\n'
    return re.sub("#[0-9a-f]{6}", lambda colour: _DARK.get(colour[0], colour[0]), sheet) if dark else sheet


def page_files() -> dict[str, tuple[bytes, str]]:
    """Every file of the page by its address: its content and media type."""
    kinds = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    found = {
        f"/tiles{name}.svg": (tile_sheet(dark).encode(), "image/svg+xml")
        for name, dark in (("", False), ("-dark", True))
    }
    for file in files("maskoban.studio").joinpath("page").iterdir():
        if kind := kinds.get(file.name[file.name.rfind(".") :]):
            found["/" if file.name == "index.html" else f"/{file.name}"] = file.read_bytes(), kind
    return found


def create_app(
    load_model: Callable[[], Model] = shipped_model,
    access: Access | None = None,
    solver_jobs: int = limits.SOLVER_JOBS,
    load_any: Callable[[], Model] = any_model,
) -> FastAPI:
    """The application. It has its own threads and solver processes while it runs.

    >>> create_app().title
    'maskoban studio'
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        _warn_of_full_sockets()
        threads, solvers = SamplingThreads(load_model, load_any), SolverPool(solver_jobs)
        app.state.threads, app.state.solvers = threads, solvers
        warming = asyncio.create_task(solvers.warm())
        yield
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
        threads.close()
        await solvers.close()

    app = FastAPI(
        title="maskoban studio",
        version=maskoban.__version__,
        description="Sample, complete, solve, repair, rate and convert Sokoban boards.",
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # these pages load scripts from other sites
        redoc_url=None,
    )
    limits.add_refusals(app)
    app.add_middleware(limits.Guard, access=access or Access())
    app.include_router(api)
    for address, (content, kind) in page_files().items():
        response = Response(content, media_type=f"{kind}; charset=utf-8")
        app.add_api_route(
            address, lambda response=response: response, include_in_schema=False, methods=["GET", "HEAD"]
        )
    return app


class _Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Closes a connection whose request is not whole in time, so that slow clients do not use up the sockets."""

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget_deadline()

    def _expect_request(self) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            self._forget_deadline()
        elif self.deadline is None:
            self.deadline = self.loop.call_later(limits.REQUEST_SECONDS, self.transport.close)

    def _forget_deadline(self) -> None:
        if self.deadline:
            self.deadline.cancel()
        self.deadline = None


class _Server(uvicorn.Server):
    """Ends the work of the requests under way before it waits for them."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        state = self.config.app.state  # type: ignore[union-attr]
        state.threads.stop()
        state.solvers.stop()
        await super().shutdown(sockets)


def server(app: FastAPI) -> uvicorn.Server:
    """A server for the app, to run on sockets that listen already."""
    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    config = uvicorn.Config(app, http=_Connection, timeout_graceful_shutdown=GRACE, lifespan="on", **quiet)
    return _Server(config)


def _warn_of_full_sockets() -> None:
    """Let the event loop say in one sentence that no socket is left; asyncio logs thousands of tracebacks."""
    last = -math.inf

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal last
        if "_start_serving" in context["message"]:
            return  # it tries to accept again after the server has ended
        if getattr(context.get("exception"), "errno", None) not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() - last > 60:
            last = loop.time()
            print("maskoban studio: too many connections; new ones wait", file=sys.stderr, flush=True)

    asyncio.get_running_loop().set_exception_handler(handle)


def run(host: str, port: int, token: str | None, browser: bool) -> None:
    """Serve until Ctrl-C. A server that other machines can reach has a token, a random one by default."""
    if token is None:
        token = "" if Access(host).local else secrets.token_urlsafe(16)
    if not token.isascii():
        raise MaskobanError("--token: expected ASCII letters, because it is sent in a header")
    if not (token.strip() or Access(host).local):
        raise MaskobanError(f"--token: expected a token, because other machines can reach {host}; got none")
    with _listen(host, port) as listener:
        name = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        query = f"?token={quote(token, safe='')}" if token else ""
        address = f"http://{name}:{listener.getsockname()[1]}/{query}"
        print(f"maskoban studio: {address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        with suppress(KeyboardInterrupt):
            server(create_app(access=Access(host, token))).run([listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = str(error.strerror or error).partition(" (")[0]
        raise MaskobanError(f"cannot listen on {host}, port {port}: {reason}") from None
