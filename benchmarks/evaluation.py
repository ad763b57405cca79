"""How fast the measures are, each against a slower way in the same run.

    python benchmarks/evaluation.py ../shared/boxoban                    # held-out levels against the training levels
    python benchmarks/evaluation.py ../shared/boxoban --boards mine.npz  # generated boards, whose failures are mended

The machine may be busy; only the ratios mean something elsewhere.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from maskoban import _core
from maskoban._util.cpu import cpu_count
from maskoban.boards import Tokens, read_boards
from maskoban.evaluation import (
    count_duplicates,
    count_patterns,
    measure_patterns,
    mend,
    nearest_distances,
    without_player,
)
from maskoban.evaluation.reference import load_reference
from maskoban.solving import solve_many


def timed(work: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work(*given)
    return time.perf_counter() - start, found


def interiors(boards: Tokens) -> NDArray[np.uint8]:
    return np.ascontiguousarray(without_player(boards)[:, 1:-1, 1:-1].reshape(len(boards), -1))


def show_neighbours(boards: Tokens, corpus: Tokens, console: Console) -> None:
    """Millions of distances a second: by NumPy, then with each kind of registers, on one thread and on all."""
    table = Table("nearest neighbours", "boards", "s", "M distances/s", "times plain on one thread")
    ours, theirs = interiors(boards), interiors(corpus)

    def numpy(some: NDArray[np.uint8]) -> list[int]:
        return [int((theirs != board).sum(axis=1).min()) for board in some]

    def native(registers: str, threads: int, n: int) -> tuple[float, NDArray[np.int32]]:
        return timed(_core.nearest, ours[:n], theirs, registers, threads, None)

    n = min(len(boards), 2_000)
    plain_seconds, plain = native("plain", 1, n)
    plain_rate = n * len(corpus) / plain_seconds

    def row(name: str, n: int, seconds: float) -> None:
        rate = n * len(corpus) / seconds
        table.add_row(name, f"{n:,}", f"{seconds:.2f}", f"{rate / 1e6:,.0f}", f"{rate / plain_rate:.1f}")

    seconds, slow = timed(numpy, ours[:20])
    assert slow == plain[:20].tolist()
    row("cell by cell in NumPy", 20, seconds)
    row("plain, one thread", n, plain_seconds)
    for registers in reversed(_core.registers()[:-1]):
        for threads, name in ((1, "one thread"), (cpu_count(), "all cores")):
            seconds, found = native(registers, threads, len(ours))
            assert np.array_equal(found[:n], plain)
            row(f"{registers}, {name}", len(ours), seconds)
    console.print(table)


def show_patterns(boards: Tokens, console: Console) -> None:
    """Counting windows against a loop over them."""
    few = boards[:500]

    def loop() -> Counter[bytes]:
        places = [(r, c) for r in range(few.shape[1] - 2) for c in range(few.shape[2] - 2)]
        return Counter(board[r : r + 3, c : c + 3].tobytes() for board in few for r, c in places)

    slow, counts = timed(loop)
    fast, patterns = timed(count_patterns, few)
    assert len(counts) == len(patterns.codes)
    console.print(f"3x3 patterns of {len(few)} boards: {slow / fast:.0f} times as fast as window by window")


def show_stages(boards: Tokens, corpus: Tokens, console: Console) -> None:
    """A whole evaluation without generation: where its time goes, against solving every board once."""
    reference = load_reference()
    solving, results = timed(solve_many, boards, "any", None, None, False)
    stages = {
        "solve": solving,
        "repair, one and two walls": timed(mend, boards, results)[0],
        "effort and pushes": timed(solve_many, boards, "effort", None, None, False)[0],
        "patterns at eight sizes": timed(
            measure_patterns, boards, reference.patterns, reference.held_out_jsd
        )[0],
        "nearest neighbours": timed(nearest_distances, boards, corpus)[0],
        "duplicates": timed(count_duplicates, boards)[0],
    }
    stages["all"] = sum(stages.values())
    table = Table(
        "stage", "s", "times solving", title=f"{len(boards):,} boards, {results.solved.mean():.1%} solvable"
    )
    for name, seconds in stages.items():
        table.add_row(name, f"{seconds:.1f}", f"{seconds / solving:.1f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the measures against slower ways.")
    parser.add_argument("boxoban", type=Path, help="a checkout of boxoban-levels")
    parser.add_argument("--boards", type=Path, help="boards to evaluate instead of medium/valid")
    options = parser.parse_args()
    console = Console(width=110)
    corpus = read_boards(options.boxoban / "medium" / "train")
    boards = read_boards(options.boards or options.boxoban / "medium" / "valid")
    show_neighbours(boards, corpus, console)
    show_patterns(boards, console)
    show_stages(boards, corpus, console)


if __name__ == "__main__":
    main()
