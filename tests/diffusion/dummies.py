"""Denoisers whose distribution is known, to hold the sampler against."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chisquare

from maskoban.boards.tiles import MASK, TILES, Tokens
from maskoban.diffusion.schedule import Schedule


class Dummy:
    """Draws every cell from its own fixed distribution, whatever the others are."""

    steps = 9
    schedule: Schedule = "linear"
    batch = 64
    overlap = 1

    def __init__(self, p: NDArray[np.float64], height: int, width: int, margin: int = 0) -> None:
        self.p, self.height, self.width, self.margin = p, height, width, margin
        self.seen: list[NDArray[np.int64]] = []  # the t of every call

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        self.seen.append(t)
        return np.log(np.maximum(self.p[cells], 1e-30)).astype(np.float32)


class Joint:
    """Knows the exact conditionals of a joint distribution over 2x2 boards of three tiles."""

    height = width = 2
    margin = 0
    steps = 4
    schedule: Schedule = "linear"
    batch = 64
    overlap = 1

    def __init__(self, seed: int) -> None:
        self.states = np.array(list(product(range(3), repeat=4)), dtype=np.uint8)  # (81, 4)
        alike = (self.states[:, [0, 0, 1, 2]] == self.states[:, [1, 2, 3, 3]]).sum(1)  # neighbours that agree
        weight = np.exp(0.8 * alike + 0.5 * np.random.default_rng(seed).normal(size=81))
        self.p = weight / weight.sum()
        self.one_hot = np.eye(TILES)[self.states]  # (81, 4, 7)

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        fits = ((tokens[:, None] == self.states) | (tokens[:, None] == MASK)).all(2)  # (n, 81)
        marginals = np.einsum("ns,sct->nct", fits * self.p, self.one_hot)
        wanted = np.take_along_axis(marginals, cells[:, :, None], axis=1)
        return np.log(np.maximum(wanted, 1e-30)).astype(np.float32)

    def counts(self, boards: Tokens) -> NDArray[np.int64]:
        """How often each of the 81 boards was sampled."""
        return np.bincount(boards.reshape(-1, 4) @ np.array([27, 9, 3, 1]), minlength=81)


def agrees(counts: NDArray[np.int64], p: NDArray[np.float64]) -> bool:
    """Whether counts could have come from p: chi-squared, refused once in ten thousand true cases."""
    possible = p > 0
    assert counts[~possible].sum() == 0
    share = p[possible] / p[possible].sum()
    return bool(chisquare(counts[possible], counts.sum() * share).pvalue > 1e-4)


def giving_up(seen: list[int]) -> Callable[[int, int], None]:
    """A progress callback that records what it is given, and raises the third time."""

    def tell(done: int, _: int) -> None:
        seen.append(done)
        if len(seen) >= 3:
            raise KeyboardInterrupt

    return tell
