"""The environment of one game: gymnasium's contract, observations, seeds and error messages."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from maskoban import Level, MaskobanError, write
from maskoban.environment import BOXOBAN_ACTIONS, ID, LevelSet, SokobanEnv

ROOM = """
#######
#@ $ .#
#   $.#
#######
"""
CORRIDORS = [f"#@{' ' * walk}$.#" for walk in range(20)]


@pytest.mark.parametrize("observation", ["tokens", "planes", "boxoban", "rgb"])
def test_gymnasiums_checker_finds_nothing_to_say(observation: str) -> None:
    env = gymnasium.make(ID, levels=[ROOM], observation=observation, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.parametrize("import_first", ["import maskoban.environment", "pass"])
def test_gymnasium_finds_it_by_its_name(import_first: str) -> None:
    name = ID if "import" in import_first else f"maskoban.environment:{ID}"
    code = f"import gymnasium\n{import_first}\nprint(gymnasium.make({name!r}, levels=['#@$.#']).reset(seed=1)[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[[0 2 3 4 0]]\n"


def test_an_episode_is_cut_off_after_120_steps_or_as_many_as_asked_for() -> None:
    asked: dict[str, Any]
    for asked, limit in (({}, 120), ({"max_episode_steps": None}, 120), ({"max_episode_steps": 7}, 7)):
        env, envs = (
            gymnasium.make(ID, levels=[ROOM], **asked),
            gymnasium.make_vec(ID, 1, levels=[ROOM], **asked),
        )
        env.reset(seed=0)
        envs.reset(seed=0)
        cut = [env.step(2)[3] for _ in range(limit)]
        assert cut == [False] * (limit - 1) + [True]
        assert cut == [bool(envs.step(np.array([2]))[3][0]) for _ in range(limit)]


def titles(env: gymnasium.Env, episodes: int, seed: int | None) -> list[str]:
    first = env.reset(seed=seed)[1]["level"].title
    return [first, *(env.reset()[1]["level"].title for _ in range(episodes - 1))]


def test_the_same_seed_gives_the_same_sequence_of_levels() -> None:
    env, other = SokobanEnv(CORRIDORS), SokobanEnv(CORRIDORS)
    once = titles(env, 30, seed=5)
    assert once == titles(other, 30, seed=5) == titles(env, 30, seed=5)
    assert once != titles(env, 30, seed=6)
    assert len(set(once)) > 10
    assert titles(SokobanEnv(CORRIDORS), 30, None) != titles(SokobanEnv(CORRIDORS), 30, None)


@pytest.mark.parametrize("wish", [Level.parse("#@*$.#"), "#@*$.#", np.array([[0, 2, 5, 3, 4, 0]])])
def test_an_episode_on_a_level_of_ones_own(wish: Any) -> None:
    env = SokobanEnv([ROOM], render_mode="ansi")
    _, info = env.reset(options={"level": wish})
    assert info["level"] == Level.parse("#@*$.#")
    assert info["boxes_on_goals"] == 1
    # Filled up with wall to the size the environment has.
    assert env.render() == "#@*$.##\n#######\n#######\n#######"
    assert env.reset()[1]["level"] == Level(Level.parse(ROOM).tokens, title="level 0")


def test_what_an_agent_observes() -> None:
    observed = {
        kind: SokobanEnv(["#@$*.+"[:5]], kind).reset(seed=0)[0]
        for kind in ("tokens", "planes", "boxoban", "rgb")
    }
    assert observed["tokens"].tolist() == [[0, 2, 3, 5, 4]]
    assert observed["planes"].shape == (7, 1, 5)
    assert np.array_equal(observed["planes"].argmax(0), observed["tokens"])
    assert (observed["planes"].sum(0) == 1).all()
    player, walls, boxes, goals = observed["boxoban"].tolist()
    assert (player, walls) == ([[0, 1, 0, 0, 0]], [[1, 0, 0, 0, 0]])
    assert (boxes, goals) == ([[0, 0, 1, 1, 0]], [[0, 0, 0, 1, 1]])
    assert observed["rgb"].tolist() == [
        [[0, 0, 0], [160, 212, 56], [142, 121, 56], [254, 95, 56], [254, 126, 125]]
    ]


def test_rgb_has_as_many_pixels_a_cell_as_wanted() -> None:
    env = SokobanEnv([ROOM], "rgb", pixels=8)
    observed, _ = env.reset(seed=0)
    assert env.observation_space.shape == observed.shape == (4 * 8, 7 * 8, 3)
    tiles = {
        tile: observed[8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
        for (row, column), tile in np.ndenumerate(Level.parse(ROOM).tokens)
    }
    env.step(3)
    walked = env.step(3)[0]  # onto the box's left, which is pushed
    assert np.array_equal(walked[8:16, 8 * 4 : 8 * 5], tiles[3])
    assert np.array_equal(walked[8:16, 8 * 3 : 8 * 4], tiles[2])
    assert np.array_equal(walked[8:16, 8:16], tiles[1])


def test_actions_in_another_order() -> None:
    env = SokobanEnv(["###\n#@ \n#$ \n#. \n###"], actions=BOXOBAN_ACTIONS, render_mode="ansi")
    env.reset(seed=0)
    assert env.action_space.n == 5
    before = env.render()
    assert env.step(0)[1:3] == (-0.1, False)  # staying is a step, too
    assert env.render() == before
    assert env.step(1)[1:3] == (10.9, True)
    with pytest.raises(MaskobanError, match="actions: expected names out of up, down, left, right, stay"):
        SokobanEnv([ROOM], actions=["up", "jump"])


def test_a_picture_has_32_pixels_a_cell() -> None:
    env = SokobanEnv([ROOM], render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    assert isinstance(before, np.ndarray)
    assert (before.shape, before.dtype) == ((4 * 32, 7 * 32, 3), np.uint8)
    env.step(3)
    assert not np.array_equal(before, env.render())
    assert SokobanEnv([ROOM]).render() is None


def test_a_copy_goes_its_own_way() -> None:
    env = SokobanEnv([ROOM, "#@ $.#"], render_mode="ansi")
    env.reset(seed=0)
    fork = copy.deepcopy(env)
    before = env.render()
    fork.step(3)
    assert env.render() == before
    assert fork.render() != before
    assert titles(env, 5, None) == titles(fork, 5, None)


def refusal(*args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> str:
    """The sentence with which an environment, or its reset, is refused."""
    with pytest.raises(MaskobanError) as caught:
        SokobanEnv(*args, **kwargs).reset(options=options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_levels_that_cannot_be_had(tmp_path: Path) -> None:
    assert refusal(str(tmp_path / "none.sok")).endswith("none.sok: no such file or folder")
    (tmp_path / "letter.xsb").write_text("#####\n#@x.#\n#####\n")
    assert "letter.xsb, line 2" in refusal(tmp_path / "letter.xsb")
    write(tmp_path / "half.sok", [Level.parse("#@$.#"), Level.parse("#@$.?")])
    assert refusal(tmp_path / "half.sok").endswith("half.sok, level 1 cannot be played: masked cells left")
    assert refusal("#####\n#@$.#\n#####").endswith("got a level as text; put it into a list: levels=[text]")
    named = [Level.parse("#@$.#"), Level(Level.parse("#@$ #").tokens, title="lost")]
    assert refusal(named) == "level 1 (lost) cannot be played: 1 box but 0 goals"
    assert refusal([]) == "no levels to play; expected at least one"
    assert refusal(Level.parse("#@$.#")).endswith("got one Level")
    assert refusal(["#$.#"]) == "level 0 cannot be played: no player"
    assert refusal(["#@$.#", "#@*#"]) == "level 1 cannot be played: every box stands on a goal already"


def test_what_else_can_be_wrong() -> None:
    room = [ROOM]
    too_large = "a level of 1x9 does not fit this environment's boards of 4x7"
    assert refusal(room, options={"level": "#@  $  .#"}) == too_large
    assert refusal(room, options={"level": "#@?.#"}) == "the level cannot be played: masked cells left"
    assert refusal(room, render_mode="svg") == "render_mode: expected None, rgb_array or ansi, got 'svg'"
    assert refusal(room, observation="smell") == (
        "observation: expected one of tokens, planes, boxoban, rgb, got 'smell'"
    )
    env = SokobanEnv(room)
    with pytest.raises(MaskobanError, match="no player"):
        env.reset(options={"level": "#$.#"})  # begins nothing
    with pytest.raises(MaskobanError, match="reset the environment before its first step"):
        env.step(0)
    env.reset()
    with pytest.raises(MaskobanError, match="actions: expected 0 to 3, got 4"):
        env.step(4)
    with pytest.raises(MaskobanError, match=r"action: expected a whole number, got 1\.5"):
        env.step(1.5)  # type: ignore[arg-type]


def test_without_gymnasium_the_sentence_says_what_to_install() -> None:
    code = "import sys\nsys.modules['gymnasium'] = None\nimport maskoban.environment"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MaskobanError: the environment needs gymnasium: pip install 'maskoban[rl]'" in done.stderr


@pytest.mark.parametrize("observation", ["tokens", "planes"])
def test_a_pickled_environment_goes_on_where_it_was(observation: Any) -> None:
    env = SokobanEnv(CORRIDORS, observation)
    env.reset(seed=3)
    env.step(3)
    copied = pickle.loads(pickle.dumps(env))
    for action in (3, 0, 3, 3):
        mine, theirs = env.step(action), copied.step(action)
        assert np.array_equal(mine[0], theirs[0])
        assert mine[1:] == theirs[1:]
    assert titles(env, 5, None) == titles(copied, 5, None)


def test_environments_may_share_their_levels() -> None:
    levels = LevelSet(CORRIDORS)
    alone = titles(SokobanEnv(levels), 10, seed=1)
    env, other = SokobanEnv(levels), SokobanEnv(levels)
    other.reset(seed=1)
    assert titles(env, 10, seed=1) == alone
