"""``SokobanEnv``: one game as a ``gymnasium.Env``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Level, Tokens
from maskoban.environment.games import ACTIONS, COUNTS, Games, Observation, Observations
from maskoban.environment.levels import Order, as_level, fitted
from maskoban.environment.pool import Levels, as_source
from maskoban.errors import MaskobanError

#: Render modes; frames a second is for recorded videos.
METADATA: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 8}


class SokobanEnv(gymnasium.Env[Observations, np.int64]):
    """Push every box onto a goal; docs/environment.md has actions, rewards and what the arguments mean.

    The limit of steps of an episode is gymnasium's: ``gymnasium.make`` adds it.

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
        *,
        pixels: int = 1,
        actions: Sequence[str] = ACTIONS,
        optimal_pushes: bool = False,
    ) -> None:
        self.render_mode = check_render_mode(render_mode)
        source = as_source(levels, order)
        self.games = Games(1, source, observation, pixels, actions, optimal_pushes=optimal_pushes)
        self.observation_space, self.action_space = self.games.space, self.games.action_space
        self._level: dict[str, int] = {}  # what info says of the level

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin an episode: on the next level, or on ``options["level"]``, a Level, its text or its tokens."""
        games, given = self.games, None
        if options and "level" in options:
            given = as_level(options["level"])
            board = fitted(given, games.source.shape)
        super().reset(seed=seed)
        if games.supply is None or seed is not None:
            games.seed(int(self.np_random.integers(2**63)) if seed is None else seed)
        games.reset(boards=None if given is None else board[None])
        values = {key: value[0] for key, value in games.values.items()}
        level = given or games.level(0)
        counts = {key: int(values[key]) for key in COUNTS}
        self._level = {key: int(values[key]) for key in values if key not in (*COUNTS, "level")}
        return games.arrays["observations"][0].copy(), {"level": level, **counts, **self._level}

    def step(self, action: int | np.integer[Any]) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Walk or push one cell up (0), down (1), left (2) or right (3); a blocked step changes nothing."""
        games = self.games
        reward, terminated, on_goals, moves, pushes = games.step_first(action)
        info = {"boxes_on_goals": on_goals, "moves": moves, "pushes": pushes, **self._level}
        return games.arrays["observations"][0].copy(), reward, terminated, False, info

    def render(self) -> NDArray[np.uint8] | str | None:
        """The board in this environment's ``render_mode``; None without one."""
        return None if self.render_mode is None else render(self.games.boards[0], self.render_mode)

    def close(self) -> None:
        """End the work that makes levels in the background."""
        self.games.close()


def check_render_mode(mode: str | None) -> str | None:
    """The render mode, if there is such a one.

    >>> check_render_mode("human")
    Traceback (most recent call last):
        ...
    maskoban.errors.MaskobanError: render_mode: expected None, rgb_array or ansi, got 'human'
    """
    if mode is not None and mode not in METADATA["render_modes"]:
        raise MaskobanError(f"render_mode: expected None, rgb_array or ansi, got {mode!r}")
    return mode


def render(board: Tokens, mode: str) -> NDArray[np.uint8] | str:
    """A picture of 32 pixels a cell as (rows, columns, 3), or with ``ansi`` a letter a cell.

    >>> print(render(np.array([[0, 2, 3, 4]], np.uint8), "ansi"))
    #@$.
    """
    if mode == "ansi":
        return str(Level(board))
    from maskoban.pictures import board_image  # imported here: training needs no pictures

    return np.array(board_image(board).convert("RGB"))
