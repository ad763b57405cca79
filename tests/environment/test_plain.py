"""The plain environment: what gymnasium expects of it, and what a person can get wrong."""

from __future__ import annotations

import copy
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
from maskoban.environment import ID, LevelSet, SokobanEnv

ROOM = """
#######
#@ $ .#
#   $.#
#######
"""
CORRIDORS = [f"#@{' ' * walk}$.#" for walk in range(20)]


@pytest.mark.parametrize("observation", ["tokens", "planes", "rgb"])
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


def test_what_an_agent_sees() -> None:
    seen = {kind: SokobanEnv(["#@$*.+"[:5]], kind).reset(seed=0)[0] for kind in ("tokens", "planes", "rgb")}
    assert seen["tokens"].tolist() == [[0, 2, 3, 5, 4]]
    assert seen["planes"].shape == (7, 1, 5)
    assert np.array_equal(seen["planes"].argmax(0), seen["tokens"])
    assert (seen["planes"].sum(0) == 1).all()
    assert seen["rgb"].tolist() == [
        [[0, 0, 0], [160, 212, 56], [142, 121, 56], [254, 95, 56], [254, 126, 125]]
    ]


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
    assert refusal("#####\n#@$.#\n#####").endswith("a level drawn as text goes into a list: levels=[text]")
    named = [Level.parse("#@$.#"), Level(Level.parse("#@$ #").tokens, title="lost")]
    assert refusal(named) == "level 1 (lost) cannot be played: 1 box but 0 goals"
    assert refusal([]) == "no levels to play; expected at least one"
    assert refusal(Level.parse("#@$.#")).endswith("not one Level")
    assert refusal(["#$.#"]) == "level 0 cannot be played: no player"
    assert refusal(["#@$.#", "#@*#"]) == "level 1 cannot be played: every box stands on a goal already"


def test_what_else_can_be_wrong() -> None:
    room = [ROOM]
    too_large = "a level of 1x9 does not fit this environment's boards of 4x7"
    assert refusal(room, options={"level": "#@  $  .#"}) == too_large
    assert refusal(room, options={"level": "#@?.#"}) == "the level cannot be played: masked cells left"
    assert refusal(room, render_mode="svg") == "a render mode is None, rgb_array or ansi, not 'svg'"
    assert refusal(room, observation="smell") == "an observation is one of tokens, planes, rgb, not 'smell'"
    env = SokobanEnv(room)
    with pytest.raises(MaskobanError, match="no player"):
        env.reset(options={"level": "#$.#"})  # begins nothing
    with pytest.raises(MaskobanError, match="reset the environment before its first step"):
        env.step(0)
    env.reset()
    with pytest.raises(MaskobanError, match=r"an action is 0 \(up\), .* not 4"):
        env.step(4)
    with pytest.raises(MaskobanError, match="expected 1 whole numbers as actions"):
        env.step(1.5)  # type: ignore[arg-type]


def test_without_gymnasium_the_sentence_says_what_to_install() -> None:
    code = "import sys\nsys.modules['gymnasium'] = None\nimport maskoban.environment"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MaskobanError: the environment needs gymnasium: pip install 'maskoban[rl]'" in done.stderr


def test_environments_may_share_their_levels() -> None:
    levels = LevelSet(CORRIDORS)
    alone = titles(SokobanEnv(levels), 10, seed=1)
    env, other = SokobanEnv(levels), SokobanEnv(levels)
    other.reset(seed=1)
    assert titles(env, 10, seed=1) == alone
