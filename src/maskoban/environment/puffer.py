"""``SokobanPufferEnv``: the vector environment as a native environment of PufferLib 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from maskoban.environment.games import ACTIONS, STEPS, Games, Observation, observation_space
from maskoban.environment.pool import Levels, as_source

try:
    from pufferlib import PufferEnv
except ImportError as error:
    raise ImportError("SokobanPufferEnv needs PufferLib 3 (puffer.ai)", name="pufferlib") from error


class SokobanPufferEnv(PufferEnv):
    """``num_envs`` games that write their observations straight into PufferLib's buffer ``buf``.

    Episodes begin again in the step in which they end. An info comes with every step in which episodes end: the mean of
    ``solved``, ``episode_length`` and ``episode_return`` over them.
    """

    def __init__(
        self,
        num_envs: int = 1024,
        levels: Levels = None,
        observation: Observation = "tokens",
        max_episode_steps: int = STEPS,
        buf: dict[str, NDArray[Any]] | None = None,
        seed: int = 0,
        *,
        pixels: int = 1,
        actions: Sequence[str] = ACTIONS,
        threads: int = 1,
    ) -> None:
        source = as_source(levels, num_envs=num_envs)
        self.single_observation_space = observation_space(observation, source.shape, pixels)
        self.single_action_space = spaces.Discrete(len(actions))
        self.num_agents, self._seed = num_envs, seed
        super().__init__(buf)
        self._games = Games(
            num_envs,
            source,
            observation,
            pixels,
            actions,
            max_episode_steps,
            AutoresetMode.SAME_STEP,
            threads,
            observations=self.observations,
        )
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs)

    def reset(self, seed: int | None = None) -> tuple[NDArray[Any], list[dict[str, float]]]:
        """Begin new episodes everywhere."""
        self._games.seed(self._seed if seed is None else seed)
        self._games.reset()
        self._returns[:] = self._lengths[:] = 0
        return self.observations, []

    def step(self, actions: NDArray[Any]) -> tuple[Any, ...]:
        """One action for each environment."""
        _, rewards, self.terminals[:], self.truncations[:], _ = self._games.step(actions)
        self.rewards[:] = rewards
        self._returns += rewards
        self._lengths += 1
        ended = self.terminals | self.truncations
        infos = []
        if ended.any():
            means = {
                "solved": self.terminals[ended].mean(),
                "episode_length": self._lengths[ended].mean(),
                "episode_return": self._returns[ended].mean(),
            }
            infos = [{key: float(mean) for key, mean in means.items()}]
            self._returns[ended] = self._lengths[ended] = 0
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def close(self) -> None:
        """End the work that makes levels in the background."""
        self._games.close()
