"""Every way to say no, in one shape: a JSON object with a short name and one clear sentence."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from maskoban.boards import MaskobanError

#: Seconds after which it is worth trying again when the server is busy.
RETRY_AFTER = 2

_NAMES = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    421: "wrong-host",
    422: "invalid",
    500: "broken",
    503: "busy",
}


class Refusal(BaseModel):
    """Why a request was not carried out."""

    error: str
    message: str


#: The refusals any request to the API may meet, for its description.
RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "The body is not text, or nested too deep"},
    401: {"model": Refusal, "description": "The token is missing or wrong"},
    403: {"model": Refusal, "description": "The request comes from another site"},
    413: {"model": Refusal, "description": "The body is too large"},
    422: {"model": Refusal, "description": "Something in the request cannot be used; the message says what"},
    503: {"model": Refusal, "description": "Too much is waiting already; Retry-After says when to try again"},
}


class Busy(Exception):
    """Not now, but soon: too many wait already, or the server is being restarted."""

    @classmethod
    def crowded(cls, what: str) -> Busy:
        """Too many wait for this.

        >>> str(Busy.crowded("solver"))
        'the solver has too much waiting already; try again in 2 seconds'
        """
        return cls(f"the {what} has too much waiting already; try again in {RETRY_AFTER} seconds")

    @classmethod
    def stopping(cls) -> Busy:
        """The server is about to end."""
        return cls("the server is stopping")


class Broken(Exception):
    """Something of ours failed; the sentence says what."""


class Gone(Exception):
    """Whoever asked has left, so that nobody needs the answer."""


def refuse(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The answer that says no.

    >>> refuse(404, "there is nothing here").body
    b'{"error":"not-found","message":"there is nothing here"}'
    """
    return JSONResponse({"error": _NAMES.get(status, "refused"), "message": message}, status, headers)


def told(error: RequestValidationError) -> str:
    """The first thing wrong with a request, and where."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the body is no JSON: {first['ctx']['error']} at character {first['loc'][-1]}"
    if first["loc"] == ("body",) and first["type"] in ("model_attributes_type", "missing"):
        return "expected a JSON object as the body, sent with Content-Type: application/json"
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    sentence = str(first["msg"])
    return f"{where}: {sentence}" if where else sentence


def install(app: FastAPI) -> None:
    """Make every error of the app a refusal in the one shape."""

    @app.exception_handler(MaskobanError)
    async def unusable(_: Request, error: MaskobanError) -> JSONResponse:
        return refuse(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return refuse(422, told(error))

    @app.exception_handler(Busy)
    async def busy(_: Request, error: Busy) -> JSONResponse:
        return refuse(503, str(error), {"Retry-After": str(RETRY_AFTER)})

    @app.exception_handler(Gone)
    async def gone(_: Request, __: Gone) -> JSONResponse:
        return refuse(400, "whoever asked has left")

    @app.exception_handler(Broken)
    async def broken(_: Request, error: Broken) -> JSONResponse:
        return refuse(500, str(error))

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        sentences = {404: "there is nothing at this address", 405: "this address does not take that method"}
        message = sentences.get(error.status_code, str(error.detail))
        return refuse(error.status_code, message, dict(error.headers or {}))
