"""``SokobanVectorEnv``: thousands of games as a ``gymnasium.vector.VectorEnv``, stepped by one native call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from maskoban.boards import Level, Tokens
from maskoban.environment.env import METADATA, check_render_mode, render
from maskoban.environment.games import (
    ACTIONS,
    ENDLESS,
    STEPS,
    Flags,
    Games,
    Observation,
    Observations,
    StepResult,
)
from maskoban.environment.levels import LevelLike, Order, as_level, fitted
from maskoban.environment.pool import Levels, as_source
from maskoban.errors import MaskobanError


class SokobanVectorEnv(VectorEnv[Observations, NDArray[Any], NDArray[Any]]):
    """The same game as `SokobanEnv`, ``num_envs`` of it; docs/environment.md says what the arguments mean.

    Every step writes to the same arrays and returns them: keep a copy of what is needed later, or pass ``copy=True``.
    ``max_episode_steps`` is gymnasium's: 120 where it is None, and -1 for no limit.

    >>> envs = SokobanVectorEnv(1000, levels=["#####\\n#@$.#\\n#####"])
    >>> boards, infos = envs.reset(seed=7)
    >>> boards, rewards, terminated, truncated, infos = envs.step(np.full(1000, 3))
    >>> boards.shape, float(rewards[999]), int(terminated.sum())
    ((1000, 3, 5), 10.9, 1000)
    """

    def __init__(
        self,
        num_envs: int = 1,
        levels: Levels = None,
        observation: Observation = "tokens",
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        order: Order | None = None,
        *,
        pixels: int = 1,
        actions: Sequence[str] = ACTIONS,
        optimal_pushes: bool = False,
        threads: int = 1,
        copy: bool = False,
    ) -> None:
        self.render_mode = check_render_mode(render_mode)
        if num_envs < 1:
            raise MaskobanError(f"num_envs: expected at least 1, got {num_envs}")
        limit = (
            STEPS if max_episode_steps is None else ENDLESS if max_episode_steps == -1 else max_episode_steps
        )
        if not 1 <= limit <= ENDLESS:
            raise MaskobanError(f"max_episode_steps: expected at least 1, or -1, got {max_episode_steps}")
        mode = _autoreset_mode(autoreset_mode)
        source = as_source(levels, order, num_envs)
        self.num_envs, self.copy = num_envs, copy
        self.metadata = {**METADATA, "autoreset_mode": mode}
        self.games = Games(
            num_envs, source, observation, pixels, actions, limit, mode, threads, optimal_pushes
        )
        self.single_action_space, self.single_observation_space = self.games.action_space, self.games.space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin new episodes everywhere, or only where ``options["reset_mask"]`` is true.

        Slot i chooses its levels by ``seed + i``, or by ``seed[i]``. ``options["level"]`` is the level of all of them,
        or a list of as many levels as there are.
        """
        options, games = options or {}, self.games
        mask = self._mask(options.get("reset_mask"))
        boards = self._given(options["level"], int(mask.sum())) if "level" in options else None
        seeds = seed if isinstance(seed, list) else None
        if seeds is not None and len(seeds) != self.num_envs:
            raise MaskobanError(f"seed: expected one number, or {self.num_envs}, got {len(seeds)}")
        first = seed[0] if isinstance(seed, list) else seed
        super().reset(seed=first)
        if games.supply is None or first is not None:
            games.seed(int(self.np_random.integers(2**63)) if first is None else first, seeds)
        games.reset(mask, boards)
        infos = {}
        for key, value in games.values.items():
            infos[key], infos[f"_{key}"] = value.copy(), mask.copy()
            infos[key][~mask] = 0
        observations = games.arrays["observations"]
        return observations.copy() if self.copy else observations, infos

    def step(self, actions: NDArray[Any]) -> StepResult:
        """One action for each environment; `SokobanEnv.step` says which."""
        result = self.games.step(actions)
        return _copied(result) if self.copy else result

    def step_many(self, actions: NDArray[Any] | int) -> StepResult:
        """Several steps in one call: actions (k, num_envs), or a number k of random steps.

        Observations and infos are those of the last step; rewards, terminated and truncated are (k, num_envs).
        """
        result = self.games.step_many(actions)
        return _copied(result) if self.copy else result

    def render(self) -> tuple[NDArray[np.uint8] | str, ...] | None:
        """Every board in this environment's ``render_mode``; None without one."""
        if self.render_mode is None:
            return None
        return tuple(render(board, self.render_mode) for board in self.games.boards)

    def close_extras(self, **kwargs: Any) -> None:
        """End the work that makes levels in the background."""
        self.games.close()

    def _mask(self, mask: Any) -> Flags:
        if mask is None:
            return np.ones(self.num_envs, bool)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,):
            raise MaskobanError(f"reset_mask: expected a NumPy array of {self.num_envs} booleans")
        if not mask.any():
            raise MaskobanError("reset_mask: expected at least one True, got none")
        return np.ascontiguousarray(mask)

    def _given(self, given: LevelLike | Iterable[LevelLike], n: int) -> Tokens:
        """The boards of the given levels: one for all slots, or one for each."""
        if isinstance(given, Level | str) or (isinstance(given, np.ndarray) and given.ndim == 2):
            levels = [as_level(given)] * n
        elif not isinstance(given, Iterable):
            raise MaskobanError(f"level: expected a Level, a text or an array, got {type(given).__name__}")
        else:
            levels = [as_level(level) for level in given]
        if len(levels) != n:
            raise MaskobanError(f"level: expected 1 or {n} levels, got {len(levels)}")
        return np.stack([fitted(level, self.games.source.shape) for level in levels])


def _copied(result: StepResult) -> StepResult:
    observations, rewards, terminated, truncated, infos = result
    return observations.copy(), rewards.copy(), terminated.copy(), truncated.copy(), _copied_infos(infos)


def _copied_infos(infos: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _copied_infos(value) if isinstance(value, dict) else value.copy() for key, value in infos.items()
    }


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        modes = ", ".join(known.value for known in AutoresetMode)
        raise MaskobanError(f"autoreset_mode: expected one of {modes}, got {mode!r}") from None
