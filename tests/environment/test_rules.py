"""Both environments against the rules in plain Python, which share no code with the native core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskoban import _core
from maskoban.boards import BOX, BOX_ON_GOAL, FLOOR, Level, Tokens
from maskoban.environment import ACTIONS, SokobanEnv, SokobanVectorEnv
from maskoban.solving.replay import IllegalStepError, play

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


@pytest.mark.parametrize(("row", "column"), [(-1, 0), (3, 0), (0, -1), (0, 4), (2**31 - 1, 0)])
def test_a_player_outside_its_board_is_refused(row: int, column: int) -> None:
    board, game = np.full((1, 3, 4), FLOOR, np.uint8), np.array([[row, column, 0, 0, 0, 0, 0]], np.int32)
    flags = np.zeros(1, bool)
    for action in range(4):
        with pytest.raises(ValueError, match="outside its board"):
            _core.step_games(
                board, game, np.array([action]), flags, 9, np.zeros(1), flags.copy(), flags.copy()
            )
    assert (board == FLOOR).all()
