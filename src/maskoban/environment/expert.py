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

    Call it for the next action (of a `SokobanEnv`) or actions (of a `SokobanVectorEnv`). It solves a board when an
    episode begins, and again when another action than its own was taken. Where there is no solution, or none within
    ``limits``, the action is 0; ``solvable`` says where that is not so.

    >>> env = SokobanEnv(["#@ $ .#"])
    >>> _ = env.reset(seed=0)
    >>> expert = Expert(env)
    >>> [env.step(expert())[2] for _ in range(3)]
    [False, False, True]
    """

    def __init__(self, env: Any, limits: Limits = FILTER_LIMITS) -> None:
        self._env, self._limits = env.unwrapped, limits
        if not isinstance(self._env, SokobanEnv | SokobanVectorEnv):
            raise MaskobanError(f"env: expected a Sokoban environment, got {type(self._env).__name__}")
        self._games = self._env.games
        n = len(self._games.boards)
        self._letters = _letters(self._games.actions)
        self._plans: list[_Plan | None] = [None] * n
        self.solvable = np.zeros(n, bool)

    def __call__(self) -> Any:
        """The next action: a number for one environment, an array for many."""
        boards = self._games.boards
        for i in (i for i, plan in enumerate(self._plans) if plan is not None):
            self._plans[i] = self._plans[i].at(boards[i])  # type: ignore[union-attr]
        lost = [i for i, plan in enumerate(self._plans) if plan is None]
        if lost:
            results = solve_many(boards[lost], "pushes", limits=self._limits)
            for i, result in zip(lost, results, strict=True):
                self._plans[i] = _Plan(boards[i], result.solution, result.solved)
        plans = [plan for plan in self._plans if plan is not None]
        self.solvable[:] = [plan.solved for plan in plans]
        actions = np.array([self._letters.get(plan.letter, 0) for plan in plans])
        return int(actions[0]) if isinstance(self._env, SokobanEnv) else actions


class _Plan:
    """A solution, all of its positions, and where on it a game stands."""

    def __init__(self, board: Tokens, solution: str, solved: bool) -> None:
        self._positions, self._solution, self._at, self.solved = [*play(board, solution)], solution, 0, solved

    def at(self, board: Tokens) -> _Plan | None:
        """This plan, if the board is where it stands or where its next step leads."""
        for step in (self._at, self._at + 1):
            if step < len(self._positions) and np.array_equal(self._positions[step], board):
                self._at = step
                return self
        return None

    @property
    def letter(self) -> str:
        return self._solution[self._at].lower() if self._at < len(self._solution) else ""


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
