"""Where levels come from: files, folders, arrays, and a model that never runs out."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from maskoban import Level, MaskobanError, load, solve, write
from maskoban.boards import Tokens
from maskoban.environment import ID, DrawnLevels, LevelSet, SokobanEnv, SokobanVectorEnv

SOLVABLE = ["#@ $.#", "#.$ @#", "#@$ .#", "#. $@#"]
UNSOLVABLE, SOLVED, NO_PLAYER = "#@.$ #", "#@ * #", "#  $.#"


class Scripted:
    """A model whose boards are known: one of a list after the other, round and round."""

    name, height, width = "scripted", 1, 6

    def __init__(self, boards: list[str]) -> None:
        self.boards, self.drawn = np.stack([Level.parse(board).tokens for board in boards]), []
        self.critic: set[bool | None] = set()

    def sample(
        self, n: int, seed: int, *, first: int, steps: int | None, critic: bool | None = None
    ) -> Tokens:
        self.drawn.append(n)
        self.critic.add(critic)
        return self.boards[(seed + np.arange(first, first + n)) % len(self.boards)]

    def titled(self, board: Tokens, seed: int, number: int) -> Level:
        return Level(board, title=f"{self.name} {seed}-{number}")


def played(env: SokobanEnv, episodes: int, seed: int = 0) -> list[str]:
    """The titles of the levels that so many episodes are played on."""
    return [env.reset(seed=seed if i == 0 else None)[1]["level"].title for i in range(episodes)]


def test_every_board_of_a_seed_that_can_be_solved_is_played_once() -> None:
    script: Any = Scripted([UNSOLVABLE, SOLVABLE[0], SOLVED, NO_PLAYER, SOLVABLE[1]])
    env = SokobanEnv(DrawnLevels(script))
    assert played(env, 5) == [f"scripted 0-{number}" for number in (1, 4, 6, 9, 11)]
    assert played(env, 2, seed=3) == ["scripted 3-1", "scripted 3-3"]


def test_boards_are_chosen_by_difficulty_and_boxes() -> None:
    script: Any = Scripted([UNSOLVABLE, SOLVABLE[0], SOLVABLE[1]])
    assert played(SokobanEnv(DrawnLevels(script, difficulty="easy", boxes=1)), 2) == played(
        SokobanEnv(DrawnLevels(script)), 2
    )
    with pytest.raises(MaskobanError, match=r"were playable and solvable, expert; gave up"):
        SokobanEnv(DrawnLevels(script, difficulty="expert")).reset(seed=0)
    with pytest.raises(MaskobanError, match=r"were playable and solvable, 7 boxes; gave up"):
        SokobanEnv(DrawnLevels(script, boxes=7)).reset(seed=0)


def test_those_that_can_be_played_but_not_solved_are_played_on_request() -> None:
    script: Any = Scripted([UNSOLVABLE, SOLVED, NO_PLAYER, SOLVABLE[0]])
    assert played(SokobanEnv(DrawnLevels(script, only_solvable=False)), 3) == [
        "scripted 0-0",
        "scripted 0-3",
        "scripted 0-4",
    ]


def test_no_critic_is_asked_however_boards_are_drawn() -> None:
    for steps in (16, None):
        script: Any = Scripted(SOLVABLE)
        played(SokobanEnv(DrawnLevels(script, steps=steps)), 3)
        assert script.critic == {False}


def test_batches_grow_and_do_not_change_what_is_drawn() -> None:
    scripts: list[Any] = [Scripted(SOLVABLE) for _ in range(3)]
    sequences = [
        played(SokobanEnv(DrawnLevels(script, batch=batch)), 40)
        for script, batch in zip(scripts, (1, 8, 1000), strict=True)
    ]
    assert sequences[0] == sequences[1] == sequences[2] == [f"scripted 0-{i}" for i in range(40)]
    assert scripts[0].drawn == [1] * 40
    assert scripts[1].drawn == [1, 2, 4, 8, 8, 8, 8, 8]
    assert scripts[2].drawn == [1, 2, 4, 8, 16, 32]


def test_many_environments_share_few_boards_unless_told_otherwise() -> None:
    script: Any = Scripted(SOLVABLE)
    SokobanVectorEnv(64, DrawnLevels(script)).reset(seed=0)
    assert sum(script.drawn) == 16
    for episodes, boards in ((1, 8), (2, 4), (8, 1)):
        envs = SokobanVectorEnv(8, DrawnLevels(script, episodes_per_board=episodes), max_episode_steps=1)
        seen, _ = envs.reset(seed=0)
        numbers = np.arange(8) // episodes
        assert np.array_equal(seen, script.sample(boards, 0, first=0, steps=None)[numbers])
        envs.step(np.zeros(8, int))
        following = envs.step(np.zeros(8, int))[0]
        assert np.array_equal(following, script.sample(boards, 0, first=boards, steps=None)[numbers])


def test_a_model_that_draws_nothing_playable_is_given_up_on() -> None:
    script: Any = Scripted([UNSOLVABLE])
    with pytest.raises(
        MaskobanError, match=r"only 0 of 15\d\d boards drawn were playable and solvable; gave up"
    ):
        SokobanEnv(DrawnLevels(script)).reset(seed=0)
    with pytest.raises(MaskobanError, match="batch and episodes_per_board must be at least 1"):
        DrawnLevels(script, batch=0)


def test_a_wish_that_one_board_in_three_hundred_fulfils_is_not_given_up_on() -> None:
    rng = np.random.default_rng(5)
    boards = np.array([UNSOLVABLE, SOLVABLE[0]])[(rng.random(20_000) < 1 / 300).astype(int)]
    script: Any = Scripted(boards.tolist())
    gaps = np.diff(np.flatnonzero(boards == SOLVABLE[0]))
    assert gaps.max() > 1000  # which happens, in the long run
    assert len(played(SokobanEnv(DrawnLevels(script, batch=64)), len(gaps))) == len(gaps) > 40


def test_the_shipped_model_draws_solvable_boards_the_same_for_the_same_seed() -> None:
    env = gymnasium.make(ID)
    board, info = env.reset(seed=7)
    assert solve(info["level"]).solved
    drawn = load().generate(1, seed=7, only_solvable=True, steps=16)
    assert [info["level"]] == drawn
    assert np.array_equal(board, drawn[0].tokens)


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


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are not forked")
def test_a_model_that_has_drawn_is_shared_with_forked_environments() -> None:
    levels = DrawnLevels(steps=2, only_solvable=False)
    SokobanEnv(levels).reset(seed=0)
    with closing(gymnasium.make_vec(ID, 2, "async", {"context": "fork"}, levels=levels)) as envs:
        envs.reset_async(seed=5)
        seen, _ = envs.reset_wait(timeout=60)
    assert np.array_equal(seen[0], SokobanEnv(levels).reset(seed=5)[0])


def test_a_model_can_be_sent_to_another_process() -> None:
    model = load()
    model.sample(1, seed=3, steps=1)
    kept = pickle.dumps(model)
    with chdir(os.sep):
        copy = pickle.loads(kept)
    assert np.array_equal(copy.sample(2, seed=3), model.sample(2, seed=3))


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
    script: Any = Scripted([UNSOLVABLE, SOLVABLE[0]])
    assert SokobanEnv(DrawnLevels(script)).reset(seed=0)[1]["level_index"] == 1


def test_some_levels_of_a_set_are_a_set() -> None:
    levels = LevelSet(SOLVABLE, order="sequential")
    assert [str(level) for level in levels] == SOLVABLE
    some = levels.subset(np.flatnonzero([True, False, False, True]))
    assert [str(level) for level in some] == [SOLVABLE[0], SOLVABLE[3]]
    assert some.order == "sequential"
    assert len(LevelSet(levels.boards[0])) == 1
    for wrong in ([True, False, False, True], [1.5], [4], [-1], []):
        with pytest.raises(MaskobanError, match="levels are numbered from 0 to 3; expected such numbers"):
            levels.subset(wrong)  # type: ignore[arg-type]


def test_an_order_that_cannot_be() -> None:
    wrong: Any = "backwards"
    for levels in (SOLVABLE, LevelSet(SOLVABLE)):
        with pytest.raises(MaskobanError, match="an order is one of random, sequential, not 'backwards'"):
            SokobanEnv(levels, order=wrong)
    script: Any = Scripted(SOLVABLE)
    with pytest.raises(MaskobanError, match="order is for a set of levels; boards of a model are played as"):
        SokobanVectorEnv(2, DrawnLevels(script), order="sequential")


def test_a_real_collection_can_be_played(boxoban: Path) -> None:
    levels = LevelSet.read(boxoban / "unfiltered" / "test")
    assert levels.boards.shape == (1000, 10, 10)
    envs = SokobanVectorEnv(2000, levels)
    seen, _ = envs.reset(seed=0)
    assert len({board.tobytes() for board in seen}) > 800
