"""Compares the two difficulties on Boxoban's levels, and makes the file by which boards are rated.

    python benchmarks/rating.py path/to/boxoban                      # the tables of docs/solver.md
    python benchmarks/rating.py path/to/boxoban --summary out.json   # of medium/train: boxoban_difficulty.json
    python benchmarks/rating.py boards.npz --picture out.svg         # boards on which the two disagree most
    python benchmarks/rating.py path/to/boxoban --guided             # guided effort beside the other two
    python benchmarks/rating.py --table out.json                     # of synthetic boards: size_references.json

Times are the best of three runs on one thread, taken in turns; only the ratios mean something elsewhere.
"""

from __future__ import annotations

import argparse
import json
import time
from bisect import bisect
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskoban._util.files import atomic_file
from maskoban._util.progress import bar
from maskoban.boards import Tokens, read_boards
from maskoban.boards.synth import most_boxes, synthesize
from maskoban.pictures import sheet_svg
from maskoban.solving.rating import boxoban_efforts, rate_many, summarise
from maskoban.solving.reference import guided_efforts
from maskoban.solving.solver import Results, solve_many

SPLITS = ("unfiltered/test", "medium/valid", "hard")
LEVELS, RUNS = 5_000, 3

#: The sides and the most boxes of the table of references, and the boards of each entry.
TABLE_SIDES, TABLE_BOXES, TABLE_BOARDS = range(5, 17), 8, 120


def spearman(one: NDArray[np.number], other: NDArray[np.number]) -> float:
    """The rank correlation; equal numbers share their mean rank."""

    def ranks(numbers: NDArray[np.number]) -> NDArray[np.float64]:
        _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        mean_ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
        return mean_ranks

    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def show_splits(folder: Path) -> None:
    """The medians of both measures over Boxoban's splits, from the easiest for players to the hardest."""
    print(
        f"{'levels':<18}{'number':>7}{'pushes':>8}{'effort':>8}{'decomposed':>12}   boxes at once 1, 2, 3, 4"
    )
    for split in SPLITS:
        boards = read_boards(str(folder / split))[:LEVELS]
        effort, groups = (solve_many(boards, mode, solutions=False) for mode in ("effort", "decomposed"))
        medians = [np.median(each) for each in (effort.pushes, effort.expanded, groups.expanded)]
        shares = np.bincount(groups.boxes_at_once, minlength=5)[1:] / len(boards)
        numbers = f"{medians[0]:>8,.0f}{medians[1]:>8,.0f}{medians[2]:>12,.0f}"
        print(f"{split:<18}{len(boards):>7,}{numbers}   {', '.join(f'{share:.1%}' for share in shares)}")


def show_correlations(boards: Tokens) -> None:
    """How the measures go together."""
    effort, groups = (solve_many(boards, mode, solutions=False) for mode in ("effort", "decomposed"))
    named: dict[str, NDArray[np.integer]] = {
        "effort": effort.expanded,
        "pushes": effort.pushes,
        "boxes at once": groups.boxes_at_once,
    }
    for name, numbers in named.items():
        print(
            f"Spearman correlation of decomposed effort and {name}: {spearman(groups.expanded, numbers):.2f}"
        )
    print(f"Spearman correlation of effort and pushes: {spearman(effort.expanded, effort.pushes):.2f}")
    print(f"decomposed effort above effort: {(groups.expanded > effort.expanded).sum()} of {len(boards):,}")


def show_speed(boards: Tokens) -> None:
    """Milliseconds a board, and the slowest board."""

    def timed(mode: str) -> tuple[float, Results]:
        start = time.perf_counter()
        results = solve_many(boards, mode, threads=1, solutions=False)
        return time.perf_counter() - start, results

    runs = [{mode: timed(mode) for mode in ("effort", "decomposed")} for _ in range(RUNS)]
    effort, groups = (
        min((run[mode] for run in runs), key=lambda r: r[0]) for mode in ("effort", "decomposed")
    )
    for name, (seconds, results) in (("effort", effort), ("decomposed", groups)):
        print(f"{name}: {1000 * seconds / len(boards):.2f} ms a board, {results.seconds.max():.3f} s at most")
    print(f"decomposed takes {groups[0] / effort[0]:.2f} times as long as effort")


def draw_disagreements(boards: Tokens, out: Path) -> None:
    """The three boards whose effort ranks furthest above their decomposed effort, and the three furthest below."""
    rated = zip(boards, rate_many(boards), strict=True)
    solved = [(board, rating) for board, rating in rated if rating.decomposed_effort >= 0]
    known = boxoban_efforts()
    gaps = [
        bisect(known["effort_percentiles"], each.effort)
        - bisect(known["decomposed_percentiles"], each.decomposed_effort)
        for _, each in solved
    ]
    order = np.argsort(gaps, kind="stable").tolist()
    chosen = [*reversed(order[-3:]), *order[:3]]
    captions = [
        f"effort {each.effort:,}, {each.difficulty}\n"
        f"decomposed {each.decomposed_effort:,}, {each.decomposed_difficulty}"
        for _, each in (solved[i] for i in chosen)
    ]
    with atomic_file(out) as file:
        file.write(sheet_svg([solved[i][0] for i in chosen], captions, columns=3, cell=20).encode())


def write_summary(boards: Tokens, out: Path) -> None:
    """Solve every level and write means and percentiles."""
    with bar("solving") as show:
        summary = summarise(boards, on_progress=show)
    made_by = {"made_by": "python benchmarks/rating.py boxoban --summary"}
    with atomic_file(out) as file:
        file.write(f"{json.dumps(made_by | summary)}\n".encode())


def show_guided(folder: Path) -> None:
    """Quartiles of the guided effort, and its rank correlations."""
    print(
        f"{'levels':<18}{'quartiles of guided effort':>28}   correlation with effort, decomposed effort, pushes"
    )
    for split in SPLITS:
        boards = read_boards(str(folder / split))[:2_000]
        effort, groups = (solve_many(boards, mode, solutions=False) for mode in ("effort", "decomposed"))
        guided = guided_efforts(boards)
        quartiles = " / ".join(f"{end:,.0f}" for end in np.percentile(guided, [25, 50, 75]))
        found = (spearman(guided, each) for each in (effort.expanded, groups.expanded, effort.pushes))
        print(f"{split:<18}{quartiles:>28}   {', '.join(f'{each:.2f}' for each in found)}")


def write_table(out: Path) -> None:
    """Quartiles of the guided effort of synthetic boards, by size and boxes; of boards not higher than wide."""
    table = {}
    cells = [
        (height, width, boxes)
        for height, width in combinations_with_replacement(TABLE_SIDES, 2)
        for boxes in range(1, min(TABLE_BOXES, most_boxes(height, width)) + 1)
    ]
    with bar("rating") as show:
        for number, (height, width, boxes) in enumerate(cells):
            show(number, len(cells))
            efforts = guided_efforts(synthesize(TABLE_BOARDS, height, width, boxes, seed=2**32))
            table[f"{height}x{width}x{boxes}"] = np.percentile(efforts, [25, 50, 75]).round(2).tolist()
    made_by = {"made_by": "python benchmarks/rating.py --table", "boards": TABLE_BOARDS}
    with atomic_file(out) as file:
        file.write(f"{json.dumps(made_by | {'guided': table})}\n".encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "levels", nargs="?", type=Path, help="the folder of Boxoban's levels, or with --picture any boards"
    )
    parser.add_argument("--summary", type=Path, help="write the summary of medium/train to this file instead")
    parser.add_argument("--picture", type=Path, help="draw the boards on which the two disagree most instead")
    parser.add_argument(
        "--guided", action="store_true", help="compare the guided effort with the others instead"
    )
    parser.add_argument(
        "--table", type=Path, help="write the references by size and boxes to this file instead"
    )
    given = parser.parse_args()
    if given.levels is None and given.table is None:
        parser.error("expected the folder of Boxoban's levels")
    if given.table:
        write_table(given.table)
    elif given.guided:
        show_guided(given.levels)
    elif given.summary:
        write_summary(read_boards(str(given.levels / "medium" / "train")), given.summary)
    elif given.picture:
        draw_disagreements(read_boards(str(given.levels)), given.picture)
    else:
        levels = read_boards(str(given.levels / "medium" / "valid"))[:LEVELS]
        show_splits(given.levels)
        show_correlations(levels)
        show_speed(levels)
