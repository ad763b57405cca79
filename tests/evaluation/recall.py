"""A model that knows some boards by heart and draws nothing else: quick, and its boards are puzzles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import FLOOR, MASK, TILES, WALL, Tokens
from maskoban.boards.synth import synthesize
from maskoban.diffusion.model import Model
from maskoban.diffusion.schedule import Schedule
from maskoban.solving import solve_many


class Recall:
    """The exact conditionals of a uniform choice among boards; where none fits, any tile will do."""

    margin, batch, overlap = 1, 32, 1
    schedule: Schedule = "linear"

    def __init__(self, boards: Tokens) -> None:
        self.height, self.width = boards.shape[1:]
        self.boards = boards[:, 1:-1, 1:-1].reshape(len(boards), -1)
        self.steps = self.boards.shape[1]
        self.one_hot = np.eye(TILES)[self.boards]

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        fits = ((tokens[:, None] == self.boards) | (tokens[:, None] == MASK)).all(2)
        marginals = np.einsum("ns,sct->nct", fits.astype(float), self.one_hot)
        wanted = np.take_along_axis(marginals, cells[:, :, None], axis=1)
        return np.log(np.maximum(wanted, 1e-9)).astype(np.float32)


class Eye:
    """A critic that keeps boards with an even number of walls, and one in four of the others."""

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        odd = (tokens == WALL).sum(1) % 2
        return np.log(np.where(odd, 0.25, 1)).astype(np.float32)


def remembered(n: int = 40) -> Tokens:
    """Small boards that can be solved, and others that a wall spoils."""
    boards = synthesize(n, 7, 7, 2, seed=5)
    spoilt = []
    for board in boards:
        walls = np.repeat(board[None], board.size, axis=0)
        walls.reshape(board.size, -1)[np.diag_indices(board.size)] = WALL
        walls = walls[board.ravel() == FLOOR]
        spoilt += list(walls[~solve_many(walls, solutions=False).solved][:1])
    return np.concatenate([boards, np.stack(spoilt)])


def recalling_model(critic: bool = True) -> Model:
    """A model of those boards."""
    card = {"name": "recall", "parameters": 0, "training_steps": 1}
    return Model(Recall(remembered()), card | ({"critic": 1.0} if critic else {}), critic=Eye())
