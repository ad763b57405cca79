"""The long versions of two tests: ``python -m tests.environment.soak`` (about five minutes of CPU time).

Every observation kind is compared with the reference over ``--steps`` random steps. Then as many, or more until 10,000
boards have come, are played on a pool of levels: it prints how often a step waited for a level after the first, and the
memory of the process at ten points.
The exit code is 1 where a step waited.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import numpy as np

from maskoban.boards import BOX_ON_GOAL
from maskoban.boards.synth import synthesize
from maskoban.environment import LevelSet, Pool, SokobanVectorEnv, SynthLevels
from maskoban.environment.games import Observation

from . import reference

LEVELS = LevelSet(np.concatenate([synthesize(300, 7, 8, boxes, seed=boxes) for boxes in (1, 2, 3)]))


def check_play(kind: Any, threads: int, steps: int, n: int = 1000, limit: int = 40) -> int:
    """Random play by the reference in NumPy, step by step; the number of episodes solved."""
    envs = SokobanVectorEnv(n, LEVELS, kind, max_episode_steps=limit, threads=threads)
    observations, infos = envs.reset(seed=3)
    boards, taken, over = LEVELS.boards[infos["level_index"]], np.zeros(n, int), np.zeros(n, bool)
    rng, solved_episodes = np.random.default_rng(4), 0
    for _ in range(steps // n):
        chosen = rng.integers(4, size=n)
        observations, rewards, terminated, truncated, infos = envs.step(chosen)
        after, expected, solved = reference.step(boards, chosen)
        taken = np.where(over, 0, taken + 1)
        boards = np.where(over[:, None, None], LEVELS.boards[infos["level_index"]], after)
        assert np.array_equal(observations, reference.observe(kind, boards))
        assert np.allclose(rewards, np.where(over, 0, expected))
        assert np.array_equal(terminated, solved & ~over)
        assert np.array_equal(truncated, taken == limit)
        assert np.array_equal(infos["_level"], over)
        assert np.array_equal(infos["boxes_on_goals"], (boards == BOX_ON_GOAL).sum((1, 2)))
        over = terminated | truncated
        solved_episodes += int(terminated.sum())
    return solved_episodes


def resident_kib() -> int:
    """Memory of this process, on Linux."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line)
    return int(line.split()[1])


def play_on_a_pool(
    steps: int, boards: int, n: int = 64, points: int = 10
) -> tuple[dict[str, int], list[int]]:
    """Random play on endless levels, for so many steps at least, and until so many boards have come.

    Returns the counts of the supply, and the memory after each tenth.
    """
    with closing(
        SokobanVectorEnv(n, Pool(SynthLevels(7, 7, boxes=1), size=256), "planes", max_episode_steps=50)
    ) as envs:
        envs.reset(seed=0)
        supply = envs.games.supply
        assert supply is not None
        actions, memory, taken = np.random.default_rng(0).integers(4, size=(100, n)), [], 0
        for point in range(1, points + 1):
            while taken < steps * point / points or supply.boards < boards * point / points:
                for chosen in actions:
                    envs.step(chosen)
                taken += actions.size
            memory.append(resident_kib())
        counts = {"boards": supply.boards, "episodes": supply.episodes, "waits": supply.waits}
        return {"steps": taken} | counts, memory


def main() -> None:
    parser = argparse.ArgumentParser(description="Long random play, compared with the rules and on a pool.")
    parser.add_argument("--steps", type=int, default=10_000_000)
    steps = parser.parse_args().steps
    for kind in get_args(Observation):
        solved = check_play(kind, threads=1, steps=steps)
        print(f"{kind}: {steps:,} steps agree with the rules; {solved:,} episodes solved", flush=True)
    counts, memory = play_on_a_pool(steps, boards=10_000)
    print(f"pool: {counts}")
    print(f"memory in KiB after every tenth: {memory}")
    sys.exit(counts["waits"] > 0)


if __name__ == "__main__":
    main()
