"""Many people at once: nobody waits for another's slow board, and whoever leaves frees the place."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from maskoban.diffusion.model import Model
from maskoban.studio.app import create_app
from tests.studio.serving import ENDLESS, Known, known_model, serving

ONE = "#####\n#@$.#\n#####"


def eventually(holds: Callable[[], bool], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def health(address: str) -> dict[str, int]:
    found: dict[str, int] = httpx.get(f"{address}/api/health", timeout=20).json()
    return found


def leave(address: str, what: str, asked: dict[str, object], after: float) -> None:
    """Ask, and go away before the answer."""
    try:
        answer = httpx.post(f"{address}/api/{what}", json=asked, timeout=httpx.Timeout(20, read=after))
    except httpx.ReadTimeout:
        return
    pytest.fail(f"answered within {after} s: {answer.status_code} {answer.text[:300]}")


def test_a_slow_solve_stalls_nobody_and_ends_when_its_asker_leaves() -> None:
    with serving(create_app(known_model)) as address:
        slow = {"board": ENDLESS, "mode": "effort", "seconds": 10}
        with ThreadPoolExecutor(4) as pool:
            askers = [pool.submit(leave, address, "solve", slow, 4.0) for _ in range(4)]
            assert eventually(lambda: health(address)["solving"] == 4)
            found = httpx.post(f"{address}/api/solve", json={"board": ONE}, timeout=3.5).json()
            assert found["solution"] == "R"
        for asker in askers:
            asker.result()
        assert eventually(lambda: health(address)["solving"] == 0, seconds=5)


def test_a_drawing_ends_when_its_watcher_leaves() -> None:
    denoiser = Known(seconds=0.05)
    with serving(create_app(lambda: Model(denoiser, {"name": "slow"}))) as address:
        asked = {"count": 1, "polish": 4}
        with httpx.stream("POST", f"{address}/api/generate/stream", json=asked, timeout=20) as answer:
            next(answer.iter_lines())
        leave(address, "generate", asked, 0.5)
        assert eventually(lambda: health(address)["drawing"] == 0)
        assert denoiser.evaluations < 2 * 64 * 5


def test_too_many_drawings_are_told_to_come_back() -> None:
    with (
        serving(create_app(lambda: known_model(0.01))) as address,
        ThreadPoolExecutor(24) as crowd,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        asked = [{"count": 1, "seed": seed} for seed in range(24)]
        answers = list(crowd.map(lambda each: client.post("/api/generate", json=each), asked))
        busy = [answer for answer in answers if answer.status_code == 503]
        assert 0 < len(busy) < 24
        assert {answer.headers["retry-after"] for answer in busy} == {"2"}
        assert busy[0].json()["error"] == "busy"
        # And those who were served got their own boards, not another's.
        for answer in answers:
            if answer.status_code == 200:
                seed = answer.json()["seed"]
                own = str(known_model().generate(1, seed=seed)[0])
                assert answer.json()["boards"][0]["board"] == own


def test_too_many_searches_are_told_to_come_back() -> None:
    with serving(create_app(known_model, capacity=1)) as address, ThreadPoolExecutor(2) as crowd:
        slow = crowd.submit(
            httpx.post,
            f"{address}/api/solve",
            json={"board": ENDLESS, "mode": "effort", "seconds": 2},
            timeout=60,
        )
        assert eventually(lambda: health(address)["solving"] == 1)
        answer = httpx.post(f"{address}/api/solve", json={"board": ONE}, timeout=20)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert slow.result().json()["reason"] == "time limit of 2 seconds reached"


def test_stopping_ends_what_is_under_way() -> None:
    with ThreadPoolExecutor(2) as crowd, serving(create_app(lambda: known_model(0.1))) as address:
        slow = {"board": ENDLESS, "mode": "effort", "seconds": 10}
        crowd.submit(httpx.post, f"{address}/api/solve", json=slow, timeout=60)
        crowd.submit(httpx.post, f"{address}/api/generate", json={"polish": 4}, timeout=60)
        assert eventually(lambda: health(address)["solving"] + health(address)["drawing"] == 2)
        began = time.monotonic()
    # Leaving the block waited for the server: well before either would have been done.
    assert time.monotonic() - began < 9
