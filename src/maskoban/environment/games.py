"""The games of an environment: arrays made once, and the native core that steps them in place (native/games.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from maskoban import _core
from maskoban.boards import TILES, Level, Tokens
from maskoban.environment.levels import NO_INDEX, Source, Supply
from maskoban.errors import MaskobanError

#: What the actions 0, 1, 2, 3 do, by default.
ACTIONS = ("up", "down", "left", "right")

#: The actions of PufferLib's Boxoban.
BOXOBAN_ACTIONS = ("stay", "down", "up", "left", "right")

#: All are uint8: ``tokens`` (h, w); ``planes`` (7, h, w), one a tile; ``boxoban`` (4, h, w): player, walls, boxes and
#: goals; ``rgb`` (h * pixels, w * pixels, 3).
Observation = Literal["tokens", "planes", "boxoban", "rgb"]
Observations = NDArray[np.uint8]
Flags = NDArray[np.bool_]
StepResult = tuple[Observations, NDArray[np.float64], Flags, Flags, dict[str, Any]]

#: The default limit of steps of an episode, and the largest one.
STEPS = 120
ENDLESS = 2**31 - 1

#: What every game counts; these are keys of ``info``.
COUNTS = ("boxes_on_goals", "moves", "pushes")

#: What is known of the level of every game; keys of ``info``, too.
_LEVEL_FACTS = ("level_index", "level_plays", "optimal_pushes")

_DIRECTIONS = ("up", "down", "left", "right", "stay")  # as numbered in native/play.hpp
_GAME = 8  # columns of a game, the first three of which are COUNTS
_MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)

# One pixel a cell, by token: the colours of gym-sokoban's tiny world, which agents trained elsewhere know.
_COLOURS = [
    (0, 0, 0), (243, 248, 238), (160, 212, 56), (142, 121, 56), (254, 126, 125), (254, 95, 56), (219, 212, 56),
]  # fmt: skip


class Games:
    """``n`` games on levels of a source; `SokobanEnv` has one, `SokobanVectorEnv` has many.

    Arrays have a row a game. They are made once, and every step writes to them; infos are views of them.

    >>> from maskoban.environment.levels import LevelSet
    >>> games = Games(1, LevelSet(["#@ $.#"]))
    >>> games.seed(0); games.reset()
    >>> games.step(np.array([3]))[1].tolist(), games.boards.tolist()
    ([-0.1], [[[0, 1, 2, 3, 4, 0]]])
    """

    def __init__(
        self,
        n: int,
        source: Source,
        observation: Observation = "tokens",
        pixels: int = 1,
        actions: Sequence[str] = ACTIONS,
        limit: int = ENDLESS,
        mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        optimal_pushes: bool = False,
        observations: Observations | None = None,
    ) -> None:
        if not actions or set(actions) - set(_DIRECTIONS):
            raise MaskobanError(f"actions: expected names out of {', '.join(_DIRECTIONS)}, got {actions!r}")
        if not 1 <= threads <= 256:
            raise MaskobanError(f"threads: expected 1 to 256, got {threads}")
        self.source, self.actions, self.optimal_pushes = source, tuple(actions), optimal_pushes
        self.supply: Supply | None = None
        self.space = observation_space(observation, source.shape, pixels)
        self.action_space = spaces.Discrete(len(actions))
        self.boards: Tokens = np.zeros((n, *source.shape), np.uint8)
        if observations is None:
            observations = np.zeros((n, *self.space.shape), np.uint8)
        if observation == "tokens":
            self.boards = observations  # the boards are the observations: a step writes them once
        same_step = mode is AutoresetMode.SAME_STEP
        self.arrays: dict[str, NDArray[Any]] = {
            "tokens": self.boards,
            "observations": observations,
            "levels": np.zeros((n, *source.shape), np.uint8),
            "games": np.zeros((n, _GAME), np.int32),
            "rewards": np.zeros(n),
            **{name: np.zeros(n, bool) for name in ("terminated", "truncated", "ended", "began")},
            "level_facts": np.zeros((n, len(_LEVEL_FACTS)), np.int32),
            "seeds": np.zeros(n, np.uint64),
            "final_observations": np.zeros_like(observations) if same_step else np.zeros(0, np.uint8),
            "final_games": np.zeros((n if same_step else 0, _GAME), np.int32),
            "final_level_facts": np.zeros((n if same_step else 0, len(_LEVEL_FACTS)), np.int32),
        }
        self._settings: dict[str, Any] = {
            "kind": get_args(Observation).index(observation),
            "pixels": pixels,
            "tiles": _tiles(pixels),
            "directions": [_DIRECTIONS.index(action) for action in actions],
            "limit": limit,
            "mode": _MODES.index(mode),
            "threads": threads,
        }
        self._connect()

    def _connect(self) -> None:
        """Hand the arrays to the native core."""
        self.values = infos = self._infos("") | {"level": _read_only(self.arrays["levels"])}
        everyone = _read_only(np.ones(len(self.boards), bool))
        infos = infos | {f"_{key}": everyone for key in infos} | {"_level": _read_only(self.arrays["began"])}
        ended = _read_only(self.arrays["ended"])
        final = self._infos("final_")
        final_infos = infos | {
            "final_obs": self.arrays["final_observations"],
            "_final_obs": ended,
            "final_info": final | {f"_{key}": ended for key in final},
            "_final_info": ended,
        }
        self._native = _core.Games(self.arrays, infos, final_infos, **self._settings)
        if self.supply is not None:
            self._native.set_levels(self.supply.arrays, self.supply.window, self.supply.reuse)

    def _infos(self, which: str) -> dict[str, NDArray[Any]]:
        games, facts = self.arrays[f"{which}games"], self.arrays[f"{which}level_facts"]
        counts = {key: _read_only(games[:, i]) for i, key in enumerate(COUNTS)}
        keys = _LEVEL_FACTS if self.optimal_pushes else _LEVEL_FACTS[:-1]
        return counts | {key: _read_only(facts[:, i]) for i, key in enumerate(keys)}

    def __getstate__(self) -> dict[str, Any]:
        return {
            key: value for key, value in self.__dict__.items() if key not in ("_native", "values", "boards")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        if self._settings["kind"] == 0:
            self.arrays["tokens"] = self.arrays["observations"]
        self.boards = self.arrays["tokens"]
        self._connect()

    def seed(self, seed: int, seeds: Sequence[int] | None = None) -> None:
        """Begin the source's levels of this seed; slot i chooses among them by ``seeds[i]``, or ``seed + i``."""
        self.close()
        n = len(self.boards)
        self.supply = self.source.start(seed, n, self.optimal_pushes)
        self._native.set_levels(self.supply.arrays, self.supply.window, self.supply.reuse)
        self.arrays["seeds"][:] = [slot % 2**64 for slot in seeds or range(seed, seed + n)]
        self.arrays["games"][:] = 0

    def reset(self, mask: NDArray[np.bool_] | None = None, boards: Tokens | None = None) -> None:
        """Begin episodes in the slots of the mask, or in all: on levels of the source, or on these boards."""
        supply = self._started()
        if boards is None and supply.due:
            supply.refresh()
        self._native.reset(np.ones(len(self.boards), bool) if mask is None else mask, boards)

    def step(self, actions: NDArray[Any]) -> StepResult:
        """One step of all games: observations, rewards, terminated, truncated, infos."""
        try:
            result = self._native.step(actions)
        except TypeError:
            result = self._native.step(self._checked(actions, (len(self.boards),)))
        except ValueError as error:
            raise MaskobanError(str(error)) from None
        if result is None:
            self._started().refresh()
            return self.step(actions)
        return result

    def step_many(self, actions: NDArray[Any] | int) -> StepResult:
        """Several steps: with actions (k, n), or with k random ones. All but observations and infos are (k, n)."""
        supply, n = self._started(), len(self.boards)
        given = None
        if not isinstance(actions, int):
            actions = np.asarray(actions)
            given = self._checked(actions, (len(actions) if actions.ndim else 0, n))
        k = actions if isinstance(actions, int) else len(actions)
        rewards, terminated, truncated = np.empty((k, n)), np.empty((k, n), bool), np.empty((k, n), bool)
        done = 0
        try:
            while (done := self._native.step_many(done, given, rewards, terminated, truncated)) < k:
                supply.refresh()
        except ValueError as error:
            raise MaskobanError(str(error)) from None
        return self.arrays["observations"], rewards, terminated, truncated, self._native.infos()

    def step_first(self, action: int | np.integer[Any]) -> tuple[float, bool, int, int, int]:
        """One step of the first game: reward, terminated, and the `COUNTS`."""
        try:
            return self._native.step_first(action)
        except TypeError:
            raise MaskobanError(f"action: expected a whole number, got {action!r}") from None
        except ValueError as error:
            raise MaskobanError(str(error)) from None

    def level(self, slot: int) -> Level:
        """The level that is played in a slot."""
        number, board = int(self.values["level_index"][slot]), self.arrays["levels"][slot].copy()
        return Level(board) if number == NO_INDEX else self._started().level(number, board)

    def close(self) -> None:
        """End the work that makes levels in the background."""
        if self.supply is not None:
            self.supply.close()

    def _started(self) -> Supply:
        if self.supply is None:
            raise MaskobanError("reset the environment before its first step")
        return self.supply

    def _checked(self, actions: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
        actions = np.asarray(actions)
        if actions.shape != shape or actions.dtype.kind not in "iu":
            raise MaskobanError(
                f"actions: expected whole numbers of shape {shape}, got {actions.dtype} of shape {actions.shape}"
            )
        return np.ascontiguousarray(actions, np.int64)


def observation_space(kind: Observation, shape: tuple[int, int], pixels: int = 1) -> spaces.Box[np.uint8]:
    """The space of one observation of a board of this shape.

    >>> observation_space("rgb", (10, 10), pixels=8)
    Box(0, 255, (80, 80, 3), uint8)
    """
    if kind not in get_args(Observation):
        raise MaskobanError(f"observation: expected one of {', '.join(get_args(Observation))}, got {kind!r}")
    if pixels != 1 and (kind != "rgb" or not 1 <= pixels <= 64):
        raise MaskobanError(f"pixels: expected 1 to 64 for rgb, and 1 for other observations, got {pixels}")
    height, width = shape
    size, high = {
        "tokens": (shape, TILES - 1),
        "planes": ((TILES, *shape), 1),
        "boxoban": ((4, *shape), 1),
        "rgb": ((height * pixels, width * pixels, 3), 255),
    }[kind]
    return spaces.Box(0, high, size, np.uint8)


def _tiles(pixels: int) -> list[int]:
    """The pictures of the tiles, one after the other, as bytes."""
    if pixels == 1:
        return np.ravel(_COLOURS).tolist()
    from maskoban.pictures.tileset import PLAIN, sprite  # imported here: only large pixels need pictures

    pictures = [np.array(sprite(tile, PLAIN, pixels).convert("RGB")) for tile in range(TILES)]
    return np.ravel(pictures).tolist()


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
