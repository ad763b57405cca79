"""Fuzzes the native core: random boards through solver, repair, dead cells, neighbours and games.

    python -m tests.fuzz.core --minutes 10 --seed 1

Verdicts must agree with each other, with the mirrored board and, for small boards, with a slow search in plain Python;
solutions must replay. MASKOBAN_CORE may name another build of the core, such as one with sanitizers. The boards under
test are kept in FUZZ_LAST_INPUT (if set), for a crash ends the process.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Iterator

import numpy as np

if "MASKOBAN_CORE" in os.environ:
    _spec = importlib.util.spec_from_file_location("maskoban._core", os.environ["MASKOBAN_CORE"])
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules["maskoban._core"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["maskoban._core"])

from maskoban import _core
from maskoban.boards import Level, Tokens
from maskoban.boards.synth import synthesize
from maskoban.environment import SokobanVectorEnv
from maskoban.solving import Limits, Results, count, dead_cells, repair_many, solve_many, solves
from tests.fuzz.report import Budget, Report, main
from tests.solving import reference

MAX_SECONDS = 60.0  # of CPU, for one batch of boards; builds with sanitizers are slow

SEEDS = [
    "#####\n#@$.#\n#####",
    "@$.",
    "#######\n#.$ $.#\n#  @  #\n#.$ $.#\n#######",
    "######\n#+$ $#\n#  .*#\n######",
    "  ####\n###  ####\n#     $ #\n# #  #$ #\n# . .#@ #\n#########",
    "########\n#@ $  .#\n# $  . #\n#      #\n########",
    "#########\n#   #   #\n# $ # . #\n#   @   #\n# . # $ #\n#   #   #\n#########",
]


def boards(rng: random.Random) -> Iterator[Tokens]:
    """Batches of boards of one size, without end."""
    seeds = [Level.parse(text).tokens for text in SEEDS]
    while True:
        numbers = np.random.default_rng(rng.getrandbits(64))
        kind = rng.randrange(6)
        if kind == 0:  # seeds, with some cells changed
            batch = np.repeat(rng.choice(seeds)[None], 8, axis=0)
        elif kind == 1:  # solvable boards, with some cells changed
            side, walls = rng.randint(5, 12), rng.uniform(0.3, 0.7)
            batch = synthesize(4, side, side, rng.randint(1, 3), rng.getrandbits(32), walls=walls)
        elif kind == 2:  # noise
            height, width = rng.randint(1, 12), rng.randint(1, 12)
            batch = numbers.integers(0, 8, (8, height, width), np.uint8)
        else:  # rooms, some of them long or large, with few objects
            longest = rng.choice((6, 12, 12, 30, 70))
            height, width = rng.randint(1, longest), rng.randint(1, longest)
            batch = (numbers.random((4, height, width)) > rng.uniform(0, 0.6)).astype(np.uint8)
            for board in batch:
                pairs = min(rng.choice((1, 2, 3, 6, 40)), (board.size - 1) // 2)
                objects = [2, *[3, 4] * pairs][: board.size]
                board.flat[numbers.permutation(board.size)[: len(objects)]] = objects
        batch = batch.copy()
        if rng.random() < 0.7:
            changed = numbers.random(batch.shape) < rng.choice((0.01, 0.05, 0.2))
            highest = 256 if rng.random() < 0.05 else 7
            batch[changed] = numbers.integers(0, highest, int(changed.sum()), np.uint8)
        yield batch


def check_solver(batch: Tokens, rng: random.Random, report: Report) -> None:
    """All modes agree with each other, with the mirrored boards and with plain Python."""
    limits = Limits(states=rng.choice((0, 1, 50, 1000, 5000)), megabytes=rng.choice((1, 2, 64)))
    threads = rng.choice((1, 1, 3))
    found = {mode: solve_many(batch, mode, threads, limits) for mode in ("any", "pushes", "effort")}
    mirrored = solve_many(np.ascontiguousarray(batch[:, :, ::-1]), "any", threads, limits)
    for i, board in enumerate(batch):
        verdicts = {results[i].verdict for results in found.values()} | {mirrored[i].verdict}
        report.outcomes[found["any"][i].verdict] += 1
        assert len(verdicts - {"unknown"}) <= 1, f"board {i}: verdicts differ: {verdicts}"
        check_solutions(board, i, found)
        effort = found["effort"][i]
        if board.size <= 30 and board.max() <= 7 and effort.verdict != "unknown" and effort.expanded < 2000:
            answer = reference.judge(board)
            assert verdicts <= {answer.verdict, "unknown"}, (
                f"board {i}: {verdicts}, expected {answer.verdict}"
            )
            if effort.solved:
                assert (effort.expanded, effort.pushes) == (answer.expanded, answer.pushes)
    unsolvable = batch[found["any"].verdicts == Results.VERDICTS.index("unsolvable")][:2]
    # Repair searches once a wall, each time within the limits: with thousands of walls they must be small.
    each = Limits(states=min(limits.states or 0, 10**6 // batch[0].size), megabytes=limits.megabytes)
    for board, repair in zip(unsolvable, repair_many(unsolvable, threads=1, limits=each), strict=True):
        assert repair.verdict != "solvable"
        if repair.walls:
            assert (
                solve_many([repair.apply(board)], "any", 1, Limits(states=10**6))[0].verdict != "unsolvable"
            )


def check_solutions(board: Tokens, i: int, found: dict[str, Results]) -> None:
    for mode, results in found.items():
        result = results[i]
        if result.solved:
            assert solves(board, result.solution), f"board {i}: the solution of {mode} does not solve it"
            counts = count(result.solution)
            assert (counts.pushes, counts.moves) == (result.pushes, result.moves)
    fewest = [found[mode][i].pushes for mode in ("pushes", "effort") if found[mode][i].solved]
    assert len(set(fewest)) <= 1, f"board {i}: pushes {fewest}"
    if fewest and found["any"][i].solved:
        assert fewest[0] <= found["any"][i].pushes


def check_others(batch: Tokens, rng: random.Random) -> None:
    """Dead cells, neighbours and games, against NumPy or by what must stay the same."""
    assert dead_cells(batch[0]).shape == batch[0].shape
    flat = batch.reshape(len(batch), -1)
    corpus = flat[rng.sample(range(len(flat)), rng.randint(1, len(flat)))]
    expected = (flat[:, None] != corpus[None]).sum(2).min(1)
    for registers in _core.registers() if batch.max() <= 7 else ():
        assert (np.asarray(_core.nearest(flat, corpus, registers, 1, None)) == expected).all()
    playable = batch[[not reason for reason in _core.unplayable(batch)]].copy()
    if not len(playable):
        return
    envs = SokobanVectorEnv(len(playable), playable, max_episode_steps=10)
    envs.reset(seed=rng.randrange(2**32))
    for _ in range(30):
        observations = envs.step(np.array([rng.randrange(4) for _ in playable]))[0]
        for tiles in ([2, 6], [3, 5], [4, 5, 6], [0]):  # players, boxes, goals and walls
            old, new = (
                np.isin(each, tiles).sum((1, 2)) for each in (envs.games.values["level"], observations)
            )
            assert (new == old).all()


def run(budget: Budget, seed: int = 0) -> Report:
    """Fuzz as long as the budget says."""
    report = Report()
    rng = random.Random(seed)
    for batch in boards(rng):
        if not budget.left(report):
            break
        report.inputs += len(batch)
        if "FUZZ_LAST_INPUT" in os.environ:
            np.save(os.environ["FUZZ_LAST_INPUT"], batch)
        with report.checking(lambda batch=batch: repr(batch.tolist()), MAX_SECONDS):
            check_solver(batch, rng, report)
            check_others(batch, rng)
    return report


if __name__ == "__main__":
    main(run, "Fuzz the native core.")
