"""What a network thinks of boards that are there: the odds of hidden cells, and how surprising finished boards are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.tiles import MASK, TILES, WALL, Tokens
from maskoban.diffusion.denoiser import Denoiser
from maskoban.diffusion.noise import uniforms
from maskoban.diffusion.sampler import drawn_cells, probabilities, time_told
from maskoban.diffusion.side_by_side import cut


def odds(denoiser: Denoiser, boards: Tokens) -> NDArray[np.float64]:
    """The probabilities of the seven tiles in every cell of half-drawn boards: (n, height, width, 7).

    A masked cell has the network's odds given all that is not masked, and of the border it does not draw, wall; a given
    cell has all of them on its tile.
    """
    n, inside = len(boards), drawn_cells(denoiser)
    flat = boards.reshape(n, -1)
    found = np.eye(TILES)[np.where(flat == MASK, WALL, flat)]
    tokens = flat[:, inside]
    everywhere = np.arange(len(inside))
    for part in cut(n, denoiser.batch):
        masked = tokens[part] == MASK
        t = time_told(denoiser, masked.sum(1))
        cells = np.broadcast_to(everywhere, masked.shape)
        p = probabilities(denoiser.logits(tokens[part], t, cells), 1.0)
        board, cell = np.nonzero(masked)
        found[part][board, inside[cell]] = p[board, cell]
    return found.reshape(*boards.shape, TILES)


def surprise(
    denoiser: Denoiser,
    boards: Tokens,
    seed: int,
    orders: int,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """-log of the probability with which each board is drawn a cell at a time, in nats, over ``orders`` orders: (n,).

    The mean over orders is an upper bound of -log p(board), on average over seeds: the ELBO with its sign turned. All
    boards are drawn in the same orders, so that they can be compared. A board whose given border is not wall is
    never drawn, and infinitely surprising.
    """
    inside = drawn_cells(denoiser)
    flat = boards.reshape(len(boards), -1)
    truth = np.repeat(flat[:, inside], orders, axis=0)
    place = uniforms(seed, np.arange(orders), 0, len(inside))
    order = np.tile(np.argsort(place, axis=1), (len(boards), 1))
    nats = np.zeros(len(truth))
    for part in cut(len(truth), denoiser.batch):
        tokens, rows = np.full_like(truth[part], MASK), np.arange(len(truth[part]))
        for step in range(len(inside)):
            cell = order[part][:, step]
            t = time_told(denoiser, np.full(len(rows), len(inside) - step))
            p = probabilities(denoiser.logits(tokens, t, cell[:, None]), 1.0)[:, 0]
            tokens[rows, cell] = truth[part][rows, cell]
            with np.errstate(divide="ignore"):
                nats[part] -= np.log(p[rows, tokens[rows, cell]])
        if progress is not None:
            progress(part.stop // orders, len(boards))
    mean = nats.reshape(len(boards), orders).mean(1)
    framed = (np.delete(flat, inside, axis=1) == WALL).all(1)
    return np.where(framed, mean, np.inf)
