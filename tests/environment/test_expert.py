"""The solver as a teacher: it solves what can be solved, from anywhere, and its episodes are what the rules say."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from maskoban import MaskobanError
from maskoban.boards.synth import synthesize
from maskoban.environment import (
    BOXOBAN_ACTIONS,
    ID,
    Expert,
    LevelSet,
    SokobanEnv,
    SokobanVectorEnv,
    SynthLevels,
    solved_episodes,
)
from maskoban.solving.replay import play

from . import reference

LEVELS = LevelSet(synthesize(40, 7, 7, 2, seed=8), order="sequential")


def test_it_solves_every_level_with_the_fewest_pushes() -> None:
    env = gymnasium.make(ID, levels=LEVELS, max_episode_steps=500, optimal_pushes=True)
    expert = Expert(env)
    for _ in range(len(LEVELS)):
        _, info = env.reset()
        terminated = truncated = False
        while not (terminated or truncated):
            _, _, terminated, truncated, info = env.step(expert())
        assert terminated
        assert expert.solvable.all()
        assert info["pushes"] == info["optimal_pushes"]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_it_plays_many_environments_at_once_whatever_they_observe(mode: str) -> None:
    envs = SokobanVectorEnv(16, LEVELS, "boxoban", autoreset_mode=mode, actions=BOXOBAN_ACTIONS)
    envs.reset(seed=0)
    expert = Expert(envs)
    solved = cut = 0
    for _ in range(100):
        _, _, terminated, truncated, _ = envs.step(expert())
        solved, cut = solved + int(terminated.sum()), cut + int(truncated.sum())
    assert solved > len(LEVELS)
    assert cut == 0


def test_it_finds_a_new_way_after_actions_of_another() -> None:
    env = SokobanEnv(["########\n#@ $  .#\n#      #\n########"])
    env.reset(seed=0)
    expert = Expert(env)
    assert expert() == 3
    assert expert() == 3, "as long as nothing happens the answer is the same"
    env.step(1)  # down
    env.step(3)
    while not env.step(expert())[2]:
        assert expert.solvable.tolist() == [True]


def test_it_may_forget_what_it_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expert, "MEMORY", 10)
    envs = SokobanVectorEnv(16, LEVELS)
    envs.reset(seed=0)
    expert = Expert(envs)
    assert sum(int(envs.step(expert())[2].sum()) for _ in range(60)) > 16


def test_it_says_where_there_is_no_solution() -> None:
    env = SokobanEnv(["#####\n#@ .#\n#   #\n# $ #\n#####"])
    env.reset(seed=0)
    expert = Expert(env)
    assert expert() == 0
    assert expert.solvable.tolist() == [False]


def test_solved_episodes_are_what_the_rules_say() -> None:
    episodes = list(solved_episodes(LEVELS, "planes"))
    assert [episode.level_index for episode in episodes] == list(range(len(LEVELS)))
    for episode, board, solution in zip(episodes, LEVELS.boards, LEVELS.solutions, strict=True):
        boards = np.stack([*play(board, solution)])
        assert np.array_equal(episode.observations, reference.observe("planes", boards))
        assert len(episode.actions) == len(episode.rewards) == len(solution)
        _, rewards, solved = reference.step(boards[:-1], episode.actions)
        assert np.allclose(episode.rewards, rewards)
        assert solved.tolist() == [False] * (len(solution) - 1) + [True]


def test_levels_without_a_solution_are_left_out() -> None:
    assert [episode.level_index for episode in solved_episodes(["#@.$ #", "#@ $.#"])] == [1]


def test_what_an_expert_cannot_do() -> None:
    with pytest.raises(
        MaskobanError, match="actions: an expert needs up, down, left and right, got up, down"
    ):
        Expert(SokobanEnv(LEVELS, actions=["up", "down"]))
    with pytest.raises(MaskobanError, match="env: expected a Sokoban environment, got CartPoleEnv"):
        Expert(gymnasium.make("CartPole-v1"))
    with pytest.raises(MaskobanError, match="levels: expected a set of levels, not endless ones"):
        next(solved_episodes(SynthLevels(6, 6, boxes=1)))
