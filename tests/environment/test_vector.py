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
ROOMS = [ROOM, *(ROOM.replace("#@$ .#", row) for row in ("#@$. #", "#.$@ #", "# .$@#", "#.$ @#"))]
TWO = ["#@$.#", "#.$@#"]


def check_infos(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    """All that gymnasium's vector says, the native one says with the same values, for the same environments."""
    for key, mask in theirs.items():
        if not key.startswith("_"):
            continue
        key = key.removeprefix("_")
        assert np.array_equal(mine[f"_{key}"], mask), key
        if isinstance(theirs[key], dict):
            check_infos(mine[key], theirs[key])
        elif key != "level_plays":  # gymnasium's environments do not play from one set
            for i in np.flatnonzero(mask):
                their = theirs[key][i].tokens if key == "level" else theirs[key][i]
                assert np.array_equal(mine[key][i], their), key


def check_unsaid(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    """What only the native one says, it says of nobody."""
    for key in set(mine) - set(theirs):
        assert not np.any(mine[key if key.startswith("_") else f"_{key}"])


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("observation", ["tokens", "planes", "boxoban", "rgb"])
@pytest.mark.parametrize("copy", [False, True])
def test_it_does_what_gymnasiums_vector_does(mode: AutoresetMode, observation: str, copy: bool) -> None:
    settings: dict[str, Any] = {"levels": ROOMS, "observation": observation, "max_episode_steps": 20}
    native = gymnasium.make_vec(
        ID, num_envs=6, vectorization_mode="vector_entry_point", autoreset_mode=mode, copy=copy, **settings
    )
    sync = SyncVectorEnv([lambda: gymnasium.make(ID, **settings)] * 6, autoreset_mode=mode)
    assert native.metadata == sync.metadata
    for space in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(native, space) == getattr(sync, space)

    def same(mine: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
        assert data_equivalence(mine[:-1], theirs[:-1], exact=True), f"{mine}\n{theirs}"
        assert native.observation_space.contains(mine[0])
        check_infos(mine[-1], theirs[-1])
        check_unsaid(mine[-1], theirs[-1])

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
        boards = [envs.reset(seed=seed)[0].copy()]
        return boards + [envs.step(np.zeros(50, int))[0].copy() for _ in range(4)]

    first = played(3)
    assert all(map(np.array_equal, first, played(3)))
    assert not all(map(np.array_equal, first, played(4)))
    assert len({board.tobytes() for board in first[0]}) > 10


def test_every_step_returns_the_same_arrays_unless_copies_are_wanted() -> None:
    for copy in (False, True):
        envs = SokobanVectorEnv(1, ["#@ $.#"], copy=copy)
        observations, infos = envs.reset(seed=0)
        first, second = envs.step(np.array([3])), envs.step(np.array([3]))
        assert infos["moves"].tolist() == [0]
        shared = [
            *(np.shares_memory(mine, other) for mine, other in zip(first[:4], second[:4], strict=True)),
            np.shares_memory(observations, first[0]),
            *(np.shares_memory(first[4][key], second[4][key]) for key in first[4]),
        ]
        assert all(shared) != copy
        assert any(shared) != copy
        assert first[4] is not second[4], "wrappers add to the infos"


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

    assert refusal(0, TWO) == "num_envs: expected at least 1, got 0"
    assert refusal(2, TWO, max_episode_steps=0) == "max_episode_steps: expected at least 1, or -1, got 0"
    modes = "NextStep, SameStep, Disabled"
    assert refusal(2, TWO, autoreset_mode="never") == f"autoreset_mode: expected one of {modes}, got 'never'"
    assert refusal(2, TWO, render_mode="human").startswith("render_mode: expected None, rgb_array or ansi")
    five = {"level": 5}
    assert refusal(2, TWO, options=five) == "level: expected a Level, a text or an array, got int"
    three = {"level": [*TWO, "#@$.#"]}
    assert refusal(2, TWO, options=three) == "level: expected 1 or 2 levels, got 3"
    assert refusal(2, TWO, options={"level": "#@ $.#"}).startswith("a level of 1x6 does not fit")
    assert (
        refusal(2, TWO, options={"reset_mask": [True]}) == "reset_mask: expected a NumPy array of 2 booleans"
    )
    none = {"reset_mask": np.zeros(2, bool)}
    assert refusal(2, TWO, options=none) == "reset_mask: expected at least one True, got none"


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
