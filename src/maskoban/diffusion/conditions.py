"""Conditions: what a board is to be, for models that sample boards of many sizes.

A conditional model is a network over any number of cells. With its conditions given (:class:`Conditioned`) it is a
:class:`~maskoban.diffusion.denoiser.Denoiser` of boards of one size, so samplers and likelihoods need not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.tiles import Tokens
from maskoban.diffusion.schedule import Schedule
from maskoban.errors import MaskobanError

#: The difficulties in the order of their numbers.
DIFFICULTIES = ("easy", "medium", "hard", "expert")

#: The smallest and the largest side of a board, border included, and the largest number of boxes.
LEAST_SIDE, MOST_SIDE, MOST_BOXES = 5, 16, 8

#: The cells inside the border of the largest board, row by row: the positions a cell can have, in a grid of this width.
GRID = MOST_SIDE - 2

#: The number of a place that is no cell: of condition tokens, and of what fills up a batch.
NOWHERE = GRID * GRID


@dataclass(frozen=True)
class Conditions:
    """What a board is to be. Size is always obeyed; what is None is left to the model.

    ``guidance`` says how much a difficulty counts: logits move this many times as far from those without it
    (classifier-free guidance), which evaluates the network twice. 1 is the model's own distribution of such boards, in
    half the time, but fewer of them are as difficult as wished.

    >>> Conditions(8, 12, boxes=5, difficulty="hard").numbers(["synth"])
    [8, 12, 5, 3, 0]
    """

    height: int = 10
    width: int = 10
    boxes: int | None = None
    difficulty: str | None = None
    corpus: str | None = None
    guidance: float = 3.0

    def __post_init__(self) -> None:
        for name, side in (("height", self.height), ("width", self.width)):
            if not LEAST_SIDE <= side <= MOST_SIDE:
                raise MaskobanError(f"{name}: expected {LEAST_SIDE} to {MOST_SIDE}, got {side}")
        inside = (self.height - 2) * (self.width - 2)
        most = min(MOST_BOXES, (inside - 1) // 2)  # boxes, goals and a player
        if self.boxes is not None and not 1 <= self.boxes <= most:
            size = f"{self.height}x{self.width}"
            raise MaskobanError(f"boxes: expected 1 to {most} on a {size} board, got {self.boxes}")
        if self.difficulty is not None and self.difficulty not in DIFFICULTIES:
            raise MaskobanError(
                f"difficulty: expected one of {', '.join(DIFFICULTIES)}, got {self.difficulty!r}"
            )

        if not 0 <= self.guidance <= 20:
            raise MaskobanError(f"guidance: expected 0 to 20, got {self.guidance:g}")

    def numbers(self, corpora: Sequence[str]) -> list[int]:
        """As the network is given them: height, width, boxes, difficulty from 1, corpus from 1; 0 where None."""
        if self.corpus is not None and self.corpus not in corpora:
            raise MaskobanError(f"corpus: expected one of {', '.join(corpora)}, got {self.corpus!r}")
        difficulty = 0 if self.difficulty is None else DIFFICULTIES.index(self.difficulty) + 1
        corpus = 0 if self.corpus is None else list(corpora).index(self.corpus) + 1
        return [self.height, self.width, self.boxes or 0, difficulty, corpus]


def positions(height: int, width: int) -> NDArray[np.int64]:
    """The places in the grid of the cells inside the border of a board.

    >>> positions(4, 5).tolist()
    [0, 1, 2, 14, 15, 16]
    """
    rows, columns = np.arange(height - 2), np.arange(width - 2)
    return (rows[:, None] * GRID + columns).ravel()


class ConditionalNet(Protocol):
    """A network under torch or ONNX Runtime that takes positions and conditions beside the tokens."""

    steps: int
    schedule: Schedule
    batch: int
    overlap: int
    corpora: list[str]

    def evaluate(self, feed: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        """Logits of ``cells`` (n, k), from ``tokens`` (n, cells), ``where`` (n, cells) and ``conditions`` (n, 5)."""
        ...


class ConditionalCritic(Protocol):
    """A critic that takes positions and conditions beside the tokens."""

    def evaluate(self, feed: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        """Scores of boards: ``tokens`` (n, cells), ``where`` (n, cells) and ``conditions`` (n, 5) to (n,)."""
        ...


class Conditioned:
    """A conditional network with its conditions given: a Denoiser of boards of one size."""

    margin = 1

    def __init__(self, net: ConditionalNet, conditions: Conditions | None = None) -> None:
        self.net, self.conditions = net, conditions or Conditions()
        self.height, self.width = self.conditions.height, self.conditions.width
        self.steps, self.schedule, self.overlap = net.steps, net.schedule, net.overlap
        self.batch = net.batch
        self._where = positions(self.height, self.width)
        self._numbers = np.array(self.conditions.numbers(net.corpora), dtype=np.int64)
        self._unguided = np.array(
            replace(self.conditions, difficulty=None).numbers(net.corpora), dtype=np.int64
        )

    def given(self, **conditions: Any) -> Conditioned:
        """The same network with other conditions; None leaves a condition as it is.

        >>> Conditioned(net).given(height=8, boxes=2).conditions  # doctest: +SKIP
        Conditions(height=8, width=10, boxes=2, difficulty=None, corpus=None, guidance=3.0)
        """
        changes = {name: value for name, value in conditions.items() if value is not None}
        return Conditioned(self.net, replace(self.conditions, **changes))

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of the given cells. The network has no time input."""
        guidance, found = self.conditions.guidance, self._evaluate(tokens, cells, self._numbers)
        if guidance == 1 or self.conditions.difficulty is None:
            return found
        others = self._evaluate(tokens, cells, self._unguided)
        return others + np.float32(guidance) * (found - others)

    def _evaluate(
        self, tokens: Tokens, cells: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        return self.net.evaluate(self._feed(tokens, numbers) | {"cells": np.ascontiguousarray(cells)})

    def _feed(self, tokens: Tokens, numbers: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        where, conditions = (np.repeat(each[None], len(tokens), axis=0) for each in (self._where, numbers))
        return {"tokens": tokens.astype(np.int64), "where": where, "conditions": conditions}

    def critic(self, critic: ConditionalCritic) -> ConditionedCritic:
        """The critic for boards of these conditions."""
        return ConditionedCritic(lambda tokens: critic.evaluate(self._feed(tokens, self._numbers)))


class ConditionedCritic:
    """A conditional critic with its conditions given: a Critic of boards of one size."""

    def __init__(self, scores: Callable[[Tokens], NDArray[np.float32]]) -> None:
        self._scores = scores

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        """Scores of finished boards, (n, interior cells) to (n,)."""
        return self._scores(tokens)
