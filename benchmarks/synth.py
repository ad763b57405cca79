"""Compares the boards of ``maskoban corpus synth`` with Boxoban's, and prints how fast they are made.

    python benchmarks/synth.py path/to/boxoban                        # the table of docs/datasets.md
    python benchmarks/synth.py --picture out.png                      # a sheet of 24 boards
    python benchmarks/synth.py --picture out.png --size 14x14 --boxes 6

Speed is per core, in CPU time. Boards are compared with Boxoban by the 3x3 patterns of walls, and with each other by
the cells in which each board of the second half differs from its nearest in the first half.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from maskoban.boards import WALL, Tokens, read_boards
from maskoban.boards.identity import ids
from maskoban.boards.synth import synthesize
from maskoban.evaluation.measures.distances import nearest_distances, without_player
from maskoban.evaluation.measures.patterns import Patterns, count_patterns, pattern_jsd
from maskoban.pictures import save_picture
from maskoban.solving.reference import guided_efforts
from maskoban.solving.replay import count
from maskoban.solving.solver import Limits, solve_many

SIZES = ((6, 6, 2), (7, 7, 2), (8, 8, 3), (10, 10, 4), (12, 12, 5), (14, 14, 6), (16, 16, 8))
LEVELS = 500
COLUMNS = (
    "boards",
    "number",
    "a core-second",
    "pushes",
    "box changes",
    "effort",
    "guided effort",
    "decomposed effort",
    "one box at a time",
    "walls",
    "wall patterns",
    "duplicates",
    "nearest",
)


def describe(name: str, boards: Tokens, patterns: Patterns | None, per_second: float | None = None) -> None:
    """One row of the table."""
    limits = Limits(states=200_000)
    effort = solve_many(boards, "effort", limits=limits, solutions=False)
    groups = solve_many(boards, "decomposed", limits=limits, solutions=False)
    found = solve_many(boards, "any", limits=limits)
    counts = [count(result.solution) for result in found if result.solved]
    half = len(boards) // 2
    pair = without_player(boards[half:]), without_player(boards[:half])
    shown = [
        f"{len(boards):,}",
        f"{per_second:,.0f}" if per_second else "",
        f"{np.mean([each.pushes for each in counts]):.1f}",
        f"{np.mean([each.box_changes for each in counts]):.1f}",
        quartiles(np.where(effort.solved, effort.expanded, limits.states), limits.states),
        quartiles(guided_efforts(boards), None),
        quartiles(np.where(groups.solved, groups.expanded, limits.states), limits.states),
        f"{(groups.boxes_at_once == 1).mean():.0%}",
        f"{(boards[:, 1:-1, 1:-1] == WALL).mean():.0%}",
        f"{pattern_jsd(walls(boards), patterns):.3f}" if patterns else "",
        f"{1 - len(set(ids(boards))) / len(boards):.1%}",
        f"{np.median(nearest_distances(*pair)):.0f}",
    ]
    print("| " + " | ".join([name, *shown]) + " |", flush=True)


def walls(boards: Tokens) -> Tokens:
    """Walls and floor alone."""
    return np.minimum(boards, 1)


def quartiles(numbers: np.ndarray, limit: int | None) -> str:
    found = np.percentile(numbers, [25, 50, 75])
    return " / ".join("over the limit" if value == limit else f"{value:,.0f}" for value in found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("boxoban", nargs="?", type=Path)
    parser.add_argument("--picture")
    parser.add_argument("--size", default="10x10")
    parser.add_argument("--boxes", type=int, default=4)
    parser.add_argument("--levels", type=int, default=LEVELS)
    args = parser.parse_args()
    if args.picture:
        height, width = map(int, args.size.split("x"))
        save_picture(args.picture, list(synthesize(24, height, width, args.boxes, seed=1)))
        return
    patterns = None
    if args.boxoban:
        patterns = count_patterns(walls(read_boards(str(args.boxoban / "medium/train/000.txt"))))
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for height, width, boxes in SIZES:
        number = args.levels * 100 // max(100, (height - 2) * (width - 2) * boxes - 156)
        started = time.process_time()
        boards = synthesize(number, height, width, boxes)
        per_second = number / (time.process_time() - started)
        describe(f"{height}x{width}, {boxes} boxes", boards, patterns, per_second)
    if args.boxoban:
        for split in ("medium/valid", "unfiltered/test"):
            boards = read_boards(str(args.boxoban / split))[: args.levels]
            describe(f"Boxoban {split}", boards, patterns)


if __name__ == "__main__":
    main()
