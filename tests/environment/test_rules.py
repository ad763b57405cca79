"""Both environments against the rules in plain Python, which share no code with the native core."""

from __future__ import annotations

import os
import pickle
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskoban.boards import BOX, BOX_ON_GOAL, Level, Tokens
from maskoban.environment import ACTIONS, LevelSet, SokobanEnv, SokobanVectorEnv
from maskoban.environment.games import Games
from maskoban.solving.replay import IllegalStepError, play
from tests.waiting import LIMIT

from . import reference
from .soak import LEVELS, check_play
from .strategies import actions, playable


@dataclass
class Expected:
    """What one step must show."""

    board: Tokens
    reward: float
    terminated: bool
    boxes_on_goals: int
    moves: int
    pushes: int


def by_the_rules(board: Tokens, wishes: list[int]) -> list[Expected]:
    """The game up to its end, played by ``replay``: a step is a walk if that is legal, else a push, else nothing."""
    steps: list[Expected] = []
    moves = pushes = 0
    for wish in wishes:
        letter = ACTIONS[wish][0]
        after = board
        for candidate in (letter, letter.upper()):
            try:
                _, after = play(board, candidate)
            except IllegalStepError:
                continue
            moves += 1
            pushes += candidate.isupper()
            break
        on_goals = int((after == BOX_ON_GOAL).sum())
        solved = BOX not in after
        reward = -0.1 + on_goals - int((board == BOX_ON_GOAL).sum()) + (10 if solved else 0)
        steps.append(Expected(after, reward, solved, on_goals, moves, pushes))
        board = after
        if solved:
            break
    return steps


@settings(deadline=None, max_examples=300)
@given(playable(), actions)
def test_the_plain_environment_plays_by_the_rules(board: Tokens, wishes: list[int]) -> None:
    env = SokobanEnv(levels=[board])
    seen, info = env.reset(seed=0)
    assert np.array_equal(seen, board)
    assert info["level"] == Level(board, title="level 0")
    for wish, expected in zip(wishes, by_the_rules(board, wishes), strict=False):
        seen, reward, terminated, truncated, info = env.step(wish)
        assert np.array_equal(seen, expected.board)
        assert np.isclose(reward, expected.reward)
        assert (terminated, truncated) == (expected.terminated, False)
        assert info == {
            "boxes_on_goals": expected.boxes_on_goals,
            "moves": expected.moves,
            "pushes": expected.pushes,
            "level_index": 0,
            "level_plays": 1,
        }


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(playable(), actions), min_size=1, max_size=5))
def test_the_vectorised_environment_plays_by_the_rules(games: list[tuple[Tokens, list[int]]]) -> None:
    boards = [board for board, _ in games]
    envs = SokobanVectorEnv(len(games), levels=boards, max_episode_steps=-1)
    seen, _ = envs.reset(seed=0, options={"level": boards})
    for (board, _), start in zip(games, seen, strict=True):
        assert np.array_equal(start[: board.shape[0], : board.shape[1]], board)
        assert start.astype(int).sum() == board.astype(int).sum(), "filled up with anything but wall"
    expected = [by_the_rules(start, wishes) for start, (_, wishes) in zip(seen, games, strict=True)]
    for step in range(max(map(len, expected))):
        chosen = [wishes[step] if step < len(wishes) else 0 for _, wishes in games]
        seen, rewards, terminated, truncated, infos = envs.step(np.array(chosen))
        for i, steps in enumerate(expected):
            if step < len(steps):
                assert np.array_equal(seen[i], steps[step].board)
                assert np.isclose(rewards[i], steps[step].reward)
                assert (terminated[i], truncated[i]) == (steps[step].terminated, False)
                for key in ("boxes_on_goals", "moves", "pushes"):
                    assert infos[key][i] == getattr(steps[step], key)


@settings(deadline=None, max_examples=300)
@given(playable(), actions)
def test_the_reference_in_numpy_plays_by_the_rules(board: Tokens, wishes: list[int]) -> None:
    for wish, expected in zip(wishes, by_the_rules(board, wishes), strict=False):
        (board,), (reward,), (solved,) = reference.step(board[None], np.array([wish]))
        assert np.array_equal(board, expected.board)
        assert np.isclose(reward, expected.reward)
        assert solved == expected.terminated


@pytest.mark.parametrize("kind", ["tokens", "planes", "boxoban", "rgb"])
@pytest.mark.parametrize("threads", [1, 3])
def test_half_a_million_random_steps_go_by_the_rules(kind: Any, threads: int) -> None:
    assert check_play(kind, threads, steps=500_000) > 100  # `python -m tests.environment.soak` plays more


@pytest.mark.parametrize(("n", "threads"), [(50, 1), (600, 2)])  # a thread takes 256 games at a time
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_many_steps_in_one_call_are_the_same_as_one_call_a_step(mode: str, n: int, threads: int) -> None:
    def made() -> SokobanVectorEnv:
        return SokobanVectorEnv(
            n, LEVELS, "planes", max_episode_steps=30, autoreset_mode=mode, threads=threads
        )

    one, many = made(), made()
    one.reset(seed=5)
    many.reset(seed=5)
    chosen = np.random.default_rng(6).integers(4, size=(300, n))
    steps = []
    for action in chosen:
        *arrays, last = one.step(action)
        steps.append([array.copy() for array in arrays[1:]])
    observations, *rows, infos = many.step_many(chosen)
    assert np.array_equal(observations, arrays[0])
    for mine, theirs in zip(rows, zip(*steps, strict=True), strict=True):
        assert np.array_equal(mine, np.stack(theirs))
    assert infos.keys() == last.keys()
    for key in infos.keys() - {"final_info"}:
        assert np.array_equal(infos[key], last[key])


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the threads of the process")
def test_threads_sleep_between_steps() -> None:
    envs = SokobanVectorEnv(1024, LEVELS, threads=3)
    envs.reset(seed=5)
    before = set(os.listdir("/proc/self/task"))
    envs.step_many(10)
    threads = set(os.listdir("/proc/self/task")) - before
    assert len(threads) == 2
    deadline = time.monotonic() + LIMIT
    while any(state_of(thread) != "S" for thread in threads):
        assert time.monotonic() < deadline
    envs.step_many(10)  # and they wake up


def state_of(thread: str) -> str:
    """R where a thread runs, S where it sleeps."""
    return Path(f"/proc/self/task/{thread}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_threads_start_again_in_a_forked_process() -> None:
    envs, same = (SokobanVectorEnv(600, LEVELS, threads=threads) for threads in (2, 1))
    for each in (envs, same):
        each.reset(seed=5)
        each.step_many(20)
    child = os.fork()
    if child == 0:
        agrees = np.array_equal(envs.step_many(20)[1], same.step_many(20)[1])
        os._exit(0 if agrees else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(envs.step_many(20)[1], same.step_many(20)[1])


def test_random_steps_depend_on_the_seed_only() -> None:
    def observed(seed: int, *lengths: int) -> np.ndarray:
        envs = SokobanVectorEnv(20, LEVELS, max_episode_steps=15)
        envs.reset(seed=seed)
        rewards = [envs.step_many(length)[1] for length in lengths]
        assert np.unique(np.concatenate(rewards).round(1)).tolist() == [-1.1, -0.1, 0.0, 0.9, 10.9]
        return envs.games.boards.copy()

    assert np.array_equal(observed(3, 400), observed(3, 150, 250))
    assert not np.array_equal(observed(3, 400), observed(4, 400))


def rewards_of(board: str, wishes: str) -> list[float]:
    """The rewards of a game, its actions written as in LURD."""
    env = SokobanEnv(levels=[board])
    env.reset(seed=0)
    return [env.step("udlr".index(letter))[1] for letter in wishes]


def test_the_usual_rewards() -> None:
    board = """
    ########
    #@$.. $#
    ########
    """.replace("    ", "")
    # Onto a goal, from goal to goal, off it, and a push that nothing comes of.
    assert np.allclose(rewards_of(board, "rrrr"), [0.9, -0.1, -1.1, -0.1])
    # The last box brings its own point and ten for all of them; a step into a wall costs as much as any other.
    assert np.allclose(rewards_of("#@$.#", "lr"), [-0.1, 10.9])


@pytest.mark.parametrize("cell", [-1, 12, 2**31 - 1])
def test_a_player_outside_its_board_is_refused(cell: int) -> None:
    games = Games(1, LevelSet(["#@$.#"]))
    games.arrays["games"][0, 5] = cell
    with pytest.raises(ValueError, match="outside its board"):
        pickle.loads(pickle.dumps(games))
