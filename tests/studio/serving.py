"""A studio on a free port of this machine, with a model whose boards are known."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from fastapi import FastAPI
from numpy.typing import NDArray

from maskoban.boards import Level, Tokens
from maskoban.boards.tiles import WALL
from maskoban.diffusion.model import Model
from maskoban.studio.app import create_app, server
from tests.diffusion.dummies import Dummy
from tests.waiting import LIMIT

#: What the known model samples; in a ? cell it samples wall or floor with equal probability.
KNOWN = """
##########
#  ??    #
# @$ .   #
#        #
#  .$    #
#        #
#   ??   #
#        #
#        #
##########
"""

#: The first ? of its inner cells.
FIRST_UNSURE = Level.parse(KNOWN).tokens[1:-1, 1:-1].ravel().tolist().index(7)

#: Seconds to wait for a condition.
PATIENCE = LIMIT / 4


class Known(Dummy):
    """Samples the known board. Evaluations beyond ``allowed`` wait until ``allow`` is called."""

    def __init__(self, allowed: float = math.inf) -> None:
        inside = Level.parse(KNOWN).tokens[1:-1, 1:-1].ravel()
        p = np.eye(8)[inside]
        p[inside == 7, :2] = 0.5
        super().__init__(p[:, :7], height=10, width=10, margin=1)
        self.evaluations, self._allowed = 0, allowed
        self._turn = threading.Condition()

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        with self._turn:
            self._turn.wait_for(lambda: self.evaluations < self._allowed)
            self.evaluations += 1
        return super().logits(tokens, t, cells)

    def allow(self, evaluations: float = math.inf) -> None:
        """Let so many more evaluations run."""
        with self._turn:
            self._allowed += evaluations
            self._turn.notify_all()


class Picky:
    """A critic that accepts the known board if its first ? cell is floor: every other board."""

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        return np.where(tokens[:, FIRST_UNSURE] == WALL, -np.inf, 0).astype(np.float32)


def known_model(denoiser: Known | None = None) -> Model:
    """A model that samples the known board, without a critic."""
    return Model(denoiser or Known(), {"name": "known"})


def picky_model(denoiser: Known | None = None) -> Model:
    """The same with a critic that rejects every other board, and one Gibbs sweep."""
    return Model(denoiser or Known(), {"name": "picky", "critic": 1.0, "polish": 1}, critic=Picky())


def eventually(holds: Callable[[], bool]) -> bool:
    """Wait until a condition holds; False if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def serving(app: FastAPI, port: int = 0) -> Iterator[str]:
    """The address of the app while it is served."""
    listener = socket.create_server(("127.0.0.1", port))
    running = server(app)
    thread = threading.Thread(target=running.run, args=([listener],))
    thread.start()
    try:
        assert eventually(lambda: running.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def held(denoiser: Known, port: int = 0) -> Iterator[str]:
    """A studio whose model stops after the evaluations that are allowed; stopping the server lets it go on."""
    app = create_app(lambda: known_model(denoiser))
    with serving(app, port) as address:
        stop = app.state.threads.stop

        def stop_and_go_on() -> None:
            stop()
            denoiser.allow()

        app.state.threads.stop = stop_and_go_on
        yield address
