"""The contract between networks and samplers: masked tokens in, logits over the seven tiles out."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.tiles import MASK, WALL, Tokens
from maskoban.diffusion.schedule import Schedule, time_at
from maskoban.errors import MaskobanError


class Grid(Protocol):
    """The cells a model fills: those of a ``height`` x ``width`` board inside ``margin`` rings of wall."""

    height: int
    width: int
    margin: int


class Denoiser(Grid, Protocol):
    """A network that predicts masked cells.

    ``steps`` is the number of diffusion steps T and ``schedule`` the noise schedule of its training. ``batch`` is the
    number of boards it evaluates best at a time, and ``overlap`` the number of threads that may call it at once. Where
    ``overlap`` is more than 1, a batch costs the same however few boards are in it.
    """

    steps: int
    schedule: Schedule
    batch: int
    overlap: int

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of the given cells: tokens (n, interior cells), t (n,), cells (n, k) to (n, k, 7)."""
        ...


class Critic(Protocol):
    """A discriminator of finished boards: the log density ratio log p_corpus(x) / p_model(x)."""

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        """Scores of finished boards, (n, interior cells) to (n,). A score does not depend on the rest of the batch."""
        ...


def interior_cells(grid: Grid) -> NDArray[np.int64]:
    """The cells a model fills, as indices into the whole board read row by row.

    >>> from types import SimpleNamespace
    >>> interior_cells(SimpleNamespace(height=3, width=4, margin=1))
    array([5, 6])
    """
    height, width, m = grid.height, grid.width, grid.margin
    return np.arange(height * width).reshape(height, width)[m : height - m, m : width - m].ravel()


def interior(boards: Tokens, grid: Grid, source: str, model: str) -> Tokens:
    """The interior cells of boards, (n, height, width) to (n, cells). Boards of another size are an error.

    ``source`` and ``model`` name both sides in the error message.

    >>> from types import SimpleNamespace
    >>> interior(np.arange(12).reshape(1, 3, 4), SimpleNamespace(height=3, width=4, margin=1), "this", "a model")
    array([[5, 6]])
    """
    if boards.shape[1:] != (grid.height, grid.width):
        size = "x".join(map(str, boards.shape[1:]))
        raise MaskobanError(f"{source} has {size} boards, but {model} samples {grid.height}x{grid.width}")
    return boards.reshape(-1, grid.height * grid.width)[:, interior_cells(grid)]


def blank_boards(grid: Grid, n: int) -> Tokens:
    """Fully masked boards: MASK in the interior, wall around it."""
    boards = np.full((n, grid.height * grid.width), WALL, dtype=np.uint8)
    boards[:, interior_cells(grid)] = MASK
    return boards.reshape(n, grid.height, grid.width)


def diffusion_time(denoiser: Denoiser, masked: NDArray[np.int64]) -> NDArray[np.int64]:
    """The time at which so many cells are masked, rounded, at least 1: t = T |M| / cells on the linear schedule."""
    t = time_at(denoiser.schedule, masked, len(interior_cells(denoiser)), denoiser.steps)
    return np.maximum(np.rint(t), 1).astype(np.int64)
