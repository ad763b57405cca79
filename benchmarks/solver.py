"""How fast the solver is on one core: mode any against mode effort on the same boards in the same run.

    python benchmarks/solver.py ../shared/boxoban            # the table
    python benchmarks/solver.py ../shared/boxoban --replay   # also solve and replay every level there is
    python benchmarks/solver.py ../shared/boxoban --optimize # only shorten 200 solutions made deliberately long

Times are the best of five runs, since the machine may be busy; only the ratios mean something elsewhere.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from maskoban import _core
from maskoban.boards import Tokens, read_boards
from maskoban.solving.optimize import length, optimize_many
from maskoban.solving.replay import IllegalStepError, play, solves
from maskoban.solving.solver import solve, solve_many

MODES = ("any", "pushes", "effort")
RUNS = 5


@dataclass
class Timing:
    """Seconds in all for one mode on one set of boards, and where they went."""

    boards: int
    setup: float
    search: float
    rebuilding: float
    expanded: int

    @property
    def seconds(self) -> float:
        return self.setup + self.search + self.rebuilding


def time_mode(boards: Tokens, mode: str) -> Timing:
    """One run on one thread."""
    found = _core.solve_boards(boards, MODES.index(mode), -1, 1024, -1.0, 1, True, None)
    total, setup, rebuilding = (
        float(seconds.sum(dtype=np.float64))
        for seconds in (found["seconds"], found["setup"], found["rebuilding"])
    )
    return Timing(len(boards), setup, total - setup - rebuilding, rebuilding, int(found["expanded"].sum()))


def time_modes(boards: Tokens) -> dict[str, Timing]:
    """The fastest of a few runs of each mode, taken in turns so that a busy spell hits all modes alike."""
    runs = [{mode: time_mode(boards, mode) for mode in MODES} for _ in range(RUNS)]
    return {mode: min((run[mode] for run in runs), key=lambda timing: timing.seconds) for mode in MODES}


def swapped(boards: Tokens, swaps: int, seed: int) -> Tokens:
    """Boards with a few random pairs of interior tiles swapped, so that every count stays right."""
    rng = np.random.default_rng(seed)
    boards = boards.copy()
    rows = np.arange(len(boards))
    for _ in range(swaps):
        (r1, r2), (c1, c2) = rng.integers(1, 9, (2, 2, len(boards)))
        boards[rows, r1, c1], boards[rows, r2, c2] = boards[rows, r2, c2], boards[rows, r1, c1]
    return boards


def unsolvable(test: Tokens, seed: int = 1) -> Tokens:
    """Swapped boards that a plain search must exhaust, not refuted by a dead cell at the start."""
    boards = np.concatenate([swapped(test, swaps, seed + swaps) for swaps in (2, 3, 4)])
    found = solve_many(boards, "effort", solutions=False)
    exhausted = (found.verdicts == found.VERDICTS.index("unsolvable")) & (found.expanded > 0)
    return np.ascontiguousarray(boards[exhausted])


def show_table(sets: dict[str, Tokens], console: Console) -> None:
    columns = (
        "boards",
        "mode",
        "n",
        "ms a board",
        "setup",
        "search",
        "rebuilding",
        "states a board",
        "M states/s",
    )
    table = Table(*columns)
    table.title = f"one core, best of {RUNS}"
    verdicts = []
    for name, boards in sets.items():
        timings = time_modes(boards)
        for mode, t in timings.items():
            parts = (f"{1e3 * x / t.boards:.4f}" for x in (t.seconds, t.setup, t.search, t.rebuilding))
            rate = t.expanded / t.search / 1e6
            table.add_row(name, mode, str(t.boards), *parts, f"{t.expanded / t.boards:.1f}", f"{rate:.2f}")
        table.add_section()
        ratio = timings["effort"].seconds / timings["any"].seconds
        verdicts.append(f"{name}: any is {ratio:.1f} times as fast as effort")
    console.print(table)
    for line in verdicts:
        console.print(line)


def show_figures(boards: Tokens, console: Console) -> None:
    """What docs/solver.md says of these boards beside the times."""
    found, fewest, plain = (solve_many(boards, mode, solutions=False) for mode in MODES)
    quartiles = ", ".join(f"{effort:,.1f}" for effort in np.percentile(plain.expanded, [25, 50, 75]))
    console.print(f"medium/valid: quartiles of effort {quartiles}")
    extra = found.pushes.sum() / fewest.pushes.sum() - 1
    console.print(f"medium/valid: any takes {100 * extra:.1f} % more pushes than needed")


def replay_everything(folder: Path, console: Console) -> None:
    for name in ("medium/valid", "hard", "unfiltered/test"):
        boards = read_boards(str(folder / name))
        found = solve_many(boards)
        assert found.solutions is not None
        pairs = zip(boards, found.solutions, strict=True)
        good = sum(solves(b, s) for b, s in track(pairs, "replaying", len(boards), console=console))
        solved = int(found.solved.sum())
        console.print(f"{name}: {len(boards)} levels, {solved} solved, {good} solutions replayed")


def with_detours(board: Tokens, steps: int, rng: np.random.Generator) -> str:
    """A solution that begins with random steps, none of which spoils the board."""
    position, done = board, ""
    for letter in rng.choice(list("lurdLURD"), 8 * steps):
        try:
            *_, after = play(position, letter)
        except IllegalStepError:
            continue
        if letter.islower() or solve(after).solved:
            position, done = after, done + letter
    return done + solve(position).solution


def show_optimizer(boards: Tokens, console: Console) -> None:
    """Solutions with detours against what the optimiser makes of them, and against the fewest pushes."""
    rng = np.random.default_rng(0)
    before = [with_detours(board, 20, rng) for board in boards]
    fewest = solve_many(boards, "pushes", solutions=False).pushes
    for by in ("moves", "pushes"):
        found = optimize_many(boards, before, by)
        was = np.array([length(solution, by)[0] for solution in before])
        now = found.moves if by == "moves" else found.pushes
        line = f"{len(boards)} solutions by {by}: {was.mean():.1f} before, {now.mean():.1f} after, "
        line += f"mean saving {100 * (1 - now / was).mean():.1f} %, longer {(now > was).sum()}, all replayed"
        if by == "pushes":
            line += f", {(now == fewest).sum()} with the fewest pushes there are"
        console.print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the solver's modes on one core.")
    parser.add_argument("boxoban", type=Path, help="a checkout of boxoban-levels")
    parser.add_argument("--replay", action="store_true", help="solve and replay every level")
    parser.add_argument("--optimize", action="store_true", help="only shorten 200 long solutions")
    options = parser.parse_args()
    console = Console(width=130)
    if options.optimize:
        show_optimizer(read_boards(str(options.boxoban / "medium/valid"))[:200], console)
        return
    test = read_boards(str(options.boxoban / "unfiltered/test"))
    sets = {
        "medium/valid": read_boards(str(options.boxoban / "medium/valid"))[:5000],
        "unsolvable": unsolvable(test),
        "hard": read_boards(str(options.boxoban / "hard")),
    }
    show_table(sets, console)
    show_figures(sets["medium/valid"], console)
    if options.replay:
        replay_everything(options.boxoban, console)


if __name__ == "__main__":
    main()
