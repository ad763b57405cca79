"""``SokobanVecEnv``: the vector environment as a ``VecEnv`` of stable-baselines3."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban.environment.games import Observations
from maskoban.environment.pool import Levels
from maskoban.environment.vector import SokobanVectorEnv

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvStepReturn
except ImportError as error:
    message = "SokobanVecEnv needs stable-baselines3: pip install 'maskoban[agents]'"
    raise ImportError(message, name="stable_baselines3") from error


class SokobanVecEnv(VecEnv):
    """``num_envs`` games for stable-baselines3; the arguments are those of `SokobanVectorEnv`.

    An episode's last info has ``terminal_observation``, ``TimeLimit.truncated``, ``is_success``, and under ``episode``
    its reward and length, as stable-baselines3's ``Monitor`` says them. ``MlpPolicy`` takes every observation;
    ``CnnPolicy`` takes ``observation="rgb"`` with ``pixels=8`` on boards of 10x10.

    >>> envs = SokobanVecEnv(2, levels=["#@$.#"])
    >>> envs.reset().shape, envs.step(np.array([3, 0]))[2].tolist()
    ((2, 1, 5), [True, False])
    """

    def __init__(self, num_envs: int = 1, levels: Levels = None, **settings: Any) -> None:
        self.envs = SokobanVectorEnv(num_envs, levels, **settings, autoreset_mode="SameStep")
        super().__init__(num_envs, self.envs.single_observation_space, self.envs.single_action_space)
        self._actions: NDArray[Any] = np.zeros(num_envs, np.int64)
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        self._begun = time.perf_counter()

    def reset(self) -> Observations:
        """Begin new episodes everywhere, with the seeds given by ``seed`` before."""
        seeds = [seed for seed in self._seeds if seed is not None]
        observations, infos = self.envs.reset(seed=seeds if len(seeds) == self.num_envs else None)
        self._reset_seeds()
        self._returns[:] = self._lengths[:] = 0
        keys = [key for key in infos if not key.startswith("_") and key != "level"]
        self.reset_infos = [{key: int(infos[key][i]) for key in keys} for i in range(self.num_envs)]
        return observations.copy()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Remember the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Take the step; the arrays are copies."""
        observations, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        done = terminated | truncated
        said: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(done):
            final = infos["final_info"]
            said[i] = {key: int(final[key][i]) for key in final if not key.startswith("_")}
            said[i] |= {
                "terminal_observation": infos["final_obs"][i].copy(),
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                "is_success": bool(terminated[i]),
                "episode": {
                    "r": float(self._returns[i]),
                    "l": int(self._lengths[i]),
                    "t": round(time.perf_counter() - self._begun, 6),
                },
            }
        self._returns[done], self._lengths[done] = 0, 0
        return observations.copy(), rewards.astype(np.float32), done, said

    def close(self) -> None:
        """End the work that makes levels in the background."""
        self.envs.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """A picture of every board, for ``render_mode="rgb_array"``."""
        return [
            picture if isinstance(picture, np.ndarray) else None
            for picture in self.envs.render() or [None] * self.num_envs
        ]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of the environments, which share all of them."""
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all environments."""
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call a method once for all environments."""
        return [getattr(self.envs, method_name)(*args, **kwargs)] * len(list(self._get_indices(indices)))

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """True for ``Monitor`` alone: what it says of episodes, these environments say, too."""
        return [issubclass(wrapper_class, Monitor)] * len(list(self._get_indices(indices)))
