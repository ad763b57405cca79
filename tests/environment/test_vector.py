"""The vectorised environment: like gymnasium's own vector of plain ones, step by step, in every autoreset mode."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from maskoban import Level, MaskobanError
from maskoban.environment import ID, SokobanEnv, SokobanVectorEnv

# Random play solves it now and then, and is cut off now and then.
ROOM = """
######
#@$ .#
#    #
######
"""
TWO = ["#@$.#", "#.$@#"]


def with_boards(infos: dict[str, Any]) -> dict[str, Any]:
    """Infos of gymnasium's vector with every Level as its board, which is how the native one tells them."""
    if "level" in infos:
        boards = np.zeros((len(infos["level"]), 4, 6), np.uint8)
        for i, level in enumerate(infos["level"]):
            if level is not None:
                boards[i] = level.tokens
        infos = {**infos, "level": boards}
    return infos


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("observation", ["tokens", "planes"])
def test_it_does_what_gymnasiums_vector_does(mode: AutoresetMode, observation: str) -> None:
    wish: dict[str, Any] = {"levels": [ROOM], "observation": observation, "max_episode_steps": 20}
    native = gymnasium.make_vec(
        ID, num_envs=6, vectorization_mode="vector_entry_point", autoreset_mode=mode, **wish
    )
    sync = SyncVectorEnv([lambda: gymnasium.make(ID, **wish)] * 6, autoreset_mode=mode)
    assert native.metadata == sync.metadata
    for space in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(native, space) == getattr(sync, space)

    def same(mine: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
        theirs = (*theirs[:-1], with_boards(theirs[-1]))
        assert data_equivalence(mine, theirs, exact=True), f"{mine}\n{theirs}"
        assert native.observation_space.contains(mine[0])

    same(native.reset(seed=0), sync.reset(seed=0))
    ended = np.zeros(2, int)
    for actions in np.random.default_rng(1).integers(4, size=(200, 6)):
        mine, theirs = native.step(actions), sync.step(actions)
        same(mine, theirs)
        ended += mine[2].sum(), mine[3].sum()
        over = mine[2] | mine[3]
        if mode is AutoresetMode.DISABLED and over.any():
            mine, theirs = (envs.reset(options={"reset_mask": over.copy()}) for envs in (native, sync))
            same(mine, theirs)
    assert (ended > 3).all(), "both ways to end an episode were to be seen"


def test_make_vec_takes_the_native_one_by_itself() -> None:
    envs = gymnasium.make_vec(ID, num_envs=3, levels=[ROOM])
    assert isinstance(envs, SokobanVectorEnv)
    assert (envs.num_envs, envs.metadata["autoreset_mode"]) == (3, AutoresetMode.NEXT_STEP)
    envs.reset(seed=0)
    cut = [envs.step(np.zeros(3, int))[3].all() for _ in range(120)]
    assert cut == [False] * 119 + [True]


def test_gymnasiums_wrappers_understand_it() -> None:
    envs = RecordEpisodeStatistics(SokobanVectorEnv(2, ["#@$.#"]))
    envs.reset(seed=0)
    infos = envs.step(np.array([3, 0]))[-1]
    assert infos["episode"]["r"][0] == pytest.approx(10.9)
    assert infos["_episode"].tolist() == [True, False]
    listed = DictInfoToList(SokobanVectorEnv(2, ["#@$.#"])).reset(seed=0)[1]
    assert [info["pushes"] for info in listed] == [0, 0]


def test_the_same_seed_gives_the_same_levels_and_different_environments_different_ones() -> None:
    corridors = [f"#@{' ' * walk}$.#" for walk in range(20)]
    envs = SokobanVectorEnv(50, corridors, max_episode_steps=1)

    def played(seed: int) -> list[np.ndarray]:
        boards = [envs.reset(seed=seed)[0]]
        return boards + [envs.step(np.zeros(50, int))[0] for _ in range(4)]

    first = played(3)
    assert all(map(np.array_equal, first, played(3)))
    assert not all(map(np.array_equal, first, played(4)))
    assert len({board.tobytes() for board in first[0]}) > 10


def test_what_was_shown_stays_as_it_was() -> None:
    envs = SokobanVectorEnv(1, ["#@ $.#"])
    seen, infos = envs.reset(seed=0)
    envs.step(np.array([3]))
    assert seen.tolist() == infos["level"].tolist() == [[[0, 2, 1, 3, 4, 0]]]
    assert infos["moves"].tolist() == [0]


def test_levels_of_ones_own_for_all_or_for_some() -> None:
    envs = SokobanVectorEnv(2, [ROOM], render_mode="ansi", autoreset_mode="Disabled")
    wall = "\n######\n######\n######"
    envs.reset(seed=0, options={"level": "#@$.#"})
    assert envs.render() == ("#@$.##" + wall,) * 2
    envs.reset(options={"level": [Level.parse("#.$@#"), Level.parse("#@$.#").tokens]})
    assert envs.render() == ("#.$@##" + wall, "#@$.##" + wall)
    _, infos = envs.reset(options={"level": "#+$#", "reset_mask": np.array([False, True])})
    assert envs.render() == ("#.$@##" + wall, "#+$###" + wall)
    assert infos["_level"].tolist() == infos["_moves"].tolist() == [False, True]


def test_what_can_be_wrong() -> None:
    def refusal(*args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> str:
        with pytest.raises(MaskobanError) as caught:
            SokobanVectorEnv(*args, **kwargs).reset(options=options)
        return str(caught.value)

    assert refusal(0, TWO) == "num_envs must be at least 1, not 0"
    assert refusal(2, TWO, max_episode_steps=0) == "max_episode_steps must be at least 1, or -1, not 0"
    modes = "NextStep, SameStep, Disabled"
    assert refusal(2, TWO, autoreset_mode="never") == f"autoreset_mode is one of {modes}, not 'never'"
    assert refusal(2, TWO, render_mode="human").startswith("a render mode is None, rgb_array or ansi")
    five = {"level": 5}
    assert refusal(2, TWO, options=five) == "a level is a Level, a text or an array, not int"
    three = {"level": [*TWO, "#@$.#"]}
    assert refusal(2, TWO, options=three) == "3 levels for 2 environments; expected one, or one for each"
    assert refusal(2, TWO, options={"level": "#@ $.#"}).startswith("a level of 1x6 does not fit")
    assert refusal(2, TWO, options={"reset_mask": [True]}) == "reset_mask is a NumPy array of 2 booleans"
    none = {"reset_mask": np.zeros(2, bool)}
    assert refusal(2, TWO, options=none) == "reset_mask chooses no environment; expected at least one True"


def test_a_wrong_action_moves_no_board() -> None:
    envs = SokobanVectorEnv(2, ["#@ $.#"])
    with pytest.raises(MaskobanError, match="reset the environment before its first step"):
        envs.step(np.array([3, 3]))
    before, _ = envs.reset(seed=0)
    for wrong in ([3, 4], [3, -1], [3], [3.0, 3.0]):
        with pytest.raises(MaskobanError, match="action"):
            envs.step(np.array(wrong))
    after = envs.step(np.array([0, 0]))[0]
    assert np.array_equal(before, after)


def test_an_episode_that_is_over_must_be_reset_where_nothing_else_does() -> None:
    envs = SokobanVectorEnv(1, ["#@$.#"], autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    envs.step(np.array([3]))
    with pytest.raises(MaskobanError, match="an episode is over; reset it with options="):
        envs.step(np.array([3]))


def test_the_plain_and_the_vectorised_one_take_the_same_levels_for_the_same_seed() -> None:
    env, envs = SokobanEnv(TWO), SokobanVectorEnv(1, TWO, max_episode_steps=1)
    board, _ = env.reset(seed=9)
    boards, _ = envs.reset(seed=9)
    for _ in range(10):
        assert np.array_equal(board, boards[0])
        board, _ = env.reset()
        envs.step(np.array([0]))  # ends the episode
        boards = envs.step(np.array([0]))[0]  # begins the next


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_every_level_of_a_set_is_played_once_in_turn(mode: str) -> None:
    corridors = [f"#@{' ' * walk}$.#" for walk in range(20)]  # each is solved by walking right
    envs = gymnasium.make_vec(
        ID, num_envs=8, levels=corridors, order="sequential", max_episode_steps=15, autoreset_mode=mode
    )
    _, infos = envs.reset(seed=3)
    assert infos["level_index"].tolist() == list(range(8))
    assert infos["_level_index"].all()
    solved: dict[int, bool] = {}
    while len(solved) < len(corridors):
        _, _, terminated, truncated, infos = envs.step(np.full(8, 3))
        ended = infos.get("final_info", infos)["level_index"]
        for i in np.flatnonzero(terminated | truncated):
            solved.setdefault(int(ended[i]), bool(terminated[i]))
    assert [solved[index] for index in range(20)] == [walk < 15 for walk in range(20)]
    _, infos = envs.reset(options={"level": corridors[2]})
    assert infos["level_index"].tolist() == [-1] * 8
