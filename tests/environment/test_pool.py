"""Endless levels: from a model and from the synthesizer, made on the spot, in a thread or in a process."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from contextlib import chdir, closing
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from maskoban import Level, MaskobanError, load, solve, solve_many
from maskoban.boards import Tokens
from maskoban.boards.synth import synthesize
from maskoban.diffusion.sampler import SAMPLERS, SamplerConfig
from maskoban.environment import ID, ModelLevels, Pool, SokobanEnv, SokobanVectorEnv, SynthLevels
from maskoban.solving.filters import BoardFilter
from tests.waiting import LIMIT

from .soak import play_on_a_pool

SOLVABLE = ["#@ $.#", "#.$ @#", "#@$ .#", "#. $@#"]
UNSOLVABLE, SOLVED, NO_PLAYER = "#@.$ #", "#@ * #", "#  $.#"
WORKERS = [None, "thread", "process"]


class Scripted:
    """A model whose boards are known: one of a list after the other, round and round."""

    name, height, width = "scripted", 1, 6

    def __init__(self, boards: list[str]) -> None:
        self.boards, self.sampled = np.stack([Level.parse(board).tokens for board in boards]), []
        self.configs: set[SamplerConfig] = set()

    def conditioned(self, wanted: BoardFilter, size: None = None) -> tuple[Scripted, BoardFilter]:
        return self, wanted

    def sampler(self, sampler: str | SamplerConfig) -> SamplerConfig:
        return SAMPLERS[sampler] if isinstance(sampler, str) else sampler

    def sample(self, n: int, seed: int, sampler: SamplerConfig, *, first: int) -> Tokens:
        self.sampled.append(n)
        self.configs.add(sampler)
        return self.boards[(seed + np.arange(first, first + n)) % len(self.boards)]

    def title(self, seed: int, number: int) -> str:
        return f"{self.name} {seed}-{number}"


def played(env: SokobanEnv, episodes: int, seed: int = 0) -> list[str]:
    """The titles of the levels that so many episodes are played on."""
    return [env.reset(seed=seed if i == 0 else None)[1]["level"].title for i in range(episodes)]


def test_every_board_of_a_seed_that_can_be_solved_is_played_once() -> None:
    script: Any = Scripted([UNSOLVABLE, SOLVABLE[0], SOLVED, NO_PLAYER, SOLVABLE[1]])
    env = SokobanEnv(ModelLevels(script))
    assert played(env, 5) == [f"scripted 0-{number}" for number in (1, 4, 6, 9, 11)]
    assert played(env, 2, seed=3) == ["scripted 3-1", "scripted 3-3"]


def test_boards_are_chosen_by_difficulty_and_boxes() -> None:
    script: Any = Scripted([UNSOLVABLE, SOLVABLE[0], SOLVABLE[1]])
    assert played(SokobanEnv(ModelLevels(script, difficulty="easy", boxes=1)), 2) == played(
        SokobanEnv(ModelLevels(script)), 2
    )
    with pytest.raises(MaskobanError, match=r"were playable and solvable, expert; gave up"):
        SokobanEnv(ModelLevels(script, difficulty="expert")).reset(seed=0)
    with pytest.raises(MaskobanError, match=r"were playable and solvable, 7 boxes; gave up"):
        SokobanEnv(ModelLevels(script, boxes=7)).reset(seed=0)


def test_those_that_can_be_played_but_not_solved_are_played_on_request() -> None:
    script: Any = Scripted([UNSOLVABLE, SOLVED, NO_PLAYER, SOLVABLE[0]])
    assert played(SokobanEnv(ModelLevels(script, only_solvable=False)), 3) == [
        "scripted 0-0",
        "scripted 0-3",
        "scripted 0-4",
    ]


def test_the_sampler_is_fast_unless_another_is_given() -> None:
    for given, expected in (({}, "fast"), ({"sampler": "plain"}, "plain")):
        script: Any = Scripted(SOLVABLE)
        played(SokobanEnv(ModelLevels(script, **given)), 3)
        assert script.configs == {SAMPLERS[expected]}


def test_batches_grow_and_do_not_change_the_boards() -> None:
    scripts: list[Any] = [Scripted(SOLVABLE) for _ in range(3)]
    sequences = [
        played(SokobanEnv(ModelLevels(script, batch=batch)), 40)
        for script, batch in zip(scripts, (1, 8, 1000), strict=True)
    ]
    assert sequences[0] == sequences[1] == sequences[2] == [f"scripted 0-{i}" for i in range(40)]
    assert scripts[0].sampled == [1] * 40
    assert scripts[1].sampled == [1, 2, 4, 8, 8, 8, 8, 8]
    assert scripts[2].sampled == [1, 2, 4, 8, 16, 32]


def test_each_board_is_played_as_often_as_wanted() -> None:
    script: Any = Scripted(SOLVABLE)
    for reuse, boards in ((1, 8), (2, 4), (8, 1)):
        pool = Pool(ModelLevels(script), size=1, reuse=reuse, wait=True, worker=None)
        envs = SokobanVectorEnv(8, pool, max_episode_steps=1)
        numbers = np.arange(8) // reuse
        for first in (0, boards):
            board, infos = envs.reset(seed=0) if first == 0 else envs.step(np.zeros(8, int))[::4]
            assert infos["level_index"].tolist() == (first + numbers).tolist()
            assert infos["level_plays"].tolist() == (np.arange(8) % reuse + 1).tolist()
            assert np.array_equal(board, script.sample(boards, 0, SAMPLERS["fast"], first=first)[numbers])
            envs.step(np.zeros(8, int))


def test_a_model_that_samples_nothing_playable_is_given_up_on() -> None:
    script: Any = Scripted([UNSOLVABLE])
    with pytest.raises(
        MaskobanError, match=r"only 0 of 15\d\d sampled boards were playable and solvable; gave up"
    ):
        SokobanEnv(ModelLevels(script)).reset(seed=0)
    with pytest.raises(MaskobanError, match="batch: expected at least 1, got 0"):
        ModelLevels(script, batch=0)


def test_a_filter_that_keeps_one_board_in_three_hundred_is_not_given_up_on() -> None:
    rng = np.random.default_rng(5)
    boards = np.array([UNSOLVABLE, SOLVABLE[0]])[(rng.random(20_000) < 1 / 300).astype(int)]
    script: Any = Scripted(boards.tolist())
    gaps = np.diff(np.flatnonzero(boards == SOLVABLE[0]))
    assert gaps.max() > 1000  # which happens, in the long run
    assert len(played(SokobanEnv(ModelLevels(script, batch=64)), len(gaps))) == len(gaps) > 40


def test_the_shipped_model_makes_the_boards_that_generate_makes() -> None:
    env = gymnasium.make(ID)
    board, info = env.reset(seed=7)
    assert solve(info["level"]).solved
    generated = load().generate(1, seed=7, sampler="fast", only_solvable=True)
    assert [info["level"]] == generated
    assert np.array_equal(board, generated[0].tokens)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are not forked")
def test_a_model_that_was_used_is_shared_with_forked_environments() -> None:
    levels = ModelLevels(sampler=SamplerConfig(steps=2), only_solvable=False)
    SokobanEnv(levels).reset(seed=0)
    with closing(gymnasium.make_vec(ID, 2, "async", {"context": "fork"}, levels=levels)) as envs:
        envs.reset_async(seed=5)
        seen, _ = envs.reset_wait(timeout=LIMIT)
    assert np.array_equal(seen[0], SokobanEnv(levels).reset(seed=5)[0])


def test_levels_of_another_size_are_sampled_by_the_model_any() -> None:
    levels = ModelLevels(size=(6, 7), boxes=2, sampler=SamplerConfig(steps=8))
    assert (levels.model.name, levels.shape) == ("any", (6, 7))
    assert str(levels) == "playable and solvable"  # the number of boxes is a condition
    env = SokobanEnv(levels)
    board, info = env.reset(seed=5)
    assert board.shape == (6, 7)
    assert solve(info["level"]).solved
    with pytest.raises(MaskobanError, match="width: expected 5 to 16, got 17"):
        ModelLevels(size=(6, 17))


def test_a_model_can_be_sent_to_another_process() -> None:
    model = load()
    model.sample(1, seed=3, sampler="fast")
    kept = pickle.dumps(model)
    with chdir(os.sep):
        copy = pickle.loads(kept)
    assert np.array_equal(*(each.sample(2, seed=3, sampler="fast") for each in (copy, model)))


def numbers_played(envs: SokobanVectorEnv, steps: int, seed: int) -> list[list[int]]:
    """The levels in play after every step of random actions."""
    played = [envs.reset(seed=seed)[1]["level_index"].tolist()]
    for actions in np.random.default_rng(seed).integers(4, size=(steps, envs.num_envs)):
        played.append(envs.step(actions)[4]["level_index"].tolist())
    return played


def test_with_wait_the_same_seed_gives_the_same_levels_wherever_they_are_made() -> None:
    sequences = []
    for worker in WORKERS:
        pool = Pool(SynthLevels(6, 6, boxes=1), size=5, reuse=2, wait=True, worker=worker)
        with closing(SokobanVectorEnv(7, pool, max_episode_steps=5)) as envs:
            sequences.append(numbers_played(envs, 100, seed=11))
            boards = synthesize(200, 6, 6, 1, seed=11)
            assert np.array_equal(envs.games.values["level"], boards[envs.games.values["level_index"]])
            assert envs.games.supply.boards < 200
    assert sequences[0] == sequences[1] == sequences[2]
    assert max(map(max, sequences[0])) > 50, "new boards came"
    assert sequences[0][0] != numbers_played(envs, 0, seed=12)[0]


class Blocked:
    """Boards of the synthesizer, of which the fourth comes only when it is let through."""

    shape, batch = (6, 6), 1

    def __init__(self) -> None:
        self.open = threading.Event()

    def make(self, seed: int, first: int, count: int) -> tuple[NDArray[np.int64], Tokens]:
        if first >= 3:
            assert self.open.wait(LIMIT)
        return SynthLevels(6, 6, boxes=1).make(seed, first, count)

    def title(self, seed: int, number: int) -> str:
        return f"blocked {number}"


def play_until(envs: SokobanVectorEnv, reached: Callable[[], bool]) -> None:
    """Play until a condition holds, which takes as long as the machine is slow."""
    deadline = time.monotonic() + LIMIT
    while not reached():
        assert time.monotonic() < deadline
        envs.step_many(50)


def test_without_wait_no_step_waits_for_a_board() -> None:
    producer = Blocked()
    with closing(SokobanVectorEnv(16, Pool(producer, worker="thread"), max_episode_steps=10)) as envs:
        envs.reset(seed=0)
        supply = envs.games.supply
        assert supply is not None
        play_until(envs, lambda: supply.boards == 3)
        envs.step_many(2000)
        assert (supply.boards, supply.waits) == (3, 0)
        played = envs.games.values["level_plays"]
        assert played.max() > 500, "three boards are played again and again, and the environment says so"
        producer.open.set()
        play_until(envs, lambda: supply.boards > 40)
        assert supply.waits == 0


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the memory of the process")
def test_memory_stays_while_a_pool_is_played_from() -> None:
    counts, memory = play_on_a_pool(500_000, boards=1000)  # `python -m tests.environment.soak` plays more
    assert counts["waits"] == 0
    assert counts["episodes"] > 9000
    assert memory[-1] - memory[1] < 4096, "in KiB; a leak of 1 KiB a call would show"


def test_new_boards_replace_the_oldest() -> None:
    pool = Pool(SynthLevels(6, 6, boxes=1), size=8, worker="thread")
    with closing(SokobanVectorEnv(4, pool, max_episode_steps=2)) as envs:
        envs.reset(seed=0)
        supply = envs.games.supply
        assert supply is not None
        play_until(envs, lambda: supply.boards > 200)
        start = int(supply.arrays["progress"][0])
        assert start >= supply.boards - 8 - 32 - 4, "the window follows"
        envs.reset()
        assert (envs.games.values["level_index"] >= start).all()
        assert len(supply.arrays["boards"]) == 8 + 4 + 32, "and the memory does not grow"


def test_a_copy_of_an_environment_takes_the_levels_that_come_next() -> None:
    for worker in WORKERS:
        pool = Pool(SynthLevels(6, 6, boxes=1), size=1, wait=True, worker=worker)
        with closing(SokobanEnv(pool)) as env:
            played(env, 3)
            for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
                with closing(other):
                    titles = [other.reset()[1]["level"].title for _ in range(40)]
                    assert titles == [f"synth 0-{number}" for number in range(3, 43)]


class Failing(Blocked):
    """A producer that has one board to give."""

    def __init__(self) -> None:
        pass

    def make(self, seed: int, first: int, count: int) -> tuple[NDArray[np.int64], Tokens]:
        if first:
            raise MaskobanError("no more of them")
        return SynthLevels(6, 6, boxes=1).make(seed, first, count)


@pytest.mark.parametrize("worker", WORKERS)
def test_what_goes_wrong_where_boards_are_made_is_raised_where_they_are_needed(worker: Any) -> None:
    with closing(SokobanEnv(Pool(Failing(), size=1, wait=True, worker=worker))) as env:
        env.reset(seed=0)
        for _ in range(2):
            with pytest.raises(MaskobanError, match="no more of them"):
                env.reset()


def test_a_process_that_is_killed_is_told_of() -> None:
    pool = Pool(SynthLevels(6, 6, boxes=1), size=1, wait=True)
    with closing(SokobanEnv(pool)) as env:
        env.reset(seed=0)
        env.games.supply._worker.process.kill()  # type: ignore[union-attr]
        with pytest.raises(MaskobanError, match="the process that makes levels ended"):
            [env.reset() for _ in range(10_000)]


def test_closing_an_environment_ends_its_process() -> None:
    envs = SokobanVectorEnv(2, SynthLevels(6, 6, boxes=1))
    envs.reset(seed=0)
    first = envs.games.supply._worker.process  # type: ignore[union-attr]
    envs.reset(seed=1)
    assert first.returncode is not None, "another seed ends the process of the one before"
    second = envs.games.supply._worker.process  # type: ignore[union-attr]
    assert second.poll() is None
    envs.close()
    assert second.returncode is not None


def test_what_cannot_be_pickled_is_made_in_a_thread() -> None:
    with pytest.raises(MaskobanError, match=r"cannot be sent to a process .* use worker='thread'"):
        SokobanVectorEnv(2, Blocked()).reset(seed=0)


def test_the_fewest_pushes_come_with_the_boards() -> None:
    pool = Pool(SynthLevels(6, 6, boxes=2), size=4, wait=True)
    with closing(SokobanVectorEnv(4, pool, optimal_pushes=True)) as envs:
        _, infos = envs.reset(seed=5)
        assert infos["optimal_pushes"].tolist() == solve_many(infos["level"], "pushes").pushes.tolist()


@pytest.mark.parametrize("wrong", [{"size": 0}, {"reuse": 0}, {"worker": "fork"}])
def test_settings_of_a_pool_that_are_wrong(wrong: dict[str, Any]) -> None:
    with pytest.raises(MaskobanError, match=next(iter(wrong))):
        Pool(SynthLevels(6, 6, boxes=1), **wrong)
    with pytest.raises(MaskobanError, match="a 3x3 board has 1 cells inside its border"):
        SynthLevels(3, 3)
