"""The limits of the HTTP API: how much a request may ask for, who may send it, and how it is refused.

A refusal is a JSON object with a short ``error`` and one sentence as its ``message``.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maskoban.errors import MaskobanError

#: Bytes of a request.
MAX_BODY = 1_000_000
#: Seconds in which a request must arrive, headers and body.
REQUEST_SECONDS = 60.0
#: Boards in a request, boards sampled for each of them when a filter is set, and Gibbs sweeps.
MAX_BOARDS, MAX_SAMPLED, MAX_SWEEPS = 16, 20, 4
#: Levels of a conversion, and letters of all of them together.
MAX_LEVELS, MAX_LETTERS = 10_000, 4_000_000
#: Moves that an animation may show.
MAX_MOVES = 1500
#: Seconds of a search, of each search that judges a sampled board, and of a job of many searches.
MAX_SECONDS, JUDGE_SECONDS, LONG_SECONDS = 10.0, 2.0, 20.0
#: Megabytes of a search.
MEGABYTES = 256
#: Requests that sample at once, requests that may wait for them, and solver jobs that wait or run.
SAMPLING_THREADS, SAMPLING_WAITING, SOLVER_JOBS = 2, 16, 64
#: Seconds after which a client may try again when the server is busy.
RETRY_AFTER = 2

COOKIE = "maskoban_token"

#: Nothing inline, nothing from other sites, no frames.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Refusal(BaseModel):
    """Why a request was refused."""

    error: str
    message: str


_ERRORS = {
    400: ("bad-request", "The body is not text, or nested too deep"),
    401: ("unauthorized", "The token is missing or wrong"),
    403: ("forbidden", "The request comes from a page of another site"),
    404: ("not-found", "there is nothing at this address"),
    405: ("method-not-allowed", "this address does not take that method"),
    413: ("too-large", "The body is too large"),
    421: ("wrong-host", "The Host header names another machine"),
    422: ("invalid", "A field of the request cannot be used; the message says which"),
    500: ("broken", "A fault of the server"),
    503: ("busy", "Too many requests are waiting; Retry-After says when to try again"),
}

#: The refusals of every address of the API, for its OpenAPI description.
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": _ERRORS[status][1]} for status in (400, 401, 403, 413, 422, 503)
}


#: Messages of :class:`Busy`.
FULL = f"the {{}} has too many requests waiting; try again in {RETRY_AFTER} seconds"
STOPPING = "the server is stopping"


class Busy(Exception):
    """The server cannot take the request now."""


class Broken(Exception):
    """A part of the server failed."""


def refuse(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The response of a refusal.

    >>> refuse(404, "there is nothing here").body
    b'{"error":"not-found","message":"there is nothing here"}'
    """
    return JSONResponse({"error": _ERRORS.get(status, ("refused",))[0], "message": message}, status, headers)


def add_refusals(app: FastAPI) -> None:
    """Turn every error of the app into a refusal."""
    for kind, status in ((MaskobanError, 422), (Busy, 503), (Broken, 500)):

        async def failed(_: Request, error: Exception, status: int = status) -> JSONResponse:
            headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else None
            return refuse(status, str(error), headers)

        app.add_exception_handler(kind, failed)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return refuse(422, _first_problem(error))

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        known = error.status_code in (404, 405)
        message = _ERRORS[error.status_code][1] if known else str(error.detail)
        return refuse(error.status_code, message, dict(error.headers or {}))


def _first_problem(error: RequestValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the body is no JSON: {first['ctx']['error']} at character {first['loc'][-1]}"
    if first["loc"] == ("body",) and first["type"] in ("model_attributes_type", "missing"):
        return "expected a JSON object as the body, sent with Content-Type: application/json"
    return ": ".join(filter(None, [".".join(map(str, first["loc"][1:])), str(first["msg"])]))


@dataclass(frozen=True)
class Access:
    """Who may use the server: everybody on this machine, or whoever sends the token."""

    host: str = "127.0.0.1"
    token: str = ""

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    def accepts(self, token: str) -> bool:
        """Whether this is the token, compared in constant time."""
        return hmac.compare_digest(token.encode(), self.token.encode())


def is_loopback(host: str) -> bool:
    """Whether a host name stands for this machine and no other.

    >>> is_loopback("localhost"), is_loopback("127.0.0.53"), is_loopback("[::1]"), is_loopback("evil.example")
    (True, True, True, False)
    """
    name = host.strip("[]").lower()
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


class Guard:
    """Middleware: checks every request, and adds the headers of every response.

    It is plain ASGI, so that the handlers see when a client disconnects.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        size = 0

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                api = scope["path"].startswith("/api/")
                headers.setdefault("Cache-Control", "no-store" if api else "no-cache")
            await send(message)

        async def receive_limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MAX_BODY:
                # Read on for a while: a client that is still sending does not read the refusal.
                while message.get("more_body") and size < 8 * MAX_BODY:
                    message = await receive()
                    size += len(message.get("body", b""))
                raise HTTPException(413, _TOO_LARGE)
            return message

        app = self._checked(scope) or self.app
        await app(scope, receive_limited, send_with_headers)

    def _checked(self, scope: Scope) -> Response | None:
        """The response to a request that does not reach the app."""
        headers, path = Headers(scope=scope), scope["path"]
        host = headers.get("host", "")
        name, _, port = host.rpartition(":")
        if self.access.local and not is_loopback(name if port.isdecimal() else host):
            # A page of another site whose name points here (DNS rebinding).
            return refuse(421, "this server answers only to localhost and 127.0.0.1")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return refuse(413, _TOO_LARGE)
        if path == "/" and self.access.token:
            token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if token and self.access.accepts(token):
                # Kept where scripts cannot read it, and removed from the address, which people share.
                answer = RedirectResponse("/", 303)
                answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
                return answer
        if not path.startswith("/api/"):
            return None
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2] != host
        if foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return refuse(403, "requests from pages of other sites are not answered")
        if self.access.token and not self.access.accepts(_token(headers)):
            return refuse(401, "the token is missing or wrong: open the address that maskoban studio printed")
        return None


_TOO_LARGE = f"a request may have at most {MAX_BODY:,} bytes"


def _token(headers: Headers) -> str:
    if token := headers.get("authorization", "").removeprefix("Bearer "):
        return token
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""
