"""Sets of levels from files, folders, arrays and datasets, and curricula over them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

from maskoban import Level, MaskobanError, solve_many, write
from maskoban.boards.synth import synthesize
from maskoban.cli.app import app
from maskoban.environment import ID, Curriculum, LevelSet, SokobanEnv, SokobanVectorEnv, SynthLevels
from maskoban.solving import rate_many, solves

SOLVABLE = ["#@ $.#", "#.$ @#", "#@$ .#", "#. $@#"]


def test_levels_from_a_file_a_folder_an_array_and_a_list(tmp_path: Path) -> None:
    levels = [Level.parse(board) for board in SOLVABLE]
    boards = np.stack([level.tokens for level in levels])
    write(tmp_path / "four.sok", levels)
    sources = (tmp_path / "four.sok", str(tmp_path), boards, boards.astype(int), levels, SOLVABLE)
    for source in sources:
        envs = SokobanVectorEnv(100, source)
        seen, _ = envs.reset(seed=0)
        assert {board.tobytes() for board in seen} == {board.tobytes() for board in boards}
    assert boards.flags.writeable, "the array of the caller is left alone"


def test_an_array_may_change_afterwards() -> None:
    boards = np.stack([Level.parse(board).tokens for board in SOLVABLE])
    env = SokobanEnv(boards)
    before, _ = env.reset(seed=0)
    boards[:] = 0
    assert np.array_equal(env.reset(seed=0)[0], before)


def test_levels_of_many_sizes_come_through_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"#@$.#\n\n#@ $.#\n")
    os.close(writing)
    with os.fdopen(reading) as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        assert SokobanEnv("-").observation_space.shape == (1, 6)


def test_levels_of_many_sizes_are_filled_up_with_wall_and_told_as_they_were(tmp_path: Path) -> None:
    small, tall = Level.parse("@$."), Level.parse("#\n@\n$\n.\n#")
    write(tmp_path / "sizes.sok", [small, tall])
    env = SokobanEnv(tmp_path / "sizes.sok")
    assert env.observation_space.shape == (5, 3)
    known = {}
    for seed in range(10):
        board, info = env.reset(seed=seed)
        known[info["level"].title.rpartition(", ")[2]] = info["level"].tokens, board
    assert np.array_equal(known["level 0"][0], small.tokens)
    assert known["level 0"][1].tolist() == [[2, 3, 4], *[[0, 0, 0]] * 4]
    assert np.array_equal(known["level 1"][0], tall.tokens)
    assert known["level 1"][1].tolist() == [[0, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0], [0, 0, 0]]


NOTED = [
    Level(Level.parse("#@$.#").tokens, "first", "Ann", "a remark", ("R",)),
    Level(Level.parse("#.$@#").tokens, "second", "Bob", "", ("L",)),
]


@pytest.mark.parametrize("ending", [".xsb", ".sok", ".slc", ".npz"])
def test_a_level_of_a_file_is_told_with_its_title_author_and_solutions(ending: str, tmp_path: Path) -> None:
    write(tmp_path / f"noted{ending}", NOTED)
    for levels in (NOTED, tmp_path / f"noted{ending}"):
        env = SokobanEnv(levels, order="sequential")
        assert [env.reset()[1]["level"] for _ in NOTED] == NOTED


def test_boards_that_have_only_numbers_are_read_the_fast_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = np.stack([Level.parse(board).tokens for board in SOLVABLE])
    write(f"{tmp_path}/folder/", boards)
    for name in ("boards.npz", "boards.npy", "boards.xsb"):
        write(tmp_path / name, boards)
    monkeypatch.setattr("maskoban.environment.levels.read", None)
    for name in ("folder", "boards.npz", "boards.npy", "boards.xsb"):
        levels = LevelSet.read(tmp_path / name)
        assert np.array_equal(levels.boards, boards)
        assert levels.level(3).title == f"{tmp_path / name}, level 3"


def test_each_level_comes_once_in_turn() -> None:
    env = SokobanEnv(SOLVABLE, order="sequential")
    told = [env.reset(seed=9)[1], *(env.reset()[1] for _ in range(5))]
    assert [info["level_index"] for info in told] == [0, 1, 2, 3, 0, 1]
    assert [str(info["level"]) for info in told[:4]] == SOLVABLE
    assert env.step(0)[4]["level_index"] == 1
    assert env.reset(options={"level": SOLVABLE[2]})[1]["level_index"] == -1
    assert env.reset()[1]["level_index"] == 2
    assert env.reset(seed=10)[1]["level_index"] == 0
    env = gymnasium.make(ID, levels=LevelSet(SOLVABLE, order="sequential"))
    assert [env.reset()[1]["level_index"] for _ in range(3)] == [0, 1, 2]


def test_at_random_the_index_tells_which_level_it_is() -> None:
    env = SokobanEnv(SOLVABLE)
    for seed in range(10):
        info = env.reset(seed=seed)[1]
        assert str(info["level"]) == SOLVABLE[info["level_index"]]


def test_some_levels_of_a_set_are_a_set() -> None:
    levels = LevelSet(SOLVABLE, order="sequential")
    assert [str(level) for level in levels] == SOLVABLE
    some = levels.subset(np.flatnonzero([True, False, False, True]))
    assert [str(level) for level in some] == [SOLVABLE[0], SOLVABLE[3]]
    assert some.order == "sequential"
    assert len(LevelSet(levels.boards[0])) == 1
    for wrong in ([True, False, False, True], [1.5], [4], [-1], []):
        with pytest.raises(MaskobanError, match="indices: expected numbers from 0 to 3"):
            levels.subset(wrong)  # type: ignore[arg-type]


def test_an_order_that_cannot_be() -> None:
    wrong: Any = "backwards"
    for levels in (SOLVABLE, LevelSet(SOLVABLE)):
        with pytest.raises(MaskobanError, match="order: expected one of random, sequential, got 'backwards'"):
            SokobanEnv(levels, order=wrong)
    with pytest.raises(MaskobanError, match="order: expected none, for levels that are not a set"):
        SokobanVectorEnv(2, SynthLevels(6, 6, boxes=1), order="sequential")


def test_a_real_collection_can_be_played(boxoban: Path) -> None:
    levels = LevelSet.read(boxoban / "unfiltered" / "test")
    assert levels.boards.shape == (1000, 10, 10)
    envs = SokobanVectorEnv(2000, levels)
    seen, _ = envs.reset(seed=0)
    assert len({board.tobytes() for board in seen}) > 800


def test_solutions_and_fewest_pushes_of_a_set() -> None:
    levels = LevelSet(["#@ $.#", "#@.$ #", "#@$ .#"])
    assert levels.solutions == ["rR", "", "RR"]
    env = SokobanEnv(levels, order="sequential", optimal_pushes=True)
    assert [env.reset()[1]["optimal_pushes"] for _ in range(3)] == [1, -1, 2]
    assert env.step(0)[4]["optimal_pushes"] == 2
    envs = SokobanVectorEnv(3, levels, order="sequential", optimal_pushes=True, autoreset_mode="SameStep")
    assert envs.reset()[1]["optimal_pushes"].tolist() == [1, -1, 2]
    envs.step(np.full(3, 3))
    final = envs.step(np.full(3, 3))[4]["final_info"]
    assert final["_optimal_pushes"].tolist() == [True, False, True]
    assert final["optimal_pushes"].tolist() == final["pushes"].tolist() == [1, 0, 2]
    assert "optimal_pushes" not in SokobanEnv(levels).reset()[1]


def test_the_solved_boards_of_a_bulk_dataset_with_their_solutions(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bulk", "--count", "12", "--out", f"{tmp_path}/dataset"])
    assert done.exit_code == 0, done.output
    levels = LevelSet.read(tmp_path / "dataset")
    assert levels.shape == (10, 10)
    assert 0 < len(levels) < 12, "some cannot be solved"
    assert all(map(solves, levels, levels.solutions))
    assert np.array_equal(levels.optimal_pushes, solve_many(levels.boards, "pushes").pushes)
    SokobanVectorEnv(4, tmp_path / "dataset").reset(seed=0)


def chosen(envs: SokobanVectorEnv, episodes: int) -> np.ndarray:
    """How often each level is begun while all environments step into the wall on the left."""
    before = envs.games.supply.arrays["plays"].copy()  # type: ignore[union-attr]
    envs.step_many(np.full((2 * episodes // envs.num_envs, envs.num_envs), 2))
    return envs.games.supply.arrays["plays"] - before  # type: ignore[union-attr]


def test_levels_that_are_solved_half_of_the_time_come_most_often() -> None:
    # Right solves the first always, the second never; which of the others is solved depends on the environment.
    levels = ["#@$.#", "#.$@#", "#@$.#"]
    envs = SokobanVectorEnv(64, Curriculum(levels, every=64), max_episode_steps=1)
    infos = envs.reset(seed=1)[1]
    for step in range(4000):
        half = (infos["level_index"] == 2) & (np.arange(64) % 2 == step // 2 % 2)
        infos = envs.step(np.where(half, 0, 3))[4]
    plays = envs.games.supply.arrays["plays"]  # type: ignore[union-attr]
    assert plays[2] > 4 * max(plays[0], plays[1])
    assert plays.min() > 100, "the others still come"


@pytest.mark.parametrize("by", ["boxes", "size", [5, 7.5, 7.5, 9]])
def test_the_next_stage_opens_when_the_agent_solves_enough(by: Any) -> None:
    levels = ["#@$.#", "#@$ $..#", "#@$.$ .#", "#@$ $. $..#"]
    envs = SokobanVectorEnv(64, Curriculum(levels, by, every=640), max_episode_steps=1)
    envs.reset(seed=2)
    assert chosen(envs, 6400).tolist()[1:] == [0, 0, 0], "nothing is solved, and nothing new comes"
    envs.step_many(np.full((20, 64), 3))  # solves the first
    plays = chosen(envs, 64_000)
    assert plays[3] == 0
    assert plays[0] / plays.sum() == pytest.approx(0.5, abs=0.02)
    assert plays[1] / plays.sum() == pytest.approx(0.25, abs=0.02)


def test_a_curriculum_by_difficulty_begins_with_easy_levels() -> None:
    hard = synthesize(200, seed=3)
    difficulties = np.array([rating.difficulty for rating in rate_many(hard)])
    assert len(set(difficulties)) > 1
    envs = SokobanVectorEnv(500, Curriculum(LevelSet(hard), "difficulty"))
    assert set(difficulties[envs.reset(seed=0)[1]["level_index"]]) == {"easy"}


def test_a_curriculum_is_the_same_for_the_same_seed_and_play() -> None:
    levels = synthesize(50, 6, 6, 1, seed=1)
    runs = []
    for seed in (7, 7, 8):
        envs = SokobanVectorEnv(32, Curriculum(levels, every=100), max_episode_steps=20)
        envs.reset(seed=seed)
        for action in np.random.default_rng(0).integers(4, size=(500, 32)):
            envs.step(action)
        runs.append(envs.games.values["level_index"].tolist())
    assert runs[0] == runs[1] != runs[2]


def test_weights_of_ones_own() -> None:
    calls = []

    def weigh(ended: np.ndarray, solved: np.ndarray) -> list[float]:
        calls.append((ended.tolist(), solved.tolist()))
        return [0, 1, 3, 0]

    envs = SokobanVectorEnv(10, Curriculum(SOLVABLE, weigh, every=1000), max_episode_steps=1)
    envs.reset(seed=0)
    plays = chosen(envs, 40_000)
    assert plays[[0, 3]].tolist() == [0, 0]
    assert plays[2] / plays[1] == pytest.approx(3, rel=0.1)
    ended, solved = map(np.sum, calls[1])
    assert (abs(ended - 1000) <= 10, solved) == (True, 0)


def test_curricula_that_cannot_be() -> None:
    def refusal(*args: Any, **kwargs: Any) -> str:
        with pytest.raises(MaskobanError) as caught:
            SokobanEnv(Curriculum(SOLVABLE, *args, **kwargs)).reset(seed=0)
        return str(caught.value)

    assert refusal("age") == "by: expected success, difficulty, boxes, size or an array, got 'age'"
    assert refusal([1, 2]) == "by: expected 4 numbers, got int64 of shape (2,)"
    assert refusal(every=0).startswith("every and stages: expected at least 1")
    assert refusal(lambda ended, solved: [1, 1]).startswith("weights of levels: expected 4 numbers")
    assert refusal(lambda ended, solved: [0, 0, 0, 0]).startswith("weights of levels: expected 4 numbers")
