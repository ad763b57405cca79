"""Running the studio on this machine: a free port, the browser, a graceful end."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI

from maskoban.boards import MaskobanError
from maskoban.studio.app import create_app
from maskoban.studio.guard import Door

#: Seconds that work under way gets when the server is asked to stop.
GRACE = 3


class _Server(uvicorn.Server):
    """Before it waits for the requests under way, it ends the work they wait for."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        state = self.config.app.state  # type: ignore[union-attr]
        state.easel.stop()
        state.searches.stop()
        await super().shutdown(sockets)


def run(host: str, port: int, token: str | None, browser: bool) -> None:
    """Serve until interrupted. Reachable from elsewhere, a token is needed: the given one, or a new one."""
    door = Door(host)
    if token is None:
        token = "" if door.local else secrets.token_urlsafe(16)
    if not token.isascii():
        raise MaskobanError("a token is made of ASCII letters, for it travels in headers")
    with _listening(host, port) as listener:
        taken = listener.getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else name
        address = f"http://{shown}:{taken}/" + (f"?token={quote(token, safe='')}" if token else "")
        print(f"maskoban studio: {address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        with suppress(KeyboardInterrupt):
            server(create_app(door=Door(host, token))).run([listener])


def server(app: FastAPI) -> uvicorn.Server:
    """A server for the studio's app, to be run on sockets that listen already."""
    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        lifespan="on",
    )
    return _Server(settings)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # there it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise MaskobanError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None
    return listener
