"""A studio on a free port of this machine, served for real, with a model whose boards are known."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from fastapi import FastAPI
from numpy.typing import NDArray

from maskoban.boards import Level, Tokens
from maskoban.diffusion.model import Model
from maskoban.studio.server import server
from tests.diffusion.dummies import Dummy

#: What the known model draws; where it says ? it draws wall or floor, one as likely as the other.
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


def _hall(side: int, boxes: int) -> str:
    """A square hall with boxes above and goals below."""
    cells = [["#"] * side, *(["#", *" " * (side - 2), "#"] for _ in range(side - 2)), ["#"] * side]
    apart = [(row, column) for row in range(2, side - 2, 2) for column in range(2, side - 2, 2)]
    cells[1][1] = "@"
    for (row, column), (down, right) in zip(apart[:boxes], apart[::-1], strict=False):
        cells[row][column], cells[down][right + 1] = "$", "."
    return "\n".join(map("".join, cells))


#: So much room that a plain search has no end in sight, and so few boxes that it takes seconds to fill its memory.
ENDLESS = _hall(20, 5)


class Known(Dummy):
    """Draws the known board, taking ``seconds`` for every evaluation."""

    def __init__(self, seconds: float = 0.0) -> None:
        inside = Level.parse(KNOWN).tokens[1:-1, 1:-1].ravel()
        p = np.eye(8)[inside]
        p[inside == 7, :2] = 0.5
        super().__init__(p[:, :7], height=10, width=10, margin=1)
        self.seconds, self.evaluations = seconds, 0

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        self.evaluations += 1
        time.sleep(self.seconds)
        return super().logits(tokens, t, cells)


def known_model(seconds: float = 0.0) -> Model:
    """A model that draws the known board."""
    return Model(Known(seconds), {"name": "known"})


@contextmanager
def serving(app: FastAPI, port: int = 0) -> Iterator[str]:
    """The address at which the app is being served."""
    listener = socket.create_server(("127.0.0.1", port))
    running = server(app)
    thread = threading.Thread(target=running.run, args=([listener],))
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not running.started and time.monotonic() < deadline:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()
        listener.close()
