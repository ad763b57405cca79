"""Many clients at once: nobody waits for another's slow board, and a client that leaves frees its place."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from select import select

import httpx
import pytest

from maskoban.studio import solver_pool
from maskoban.studio.app import create_app
from maskoban.studio.limits import SAMPLING_THREADS, SAMPLING_WAITING
from tests.studio.endless_worker import ENDLESS
from tests.studio.serving import PATIENCE, Known, eventually, held, known_model, serving

QUICK = "######\n#@$ .#\n######"
SLOW = {"board": ENDLESS, "seconds": 10}


def health(address: str) -> dict[str, int]:
    found: dict[str, int] = httpx.get(f"{address}/api/health", timeout=PATIENCE).json()
    return found


def post(address: str, what: str, **body: object) -> httpx.Response:
    return httpx.post(f"{address}/api/{what}", json=body, timeout=PATIENCE)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solver processes that never finish one board."""
    monkeypatch.setattr(solver_pool.Worker, "command", (sys.executable, "-m", "tests.studio.endless_worker"))


@contextmanager
def asking(address: str, what: str, **body: object) -> Iterator[None]:
    """Send a request, and close the connection at the end of the block, before there is a response."""
    request = httpx.Request("POST", f"{address}/api/{what}", json=body)
    lines = [f"POST /api/{what} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers.items())]
    with socket.create_connection((request.url.host, request.url.port or 80)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + request.read())
        yield
        assert not select([connection], [], [], 0)[0]


@pytest.mark.usefixtures("endless")
def test_a_slow_search_delays_nobody_and_ends_when_its_client_leaves() -> None:
    with serving(create_app(known_model)) as address:
        with (
            asking(address, "solve", **SLOW),
            asking(address, "solve", **SLOW),
            asking(address, "rate", **SLOW),
        ):
            assert eventually(lambda: health(address)["solving"] == 3)
            assert post(address, "solve", board=QUICK).json()["solution"] == "RR"
            assert health(address)["solving"] == 3
        assert eventually(lambda: health(address)["solving"] == 0)
        assert post(address, "solve", board=QUICK).json()["solution"] == "RR"


@pytest.mark.usefixtures("endless")
def test_too_many_searches_are_refused() -> None:
    with serving(create_app(known_model, solver_jobs=1)) as address:
        with asking(address, "solve", **SLOW):
            assert eventually(lambda: health(address)["solving"] == 1)
            refused = post(address, "solve", board=QUICK)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert eventually(lambda: health(address)["solving"] == 0)
        assert post(address, "solve", board=QUICK).status_code == 200


def test_a_search_ends_at_its_time_limit() -> None:
    # 12 boxes in an open hall: no search decides it in a moment.
    hall = "\n".join(["#" * 20, "#@" + " " * 17 + "#", *(["#" + " $" * 6 + " " * 6 + "#"] * 2),
                      *["#" + " " * 18 + "#"] * 12, *(["#" + " " * 6 + " ." * 6 + "#"] * 2), "#" * 20])  # fmt: skip
    with serving(create_app(known_model)) as address:
        found = post(address, "solve", board=hall, mode="effort", seconds=0.2).json()
    assert (found["limit_hit"], found["reason"]) == ("time", "time limit of 0.2 seconds reached")


def test_sampling_ends_when_its_client_leaves() -> None:
    denoiser = Known(allowed=5)
    with held(denoiser) as address:
        body = {"count": 1, "sweeps": 4}
        with httpx.stream("POST", f"{address}/api/generate/stream", json=body, timeout=PATIENCE) as answer:
            next(answer.iter_lines())
        with asking(address, "generate", **body):
            assert eventually(lambda: denoiser.evaluations == 5)
        assert eventually(lambda: health(address)["sampling"] == 0)
        denoiser.allow(100)
    # One evaluation of each request was under way.
    assert denoiser.evaluations <= 7


def test_too_many_sampling_requests_are_refused_and_nobody_gets_anothers_boards() -> None:
    denoiser, places, more = Known(allowed=0), SAMPLING_THREADS + SAMPLING_WAITING, 6
    with held(denoiser) as address, ThreadPoolExecutor(places + more) as crowd:
        sent = {
            crowd.submit(post, address, "generate", count=1, seed=seed): seed for seed in range(places + more)
        }
        assert eventually(lambda: sum(future.done() for future in sent) == more)
        for refused in (future.result() for future in sent if future.done()):
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
            assert refused.json()["error"] == "busy"
        served = {future: seed for future, seed in sent.items() if not future.done()}
        denoiser.allow()
        wait(served, timeout=PATIENCE)
        for future, seed in served.items():
            own = str(known_model().generate(1, seed=seed)[0])
            assert future.result().json()["boards"][0]["board"] == own


@pytest.mark.usefixtures("endless")
def test_stopping_ends_everything_under_way() -> None:
    denoiser = Known(allowed=5)
    with ThreadPoolExecutor(2) as crowd:
        with held(denoiser) as address:
            search = crowd.submit(post, address, "solve", **SLOW)
            boards = crowd.submit(post, address, "generate", count=1, sweeps=4)
            assert eventually(lambda: health(address)["solving"] == 1 and denoiser.evaluations == 5)
        for stopped in (search.result(), boards.result()):
            assert (stopped.status_code, stopped.json()["message"]) == (503, "the server is stopping")
    assert denoiser.evaluations == 6
