"""Thousands of games side by side, as a ``gymnasium.vector.VectorEnv``: one call to the native core steps all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from maskoban.boards import Level, MaskobanError, Tokens

from .games import ACTIONS, COUNTS, ENDLESS, STEPS, Games
from .levels import NO_INDEX, Episodes, LevelLike, Levels, Order, as_level, as_source, fitted
from .observations import Observation, Seen, observing
from .rendering import METADATA, check_render_mode, rendered

Flags = NDArray[np.bool_]


class SokobanVectorEnv(VectorEnv[Seen, NDArray[Any], NDArray[Any]]):
    """The same game as `SokobanEnv`, ``num_envs`` of it; docs/environment.md says what the arguments mean.

    All environments take their levels from one sequence, in the order in which they begin episodes (the lower index
    first). ``max_episode_steps`` is gymnasium's: 120 where it is None, and -1 for no limit.

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
    ) -> None:
        check_render_mode(render_mode)
        if num_envs < 1:
            raise MaskobanError(f"num_envs must be at least 1, not {num_envs}")
        if max_episode_steps is None:
            max_episode_steps = STEPS
        elif max_episode_steps == -1:
            max_episode_steps = ENDLESS
        elif not 1 <= max_episode_steps <= ENDLESS:
            raise MaskobanError(f"max_episode_steps must be at least 1, or -1, not {max_episode_steps}")
        self.num_envs, self.render_mode = num_envs, render_mode
        self._limit = max_episode_steps
        self._mode = _autoreset_mode(autoreset_mode)
        self.metadata = {**METADATA, "autoreset_mode": self._mode}
        self._source = as_source(levels, order)
        self._episodes: Episodes | None = None
        self._games = Games(num_envs, self._source.shape)
        self._indices = np.full(num_envs, NO_INDEX, np.int64)
        self._over: Flags = np.zeros(num_envs, bool)  # whose episode has ended, and none has begun since
        self.single_action_space = spaces.Discrete(len(ACTIONS))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.single_observation_space, self._see = observing(observation, self._source.shape)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Begin new episodes everywhere, or only where ``options["reset_mask"]`` is true.

        ``options["level"]`` is the level of all of them, or a list of as many levels as there are.
        """
        options = options or {}
        where = self._chosen(options.get("reset_mask"))
        boards = self._given(options["level"], len(where)) if "level" in options else None
        super().reset(seed=seed)
        if self._episodes is None or seed is not None:
            start = int(self.np_random.integers(2**63)) if seed is None else seed
            self._episodes = self._source.episodes(start, self.num_envs)
        begun = self._begin(where, boards)
        mask = np.zeros(self.num_envs, bool)
        mask[where] = True
        return self._see(self._games.boards), {**begun, **self._infos(mask)}

    def step(self, actions: NDArray[Any]) -> tuple[Seen, NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """One action for each environment; `SokobanEnv.step` says which."""
        if self._episodes is None:
            raise MaskobanError("reset the environment before its first step")
        over = self._over
        if self._mode is AutoresetMode.DISABLED and over.any():
            raise MaskobanError(
                "an episode is over; reset it with options={'reset_mask': ...} before the next step"
            )
        rewards, terminated, truncated = self._games.step(actions, idle=over, limit=self._limit)
        infos: dict[str, Any] = {}
        if over.any():  # only with NEXT_STEP: the action of these went nowhere
            infos = self._begin(np.flatnonzero(over))
        self._over = terminated | truncated
        if self._mode is AutoresetMode.SAME_STEP and self._over.any():
            infos = self._final(self._over)
            infos |= self._begin(np.flatnonzero(self._over))
        return self._see(self._games.boards), rewards, terminated, truncated, infos | self._infos(None)

    def render(self) -> tuple[NDArray[np.uint8] | str, ...] | None:
        """Every board as ``render_mode`` says, or None without one."""
        if self.render_mode is None:
            return None
        return tuple(rendered(board, self.render_mode) for board in self._games.boards)

    def _begin(self, where: NDArray[np.int64], boards: Tokens | None = None) -> dict[str, Any]:
        """Begin episodes at these places; the levels, as infos."""
        indices: NDArray[np.int64] | int = NO_INDEX
        if boards is None:
            assert self._episodes is not None
            indices, boards = self._episodes.take(len(where))
        self._games.begin(where, boards)
        self._indices[where] = indices
        self._over[where] = False
        levels, mask = np.zeros_like(self._games.boards), np.zeros(self.num_envs, bool)
        levels[where], mask[where] = boards, True
        return {"level": levels, "_level": mask}

    def _final(self, over: Flags) -> dict[str, Any]:
        """What the last step of these episodes showed, before others begin in their place."""
        seen = np.full(self.num_envs, None, object)
        where = np.flatnonzero(over)
        for i, last in zip(where, self._see(self._games.boards[where]), strict=True):
            seen[i] = last
        return {
            "final_obs": seen,
            "_final_obs": over.copy(),
            "final_info": self._infos(over),
            "_final_info": over.copy(),
        }

    def _infos(self, mask: Flags | None) -> dict[str, Any]:
        """One array a key, and one that says which environments it speaks of: those of ``mask``, or all."""
        told = np.vstack([self._games.counts.T, self._indices])
        if mask is None:
            mask = np.ones(self.num_envs, bool)
        else:
            told[:, ~mask] = 0
        infos: dict[str, Any] = {}
        for key, values in zip((*COUNTS, "level_index"), told, strict=True):
            infos |= {key: values, f"_{key}": mask.copy()}
        return infos

    def _chosen(self, mask: Any) -> NDArray[np.int64]:
        if mask is None:
            return np.arange(self.num_envs)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,):
            raise MaskobanError(f"reset_mask is a NumPy array of {self.num_envs} booleans")
        if not mask.any():
            raise MaskobanError("reset_mask chooses no environment; expected at least one True")
        return np.flatnonzero(mask)

    def _given(self, wish: LevelLike | Iterable[LevelLike], n: int) -> Tokens:
        """The boards asked for: one for all, or one for each."""
        if isinstance(wish, Level | str) or (isinstance(wish, np.ndarray) and wish.ndim == 2):
            levels = [as_level(wish)] * n
        elif not isinstance(wish, Iterable):
            raise MaskobanError(f"a level is a Level, a text or an array, not {type(wish).__name__}")
        else:
            levels = [as_level(level) for level in wish]
        if len(levels) != n:
            raise MaskobanError(f"{len(levels)} levels for {n} environments; expected one, or one for each")
        return np.stack([fitted(level, self._source.shape) for level in levels])


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        modes = ", ".join(known.value for known in AutoresetMode)
        raise MaskobanError(f"autoreset_mode is one of {modes}, not {mode!r}") from None
