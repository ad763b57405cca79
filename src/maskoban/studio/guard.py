"""What every request passes before anything else sees it: who may ask, how much, and the headers of every answer."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs

from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maskoban.studio.messages import MAX_BODY
from maskoban.studio.refusals import refuse

COOKIE = "maskoban_token"

#: Nothing inline, nothing from elsewhere, no frames, nobody else's page around ours.
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


_TOO_LARGE = f"a request may have at most {MAX_BODY:,} bytes"


@dataclass(frozen=True)
class Door:
    """Who is let in: everybody on this machine, or whoever holds the token."""

    host: str = "127.0.0.1"
    token: str = ""

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server.

        >>> Door("127.0.0.1").local, Door("::1").local, Door("0.0.0.0").local
        (True, True, False)
        """
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a name stands for this machine and no other.

    >>> is_loopback("localhost"), is_loopback("127.0.0.53"), is_loopback("evil.example")
    (True, True, False)
    """
    name = host.strip("[]").lower()
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


class Guard:
    """The middleware. It speaks plain ASGI, so that a request's disconnection reaches those who wait for it."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sending = self._with_headers(scope, send)
        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, sending)
            return
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MAX_BODY:
                # Listened to for a while: one who still speaks when the line is cut never hears why.
                while message.get("more_body") and taken < 8 * MAX_BODY:
                    message = await receive()
                    taken += len(message.get("body", b""))
                raise HTTPException(413, _TOO_LARGE)
            return message

        await self.app(scope, counted, sending)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self.door.local and not is_loopback(_name(headers.get("host", ""))):
            # A page of another site whose name was made to point here (DNS rebinding).
            return refuse(421, "this server answers only to localhost and 127.0.0.1")
        if (
            not headers.get("content-length", "0").isdecimal()
            or int(headers.get("content-length", "0")) > MAX_BODY
        ):
            return refuse(413, _TOO_LARGE)
        if scope["path"] == "/" and self.door.token:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if given and hmac.compare_digest(given.encode(), self.door.token.encode()):
                # Kept where scripts cannot read it, and out of the address that people share.
                answer = RedirectResponse("/", 303)
                answer.set_cookie(COOKIE, given, httponly=True, samesite="strict")
                return answer
        if not scope["path"].startswith("/api/"):
            return None
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2] != headers.get("host")
        if foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return refuse(403, "requests from pages of other sites are not answered")
        if self.door.token and not self._knows_token(headers):
            return refuse(401, "the token is missing or wrong: open the address that maskoban studio printed")
        return None

    def _knows_token(self, headers: Headers) -> bool:
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if not given:
            try:
                morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
            except CookieError:
                return False
            given = morsel.value if morsel else ""
        return hmac.compare_digest(given.encode(), self.door.token.encode())

    @staticmethod
    def _with_headers(scope: Scope, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault(
                    "Cache-Control", "no-store" if scope["path"].startswith("/api/") else "no-cache"
                )
            await send(message)

        return sending


def _name(host: str) -> str:
    """A Host header without its port."""
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
