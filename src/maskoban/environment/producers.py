"""What makes endless levels: the model, the synthesizer, or any object with the members of `Producer`."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban.boards import Tokens
from maskoban.boards.synth import synthesize
from maskoban.diffusion.loading import default_model, load
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.solving.filters import BoardFilter


@runtime_checkable
class Producer(Protocol):
    """Makes the boards of a seed in the order of their numbers."""

    #: The most boards that are made at a time.
    batch: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of every board."""

    def make(self, seed: int, first: int, count: int) -> tuple[NDArray[np.int64], Tokens]:
        """Of boards ``first`` to ``first + count - 1`` of this seed, those to play: their numbers and boards."""

    def title(self, seed: int, number: int) -> str:
        """The title of a board."""


class ModelLevels:
    """Endless boards from a model, a shipped one by default; docs/environment.md has the arguments.

    Board n of seed s is the board that ``maskoban generate --sampler fast --seed s`` samples as number n.

    >>> ModelLevels(only_solvable=False).shape
    (10, 10)
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        only_solvable: bool = True,
        difficulty: str | None = None,
        boxes: int | None = None,
        sampler: str | SamplerConfig = "fast",
        batch: int = 8,
        size: tuple[int, int] | None = None,
    ) -> None:
        if batch < 1:
            raise MaskobanError(f"batch: expected at least 1, got {batch}")
        self._wanted, self._size = BoardFilter(only_solvable, difficulty, boxes), size
        self._model, self._sampler, self.batch = model, sampler, batch
        self.filter = self._base().conditioned(self._wanted, size)[1]
        self.model.sampler(sampler)  # raises the error of a wrong one here

    def _base(self) -> Model:
        return self._model or _shipped(os.getpid(), default_model(self._size, self._wanted.boxes))

    @property
    def model(self) -> Model:
        """The model with its conditions; a shipped one is loaded once a process."""
        return self._base().conditioned(self._wanted, self._size)[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the model's boards."""
        return self.model.height, self.model.width

    def make(self, seed: int, first: int, count: int) -> tuple[NDArray[np.int64], Tokens]:
        """Of boards ``first`` to ``first + count - 1`` of this seed, those that can be played and match the filter."""
        boards = self.model.sample(count, seed, self.model.sampler(self._sampler), first=first)
        keep = np.array([not reason for reason in _core.unplayable(boards)])
        keep[keep] = self.filter.matches(boards[keep])
        return first + np.flatnonzero(keep), boards[keep]

    def title(self, seed: int, number: int) -> str:
        """The title that ``maskoban generate`` gives a board."""
        return self.model.title(seed, number)

    def __str__(self) -> str:
        return f"playable and {self.filter}" if self.filter else "playable"

    def __deepcopy__(self, memo: dict[int, Any]) -> ModelLevels:
        return self  # it never changes, and a network's session cannot be copied


class SynthLevels:
    """Endless boards of ``maskoban corpus synth``: rooms of one size, with boxes pulled away from their goals.

    They need no model, and about 20 ms each at 10x10 with four boxes.

    >>> SynthLevels(8, 8, boxes=2).shape
    (8, 8)
    """

    batch = 32

    def __init__(self, height: int = 10, width: int = 10, boxes: int = 4, walls: float | None = None) -> None:
        self.shape, self.boxes, self.walls = (height, width), boxes, walls
        synthesize(1, height, width, boxes, walls=walls)  # raises the error of an impossible size here

    def make(self, seed: int, first: int, count: int) -> tuple[NDArray[np.int64], Tokens]:
        """Boards ``first`` to ``first + count - 1`` of this seed."""
        boards = synthesize(count, *self.shape, self.boxes, seed, walls=self.walls, first=first, threads=1)
        return np.arange(first, first + count), boards

    def title(self, seed: int, number: int) -> str:
        """Seed and number of a board."""
        return f"synth {seed}-{number}"


@lru_cache(maxsize=2)
def _shipped(process: int, name: str) -> Model:
    """A shipped model, once for all environments of a process: its threads do not survive a fork."""
    return load(name)
