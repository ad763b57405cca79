"""Steps a second of the vectorised environment against the plain one, in the same run, on random play.

    python benchmarks/environment.py                     # boards made here
    python benchmarks/environment.py path/to/levels.sok  # or those of a file or a folder

Every figure is the best of a few rounds, in which all take turns, since the machine may be busy; only the ratios mean
something elsewhere. Agents see tokens unless the name says otherwise. Actions are drawn before the clock starts;
episodes that end are begun anew within it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from maskoban.boards.synth import synthesize
from maskoban.environment import ID, LevelSet, SokobanEnv

ROUNDS = 9
PLAIN_STEPS = 20_000
VECTOR_STEPS = 2_000_000
#: The plain environment without gymnasium's wrappers, the fastest way to play one game at a time.
BARE = "plain, no wrappers"


def time_plain(env: gymnasium.Env) -> float:
    """Steps a second of one game after another."""
    actions = np.random.default_rng(0).integers(4, size=PLAIN_STEPS).tolist()
    env.reset(seed=0)
    start = time.perf_counter()
    for number, action in enumerate(actions, start=1):
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated or number % 120 == 0:
            env.reset()
    return PLAIN_STEPS / (time.perf_counter() - start)


def time_vector(envs: gymnasium.vector.VectorEnv, steps: int) -> float:
    """Steps a second of all games together."""
    rounds = max(240, steps // envs.num_envs)
    actions = np.random.default_rng(0).integers(4, size=(rounds, envs.num_envs))
    envs.reset(seed=0)
    start = time.perf_counter()
    for action in actions:
        envs.step(action)
    return actions.size / (time.perf_counter() - start)


def contestants(levels: LevelSet) -> dict[str, Callable[[], float]]:
    bare, made = SokobanEnv(levels), gymnasium.make(ID, levels=levels)
    sync = gymnasium.make_vec(ID, num_envs=64, vectorization_mode="sync", levels=levels)
    runs = {
        BARE: lambda: time_plain(bare),
        "plain, gymnasium.make": lambda: time_plain(made),
        "64 in gymnasium's SyncVectorEnv": lambda: time_vector(sync, PLAIN_STEPS),
    }
    for n in (64, 1024, 4096, 16384):
        envs = gymnasium.make_vec(ID, num_envs=n, levels=levels)
        runs[f"vectorised, {n:,}"] = lambda envs=envs: time_vector(envs, VECTOR_STEPS)
    for seen in ("planes", "rgb"):
        envs = gymnasium.make_vec(ID, num_envs=4096, levels=levels, observation=seen)
        runs[f"vectorised, 4,096, {seen}"] = lambda envs=envs: time_vector(envs, VECTOR_STEPS)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description="Steps a second, vectorised against plain.")
    parser.add_argument(
        "levels", nargs="?", help="a level file or folder; 1,000 synthesized boards if absent"
    )
    given = parser.parse_args().levels
    runs = contestants(LevelSet.read(given) if given else LevelSet(synthesize(1000, seed=1)))
    best = dict.fromkeys(runs, 0.0)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            best[name] = max(best[name], run())
    table = Table("environment", "steps a second", f"times {BARE}", title=f"random play, best of {ROUNDS}")
    for name, rate in best.items():
        table.add_row(name, f"{rate:,.0f}", f"{rate / best[BARE]:.1f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
