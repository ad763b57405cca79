"""Games in play, one a board: the Python face of ``native/play.hpp``, where the rules are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban.boards import MaskobanError, Tokens

#: What the actions 0, 1, 2, 3 do.
ACTIONS = ("up", "down", "left", "right")

#: What is counted in every game, and told in ``info``.
COUNTS = ("boxes_on_goals", "moves", "pushes")

# The columns of a game's row as in native/play.hpp, and where the counts begin.
_COLUMNS, _COUNTS = 7, 4

#: Steps of an episode, unless told otherwise; and more than any game has.
STEPS = 120
ENDLESS = 2**31 - 1


class Games:
    """``n`` boards of one shape, stepped together in the native core, without the GIL.

    >>> games = Games(1, (1, 4))
    >>> games.begin(np.array([0]), np.array([[[2, 3, 1, 4]]], np.uint8))
    >>> rewards, terminated, truncated = games.step(np.array([3]))
    >>> rewards.tolist(), games.boards.tolist()
    ([-0.1], [[[1, 2, 3, 4]]])
    """

    def __init__(self, n: int, shape: tuple[int, int]) -> None:
        self.boards: Tokens = np.zeros((n, *shape), np.uint8)
        self._games = np.zeros((n, _COLUMNS), np.int32)
        self._none_idle = np.zeros(n, bool)

    def begin(self, where: NDArray[np.int64], boards: Tokens) -> None:
        """Begin new games at these places, on boards that can be played."""
        games = np.zeros((len(boards), _COLUMNS), np.int32)
        _core.begin_games(boards, games)
        self.boards[where], self._games[where] = boards, games

    def step(
        self, actions: NDArray[Any], idle: NDArray[np.bool_] | None = None, limit: int = ENDLESS
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Rewards, which games are won, and which are at their ``limit`` of steps; ``idle`` games stand still."""
        n = len(self.boards)
        actions = np.asarray(actions)
        if actions.shape != (n,) or actions.dtype.kind not in "iu":
            raise MaskobanError(
                f"expected {n} whole numbers as actions, not {actions.dtype} of shape {actions.shape}"
            )
        rewards, terminated, truncated = np.empty(n), np.empty(n, bool), np.empty(n, bool)
        try:
            _core.step_games(
                self.boards,
                self._games,
                np.ascontiguousarray(actions, np.int64),
                self._none_idle if idle is None else idle,
                limit,
                rewards,
                terminated,
                truncated,
            )
        except ValueError as error:
            raise MaskobanError(str(error)) from None
        return rewards, terminated, truncated

    @property
    def counts(self) -> NDArray[np.int32]:
        """What `COUNTS` names, a row a game; it changes with every step."""
        return self._games[:, _COUNTS:]
