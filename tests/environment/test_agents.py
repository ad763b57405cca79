"""Real agents: stable-baselines3 and a loop in the manner of CleanRL train for some seconds, and learn."""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

from maskoban.boards.synth import synthesize
from maskoban.environment import ID, LevelSet, SokobanEnv, SokobanVectorEnv, SynthLevels
from tests.waiting import LIMIT

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "environment_agent.py"

# One way is right in each of them, and an agent must look to know which.
CORRIDORS = ["#######\n#@ $ .#\n#######", "#######\n#. $ @#\n#######", "#######\n# .$ @#\n#######"]


def imported(name: str) -> Any:
    """The module; skipped where it is not installed, except in continuous integration."""
    if importlib.util.find_spec(name) is None and os.environ.get("CI") != "true":
        pytest.skip(f"needs {name}")
    return importlib.import_module(name)


@pytest.fixture
def sb3(one_thread: None) -> ModuleType:
    """stable-baselines3."""
    module: ModuleType = imported("stable_baselines3")
    return module


@pytest.fixture
def script(one_thread: None) -> ModuleType:
    """benchmarks/environment_agent.py."""
    spec = importlib.util.spec_from_file_location("environment_agent", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


def made(**settings: Any) -> Any:
    from maskoban.environment.sb3 import SokobanVecEnv

    return SokobanVecEnv(**settings)


@pytest.mark.parametrize("observation", ["tokens", "planes", "boxoban", "rgb"])
def test_the_checker_of_stable_baselines3_finds_nothing(sb3: ModuleType, observation: Any) -> None:
    checker = imported("stable_baselines3.common.env_checker")
    checker.check_env(SokobanEnv(CORRIDORS, observation), warn=False)


@pytest.mark.parametrize("observation", ["tokens", "planes"])
def test_the_adapter_does_what_their_vector_of_environments_does(sb3: ModuleType, observation: str) -> None:
    vec_env = imported("stable_baselines3.common.vec_env")
    monitor = imported("stable_baselines3.common.monitor").Monitor
    levels = LevelSet(synthesize(20, 5, 6, boxes=1, seed=2))
    settings: dict[str, Any] = {"levels": levels, "observation": observation, "max_episode_steps": 12}
    theirs = vec_env.DummyVecEnv([lambda: monitor(gymnasium.make(ID, **settings))] * 5)
    mine = made(num_envs=5, **settings)
    assert (mine.observation_space, mine.action_space) == (theirs.observation_space, theirs.action_space)
    for each in (mine, theirs):
        each.seed(3)
    assert np.array_equal(mine.reset(), theirs.reset())
    ended = 0
    for actions in np.random.default_rng(4).integers(4, size=(200, 5)):
        (observations, rewards, dones, infos), expected = mine.step(actions), theirs.step(actions)
        assert np.array_equal(observations, expected[0])
        assert np.array_equal(rewards, expected[1])
        assert np.array_equal(dones, expected[2])
        for info, other in zip(infos, expected[3], strict=True):
            assert info.get("TimeLimit.truncated", False) == other["TimeLimit.truncated"]
            assert ("terminal_observation" in info) == ("terminal_observation" in other)
            if "terminal_observation" in info:
                ended += 1
                assert np.array_equal(info["terminal_observation"], other["terminal_observation"])
                assert info["moves"] == other["moves"]
                assert info["episode"]["r"] == pytest.approx(other["episode"]["r"], abs=1e-5)
                assert info["episode"]["l"] == other["episode"]["l"]
    assert ended > 50
    assert mine.get_attr("num_envs", [0, 1]) == [5, 5]
    assert mine.env_is_wrapped(monitor) == [True] * 5
    assert mine.env_is_wrapped(gymnasium.wrappers.TimeLimit) == [False] * 5


def test_pictures_of_the_adapter(sb3: ModuleType) -> None:
    envs = made(num_envs=4, levels=CORRIDORS, render_mode="rgb_array")
    envs.reset()
    assert [picture.shape for picture in envs.get_images()] == [(3 * 32, 7 * 32, 3)] * 4
    assert envs.render().shape == (2 * 3 * 32, 2 * 7 * 32, 3)


def test_ppo_of_stable_baselines3_learns(sb3: ModuleType) -> None:
    evaluate = imported("stable_baselines3.common.evaluation").evaluate_policy
    envs = made(num_envs=32, levels=CORRIDORS, observation="planes", max_episode_steps=10)
    agent = sb3.PPO(
        "MlpPolicy", envs, n_steps=16, batch_size=128, n_epochs=4, learning_rate=3e-3, seed=1, device="cpu"
    )
    before, _ = evaluate(agent, envs, n_eval_episodes=200, deterministic=False)
    agent.learn(16 * 32 * 20)
    after, _ = evaluate(agent, envs, n_eval_episodes=200, deterministic=False)
    assert before < 6
    assert after > 9, "it solves nearly all of them"


def test_the_image_policy_of_stable_baselines3_trains(sb3: ModuleType) -> None:
    envs = made(num_envs=4, levels=synthesize(5, 6, 6, 1, seed=1), observation="rgb", pixels=6)
    agent = sb3.PPO("CnnPolicy", envs, n_steps=8, batch_size=32, n_epochs=1, seed=1, device="cpu")
    agent.learn(64)
    assert agent.num_timesteps == 64


def test_dqn_of_stable_baselines3_remembers_what_was_before_a_step(sb3: ModuleType) -> None:
    envs = made(num_envs=2, levels=["#@   $.#"], max_episode_steps=20)
    agent = sb3.DQN("MlpPolicy", envs, learning_starts=1000, buffer_size=200, seed=1, device="cpu")
    agent.learn(100)
    kept = agent.replay_buffer
    for before, after in zip(kept.observations[: kept.pos], kept.next_observations[: kept.pos], strict=True):
        moved = (before != after).any((1, 2))
        assert set(np.unique((before != after).sum((1, 2))[moved])) <= {2, 3}, (
            "a move changes two or three cells"
        )
    assert (kept.observations[: kept.pos] != kept.next_observations[: kept.pos]).any()


def test_a_loop_in_the_manner_of_cleanrl_learns(script: ModuleType) -> None:
    torch = imported("torch")
    torch.manual_seed(1)
    levels = LevelSet(CORRIDORS)
    config = script.Config(num_envs=64, steps=16, width=8, minibatch=256, learning_rate=3e-3)
    envs = SokobanVectorEnv(64, levels, "planes", max_episode_steps=10, autoreset_mode="SameStep")
    agent = script.Agent(7, *levels.shape, 4, config.width)
    before = np.mean([script.share_solved(agent, levels, 10, seed) for seed in range(50)])
    for _, _update in zip(range(30), script.train(config, envs, agent), strict=False):
        pass
    after = np.mean([script.share_solved(agent, levels, 10, seed) for seed in range(50)])
    assert before < 0.6
    assert after > 0.9


def test_the_script_measures_a_learning_curve(script: ModuleType) -> None:
    config = script.Config(minutes=0.01, size=6, num_envs=8, steps=4, width=4, minibatch=16, test_levels=5)
    first, *_, last = script.run(config)
    assert first["steps"] == 0
    assert last["steps"] > 0
    assert 0 <= last["test"] <= 1
    assert last["boards"] > 0
    assert last["waits"] == 0


def test_the_environment_of_pufferlib_plays_the_same_games() -> None:
    if importlib.util.find_spec("pufferlib") is None:  # its package on PyPI downloads more while it is built
        pytest.skip("needs pufferlib, 3.0 or later")
    from maskoban.environment.puffer import SokobanPufferEnv

    levels = LevelSet(synthesize(50, 7, 7, 1))
    envs = SokobanVectorEnv(64, levels, "planes", autoreset_mode="SameStep", max_episode_steps=30)
    puffer = SokobanPufferEnv(64, levels, "planes", max_episode_steps=30)
    envs.reset(seed=3)
    puffer.reset(seed=3)
    said = []
    for actions in np.random.default_rng(0).integers(4, size=(200, 64)).astype(np.int32):
        *arrays, infos = puffer.step(actions)
        said += infos
        assert arrays[0] is puffer.observations
        for mine, theirs in zip(arrays, envs.step(actions)[:4], strict=True):
            assert np.allclose(mine, theirs)
    assert max(info["episode_length"] for info in said) == 30
    assert max(info["solved"] for info in said) > 0


def test_environments_in_processes_of_gymnasium() -> None:
    levels = SynthLevels(6, 6, boxes=1)
    envs = gymnasium.make_vec(ID, 3, "async", {"context": "spawn"}, levels=levels, observation="planes")
    try:
        envs.reset_async(seed=5)
        seen, _ = envs.reset_wait(timeout=LIMIT)
        for i in range(3):
            assert np.array_equal(seen[i], SokobanEnv(levels, "planes").reset(seed=5 + i)[0])
    finally:
        envs.close(terminate=True)


def test_a_vector_environment_can_be_pickled() -> None:
    envs = SokobanVectorEnv(8, synthesize(30, 6, 6, 1, seed=1), "boxoban", max_episode_steps=7, threads=2)
    envs.reset(seed=1)
    envs.step_many(20)
    copied = pickle.loads(pickle.dumps(envs))
    for actions in np.random.default_rng(0).integers(4, size=(50, 8)):
        mine, theirs = envs.step(actions), copied.step(actions)
        for one, other in zip(mine[:4], theirs[:4], strict=True):
            assert np.array_equal(one, other)
        assert all(np.array_equal(mine[4][key], theirs[4][key]) for key in mine[4])
    assert not np.shares_memory(mine[0], theirs[0])
