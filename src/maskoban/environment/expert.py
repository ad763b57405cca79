"""The solver as a teacher: a policy that plays its solutions, and solved episodes as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Tokens
from maskoban.environment.env import SokobanEnv
from maskoban.environment.games import ACTIONS, Games, Observation, Observations
from maskoban.environment.levels import LevelSet
from maskoban.environment.pool import Levels, as_source
from maskoban.environment.vector import SokobanVectorEnv
from maskoban.errors import MaskobanError
from maskoban.solving.filters import FILTER_LIMITS
from maskoban.solving.replay import play
from maskoban.solving.solver import Limits, solve_many


class Expert:
    """A policy that plays solutions with the fewest pushes, from wherever a game stands.

    Call it for the next action (of a `SokobanEnv`) or actions (of a `SokobanVectorEnv`). It solves a board that is on
    none of its solutions so far. Where there is no solution, or none within ``limits``, the action is 0; ``solvable``
    says where that is not so.

    >>> env = SokobanEnv(["#@ $ .#"])
    >>> _ = env.reset(seed=0)
    >>> expert = Expert(env)
    >>> [env.step(expert())[2] for _ in range(3)]
    [False, False, True]
    """

    #: Boards that are remembered; then all are forgotten.
    MEMORY = 1_000_000

    def __init__(self, env: Any, limits: Limits = FILTER_LIMITS) -> None:
        self._env, self._limits = env.unwrapped, limits
        if not isinstance(self._env, SokobanEnv | SokobanVectorEnv):
            raise MaskobanError(f"env: expected a Sokoban environment, got {type(self._env).__name__}")
        self._games = self._env.games
        self._letters = _letters(self._games.actions)
        self._next: dict[
            bytes, str
        ] = {}  # the letter of the next step, by board; "" where nothing is to be done
        self._unsolved: set[bytes] = set()
        self.solvable = np.zeros(len(self._games.boards), bool)

    def __call__(self) -> Any:
        """The next action: a number for one environment, an array for many."""
        if len(self._next) > self.MEMORY:
            self._next, self._unsolved = {}, set()
        boards = self._games.boards
        keys = [board.tobytes() for board in boards]
        new = [i for i, key in enumerate(keys) if key not in self._next]
        if new:
            self._solve(boards[new])
        self.solvable[:] = [key not in self._unsolved for key in keys]
        actions = np.array([self._letters.get(self._next[key], 0) for key in keys])
        return int(actions[0]) if isinstance(self._env, SokobanEnv) else actions

    def _solve(self, boards: Tokens) -> None:
        for board, result in zip(boards, solve_many(boards, "pushes", limits=self._limits), strict=True):
            if not result.solved:
                self._unsolved.add(board.tobytes())
            letters = [*result.solution.lower(), ""]
            # What was there remains: steps of one solution lead to steps of the same or of an earlier one, never back.
            for position, letter in zip(play(board, result.solution), letters, strict=True):
                self._next.setdefault(position.tobytes(), letter)


class SolvedEpisode(NamedTuple):
    """An episode of the solver on one level."""

    level_index: int
    observations: Observations  # (steps + 1, ...): before every step, and after the last
    actions: NDArray[np.int64]  # (steps,)
    rewards: NDArray[np.float64]  # (steps,)


def solved_episodes(
    levels: Levels,
    observation: Observation = "tokens",
    *,
    pixels: int = 1,
    actions: Sequence[str] = ACTIONS,
) -> Iterator[SolvedEpisode]:
    """An episode for every level of a set that the solver solves, played with the fewest pushes: data to learn from.

    The solutions of a bulk dataset are in it already; those of other sets are found first, on all cores.

    >>> [episode.actions.tolist() for episode in solved_episodes(["#@ $.#", "#@$ .#"])]
    [[3, 3], [3, 3]]
    """
    source = as_source(levels)
    if not isinstance(source, LevelSet):
        raise MaskobanError("levels: expected a set of levels, not endless ones")
    games = Games(1, source, observation, pixels, actions)
    letters, observed = _letters(tuple(actions)), games.arrays["observations"]
    games.seed(0)
    for index, solution in enumerate(source.solutions):
        if not solution:
            continue
        games.reset(boards=source.boards[index : index + 1])
        taken = np.array([letters[letter] for letter in solution.lower()])
        seen, rewards = np.empty((len(taken) + 1, *games.space.shape), np.uint8), np.empty(len(taken))
        seen[0] = observed[0]
        for step, action in enumerate(taken.tolist()):
            rewards[step], *_ = games.step_first(action)
            seen[step + 1] = observed[0]
        yield SolvedEpisode(index, seen, taken, rewards)


def _letters(actions: Sequence[str]) -> dict[str, int]:
    """The action for every letter of a solution."""
    letters = {name[0]: number for number, name in enumerate(actions) if name != "stay"}
    if len(letters) != len(ACTIONS):
        raise MaskobanError(f"actions: an expert needs up, down, left and right, got {', '.join(actions)}")
    return letters
