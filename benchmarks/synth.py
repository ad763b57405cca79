"""Compares the boards of ``maskoban corpus synth`` with Boxoban's, and prints how fast they are made.

    python benchmarks/synth.py path/to/boxoban             # the tables of docs/datasets.md
    python benchmarks/synth.py --picture out.png           # a sheet of 24 boards

Speed is per core, in CPU time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from maskoban.boards import Tokens, read_boards
from maskoban.boards.identity import ids
from maskoban.boards.synth import synthesize
from maskoban.pictures import save_picture
from maskoban.solving.solver import Limits, solve_many

SIZES = ((6, 6, 2), (8, 8, 3), (10, 10, 4), (12, 12, 5), (14, 14, 6))
LEVELS = 2_000


def describe(name: str, boards: Tokens, per_second: float | None = None) -> None:
    """One row: speed, pushes, effort, decomposed effort, how many boxes must be moved at once, duplicates."""
    limits = Limits(states=200_000)
    effort = solve_many(boards, "effort", limits=limits, solutions=False)
    groups = solve_many(boards, "decomposed", limits=limits, solutions=False)
    shown = [
        f"{per_second:,.0f}" if per_second else "",
        f"{groups.pushes[groups.solved].mean():.1f}",
        quartiles(np.where(effort.solved, effort.expanded, limits.states), limits.states),
        quartiles(np.where(groups.solved, groups.expanded, limits.states), limits.states),
        f"{(groups.boxes_at_once == 1).mean():.0%}",
        f"{(boards[:, 1:-1, 1:-1] == 0).mean():.0%}",
        f"{1 - len(set(ids(boards))) / len(boards):.1%}",
    ]
    print("| " + " | ".join([name, *shown]) + " |", flush=True)


def quartiles(numbers: np.ndarray, limit: int | None) -> str:
    found = np.percentile(numbers, [25, 50, 75])
    return " / ".join("over the limit" if value == limit else f"{value:,.0f}" for value in found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("boxoban", nargs="?", type=Path)
    parser.add_argument("--picture")
    parser.add_argument("--levels", type=int, default=LEVELS)
    args = parser.parse_args()
    if args.picture:
        save_picture(args.picture, list(synthesize(24, seed=1)))
        return
    print(
        "| boards | a core-second | pushes | effort | decomposed effort | one box at a time | walls | duplicates |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for height, width, boxes in SIZES:
        count = args.levels if height <= 10 else args.levels // 10
        started = time.process_time()
        boards = synthesize(count, height, width, boxes)
        describe(f"{height}x{width}, {boxes} boxes", boards, count / (time.process_time() - started))
    if args.boxoban:
        for split in ("medium/valid", "unfiltered/test"):
            describe(f"Boxoban {split}", read_boards(str(args.boxoban / split))[: args.levels])


if __name__ == "__main__":
    main()
