"""Probabilities of masked cells, and the negative log-likelihood of finished boards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskoban._util.progress import OnProgress
from maskoban.boards.tiles import MASK, TILES, WALL, Tokens
from maskoban.diffusion.denoiser import Denoiser, diffusion_time, interior_cells
from maskoban.diffusion.rng import uniforms
from maskoban.diffusion.sampler import softmax


def cell_probabilities(denoiser: Denoiser, boards: Tokens) -> NDArray[np.float64]:
    """The probabilities of the seven tiles in every cell of partly masked boards: (n, height, width, 7).

    A masked cell has the network's probabilities given all cells that are not masked. A masked cell of the border is
    wall. A given cell has probability 1 on its tile.
    """
    n, inside = len(boards), interior_cells(denoiser)
    flat = boards.reshape(n, -1)
    found = np.eye(TILES)[np.where(flat == MASK, WALL, flat)]
    tokens = flat[:, inside]
    for part in _batches(n, denoiser.batch):
        masked = tokens[part] == MASK
        cells = np.broadcast_to(np.arange(len(inside)), masked.shape)
        p = softmax(denoiser.logits(tokens[part], diffusion_time(denoiser, masked.sum(1)), cells))
        board, cell = np.nonzero(masked)
        found[part][board, inside[cell]] = p[board, cell]
    return found.reshape(*boards.shape, TILES)


def negative_log_likelihood(
    denoiser: Denoiser, boards: Tokens, seed: int, orders: int, on_progress: OnProgress | None = None
) -> NDArray[np.float64]:
    """Negative log-likelihood -log p(board | order) in nats, averaged over random orders of unmasking: (n,).

    Each board is unmasked one cell at a time with its own tiles: -sum over i of log p(x_i | the cells before it). The
    mean over all orders is the negative ELBO, an upper bound of -log p(board). All boards use the same orders, so their
    values can be compared. A board whose border is not wall has probability 0.
    """
    inside = interior_cells(denoiser)
    flat = boards.reshape(len(boards), -1)
    truth = np.repeat(flat[:, inside], orders, axis=0)
    order = np.argsort(uniforms(seed, np.arange(orders), 0, len(inside)), axis=1)
    order = np.tile(order, (len(boards), 1))
    nats = np.zeros(len(truth))
    for part in _batches(len(truth), denoiser.batch):
        tokens, rows = np.full_like(truth[part], MASK), np.arange(len(truth[part]))
        for step in range(len(inside)):
            cell = order[part][:, step]
            t = diffusion_time(denoiser, np.full(len(rows), len(inside) - step))
            p = softmax(denoiser.logits(tokens, t, cell[:, None]))[:, 0]
            tokens[rows, cell] = truth[part][rows, cell]
            with np.errstate(divide="ignore"):
                nats[part] -= np.log(p[rows, tokens[rows, cell]])
        if on_progress is not None:
            on_progress(part.stop // orders, len(boards))
    mean = nats.reshape(len(boards), orders).mean(1)
    wall_border = (np.delete(flat, inside, axis=1) == WALL).all(1)
    return np.where(wall_border, mean, np.inf)


def _batches(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
