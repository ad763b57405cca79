"""`Curriculum`: levels of a set, chosen by how well the agent plays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskoban.boards import BOX, BOX_ON_GOAL, WALL
from maskoban.environment.levels import LevelSet, Progress, Supply
from maskoban.errors import MaskobanError
from maskoban.solving.filters import FILTER_LIMITS
from maskoban.solving.rating import DIFFICULTIES, difficulties

#: What a curriculum goes by: a name, a number for each level, or a function of (ended, solved) that returns weights.
By: TypeAlias = "Literal['success', 'difficulty', 'boxes', 'size'] | ArrayLike | Weigh"
Weigh: TypeAlias = Callable[[NDArray[np.int32], NDArray[np.int32]], ArrayLike]


class Curriculum:
    """Levels of a set, chosen by how well the agent plays. The same seed and the same play give the same levels.

    ``by="success"`` prefers levels that the agent solves about half of the time. Otherwise levels are played in stages:
    ``by`` is ``"difficulty"`` (the rating of docs/solver.md), ``"boxes"``, ``"size"`` (cells that are not wall) or an
    array with a number for each level, and lower numbers come first. The next stage opens when the share of episodes
    solved on the newest one reaches ``threshold``; half of the episodes play the newest stage, half those before it.
    ``by`` may also be a function: it gets the episodes ended and solved since the last call, by level, and returns a
    weight for each level. Weights are computed again after every ``every`` episodes.

    >>> Curriculum(["#@$.#", "#@$$..#"], by="boxes").shape
    (1, 7)
    """

    def __init__(
        self, levels: Any, by: By = "success", *, every: int = 1024, threshold: float = 0.5, stages: int = 8
    ) -> None:
        self.levels = levels if isinstance(levels, LevelSet) else LevelSet(levels)
        if every < 1 or stages < 1 or not 0 < threshold <= 1:
            raise MaskobanError("every and stages: expected at least 1; threshold: above 0, and at most 1")
        self.every, self._threshold = every, threshold
        self._weigh, self._stage = by if callable(by) else None, None
        if self._weigh is None and not (isinstance(by, str) and by == "success"):
            self._stage = _stages(self._keys(by), stages)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the largest board."""
        return self.levels.shape

    def start(self, seed: int, num_envs: int, optimal_pushes: bool) -> Supply:
        """All levels, with weights that follow the agent's play."""
        weigh = self._weigh
        if weigh is None:
            weigh = _BySuccess() if self._stage is None else _ByStage(self._stage, self._threshold)
        more = {"optimal_pushes": self.levels.optimal_pushes} if optimal_pushes else {}
        return _CurriculumSupply(self.levels, weigh, self.every, **more)

    def _keys(self, by: Any) -> NDArray[Any]:
        boards = self.levels.boards
        if isinstance(by, str):
            if by == "difficulty":
                words = difficulties(boards, FILTER_LIMITS)
                return np.array([DIFFICULTIES.index(word) if word else len(DIFFICULTIES) for word in words])
            if by == "boxes":
                return np.asarray(((boards == BOX) | (boards == BOX_ON_GOAL)).sum((1, 2)))
            if by == "size":
                return np.asarray((boards != WALL).sum((1, 2)))
            raise MaskobanError(f"by: expected success, difficulty, boxes, size or an array, got {by!r}")
        keys = np.asarray(by)
        if keys.shape != (len(boards),) or keys.dtype.kind not in "iuf":
            raise MaskobanError(f"by: expected {len(boards)} numbers, got {keys.dtype} of shape {keys.shape}")
        return keys


class _CurriculumSupply(Supply):
    def __init__(self, levels: LevelSet, weigh: Weigh, every: int, **more: NDArray[Any]) -> None:
        rows = len(levels)
        more["cumulative"] = np.zeros(rows)
        super().__init__(levels, levels.boards, rows, 1, rows, **more)
        self._weigh, self._every = weigh, every
        self._progress[Progress.REFRESH_AT] = 0

    def refresh(self) -> None:
        ended, solved = self.arrays["ended"], self.arrays["solved"]
        weights = np.asarray(self._weigh(ended, solved), float)
        if weights.shape != ended.shape or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
            raise MaskobanError(f"weights of levels: expected {len(ended)} numbers, none below 0, not all 0")
        np.cumsum(weights, out=self.arrays["cumulative"])
        ended[:] = solved[:] = 0
        self._progress[Progress.REFRESH_AT] = self.episodes + self._every


class _BySuccess:
    """Weights p (1 - p), where p is the share of recent episodes solved; a level never played has p = 1/2."""

    FORGET = 0.9  # what an episode still counts after each refresh

    def __init__(self) -> None:
        self._ended = self._solved = np.zeros(1)

    def __call__(self, ended: NDArray[np.int32], solved: NDArray[np.int32]) -> NDArray[np.float64]:
        self._ended = self.FORGET * self._ended + ended
        self._solved = self.FORGET * self._solved + solved
        share = (self._solved + 1) / (self._ended + 2)
        return share * (1 - share) + 0.01  # solved or hopeless levels still come, now and then


class _ByStage:
    """Half of the weight on the newest stage, and half on those before it."""

    def __init__(self, stage: NDArray[np.int64], threshold: float) -> None:
        self._stage, self._threshold, self._newest = stage, threshold, 0

    def __call__(self, ended: NDArray[np.int32], solved: NDArray[np.int32]) -> NDArray[np.float64]:
        newest = self._stage == self._newest
        if ended[newest].sum() and solved[newest].sum() >= self._threshold * ended[newest].sum():
            self._newest = min(self._newest + 1, int(self._stage.max()))
            newest = self._stage == self._newest
        before = self._stage < self._newest
        weights: NDArray[np.float64] = newest / newest.sum() + before / max(1, before.sum())
        return weights


def _stages(keys: NDArray[Any], most: int) -> NDArray[np.int64]:
    """The stage of every level: one for each different key, or ``most`` of about the same size.

    >>> _stages(np.array([3, 1, 1, 2]), 8).tolist(), _stages(np.arange(6), 2).tolist()
    ([2, 0, 0, 1], [0, 0, 0, 1, 1, 1])
    """
    values, stage = np.unique(keys, return_inverse=True)
    if len(values) > most:
        edges = np.quantile(keys, np.arange(1, most) / most, method="higher")
        stage = np.unique(np.searchsorted(edges, keys, side="right"), return_inverse=True)[1]
    return np.asarray(stage, np.int64)
