"""One game at a time, as a ``gymnasium.Env``."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from maskoban.boards import Level, MaskobanError, Tokens

from .games import ACTIONS, COUNTS, Games
from .levels import NO_INDEX, Episodes, LevelLike, Levels, Order, as_level, as_source, fitted
from .observations import Observation, Seen, observing
from .rendering import METADATA, check_render_mode, rendered

_HERE = np.array([0])


class SokobanEnv(gymnasium.Env[Seen, np.int64]):
    """Push every box onto a goal; docs/environment.md has actions, rewards and what the arguments mean.

    The limit of steps an episode is gymnasium's: ``gymnasium.make`` adds it.

    >>> env = SokobanEnv(levels=["#####\\n#@$.#\\n#####"])
    >>> board, info = env.reset(seed=7)
    >>> board, reward, terminated, truncated, info = env.step(3)
    >>> reward, terminated, info["pushes"]
    (10.9, True, 1)
    """

    metadata = METADATA

    def __init__(
        self,
        levels: Levels = None,
        observation: Observation = "tokens",
        render_mode: str | None = None,
        order: Order | None = None,
    ) -> None:
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self._source = as_source(levels, order)
        self._episodes: Episodes | None = None
        self._index = NO_INDEX
        self._games = Games(1, self._source.shape)
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space, self._see = observing(observation, self._source.shape)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Begin a new episode: on the next level, or on ``options["level"]``, a Level, its text or its tokens."""
        given = self._given(options["level"]) if options and "level" in options else None
        super().reset(seed=seed)
        if self._episodes is None or seed is not None:
            start = int(self.np_random.integers(2**63)) if seed is None else seed
            self._episodes = self._source.episodes(start, num_envs=1)
        self._index, level, board = given or self._next(self._episodes)
        self._games.begin(_HERE, board[None])
        return self._see(self._games.boards[0]), {"level": level, **self._info()}

    def step(self, action: int | np.integer[Any]) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Walk or push one cell up (0), down (1), left (2) or right (3); what is blocked changes nothing."""
        if self._episodes is None:
            raise MaskobanError("reset the environment before its first step")
        rewards, terminated, _ = self._games.step(np.array([action]))
        return (
            self._see(self._games.boards[0]),
            float(rewards[0]),
            bool(terminated[0]),
            False,
            self._info(),
        )

    def render(self) -> NDArray[np.uint8] | str | None:
        """The board as ``render_mode`` says, or None without one."""
        return None if self.render_mode is None else rendered(self._games.boards[0], self.render_mode)

    @staticmethod
    def _next(episodes: Episodes) -> tuple[int, Level, Tokens]:
        (number,), (board,) = episodes.take(1)
        return int(number), episodes.level(int(number), board), board

    def _given(self, wish: LevelLike) -> tuple[int, Level, Tokens]:
        level = as_level(wish)
        return NO_INDEX, level, fitted(level, self._source.shape)

    def _info(self) -> dict[str, Any]:
        counts = zip(COUNTS, self._games.counts[0].tolist(), strict=True)
        return {**dict(counts), "level_index": self._index}
