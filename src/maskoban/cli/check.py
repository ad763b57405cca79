"""maskoban check: whether level files are in order."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from maskoban.cli.options import Searching
from maskoban.cli.output import Output, chunks

#: Seconds for a level without a working solution, unless a limit is given.
SECONDS = 10.0


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Level files, or folders of them.")],
    searching: Searching,
) -> None:
    """Check level files: levels twice, levels without a solution, solutions that do not solve.

    A level with a working solution is not searched; others are, for 10 seconds
    unless --seconds or --states says otherwise. Near-duplicates differ in at most
    4 cells. The exit code is 1 where a level is unsolvable or malformed, a
    solution does not work, a level is a duplicate, or something was skipped.

    Keys of --json: file, index (in the file, counted from 0), title, board, id,
    verdict, reason, solutions (name, solves, problem, moves, pushes, box_changes,
    box_lines, pushing_sessions), best_pushes and best_moves (one of them, or
    null), twin (file, index, cells that differ; 0 for a duplicate). A line with
    the key warning has file, line and problem.

    \b
    Examples:
      maskoban check mine.sok
      maskoban check *.sok --json | jq -c 'select(.twin)'
    """
    from dataclasses import asdict, replace

    from maskoban.boards import Level
    from maskoban.solving import solve_many
    from maskoban.solving.check import best, check_solutions, twins

    limits = searching.limits()
    if limits.states is None and limits.seconds is None:
        limits = replace(limits, seconds=SECONDS)
    output = Output(searching.as_json)
    bad = 0
    levels: list[Level] = []
    rows: list[dict[str, Any]] = []
    for file in files:
        for first, chunk in chunks(file, "checking", output, searching.strict):
            checked = [check_solutions(level) for level in chunk]
            unsolved = [i for i, solutions in enumerate(checked) if best(solutions, "pushes") is None]
            results = solve_many([chunk[i] for i in unsolved], "any", searching.threads, limits)
            verdicts = dict(zip(unsolved, ((each.verdict, each.reason) for each in results), strict=True))
            for i, solutions in enumerate(checked):
                verdict, reason = verdicts.get(i, ("solved", ""))
                row: dict[str, Any] = {"file": file, "index": first + i, "verdict": verdict, "reason": reason}
                row["solutions"] = [asdict(solution) for solution in solutions]
                for by in ("pushes", "moves"):
                    shortest = best(solutions, by)
                    row[f"best_{by}"] = asdict(shortest) if shortest else None
                rows.append(row)
            levels += [Level(level.tokens, level.title) for level in chunk]
    for row, level, twin in zip(rows, levels, twins(levels), strict=True):
        row["twin"] = None
        if twin is not None:
            row["twin"] = {name: rows[twin.index][name] for name in ("file", "index")} | {"cells": twin.cells}
        wrong = not all(solution["solves"] for solution in row["solutions"])
        duplicate = twin is not None and twin.cells == 0
        bad += row["verdict"] in ("unsolvable", "malformed") or wrong or duplicate
        output.add(row["index"], level, row, "" if output.as_json else _described(row))
    output.finish(good={"solved", "unknown"}, bad=bad + output.warnings)


def _described(row: dict[str, Any]) -> str:
    """What there is to say about a level, in one line."""
    parts = [row["file"]]
    for solution in row["solutions"]:
        name = solution["name"]
        if "solution" not in name.lower():
            name = f"solution {name}".rstrip()
        if not solution["solves"]:
            parts.append(f"{name} does not solve: {solution['problem']}")
            continue
        lines, changes, sessions = (solution[key] for key in ("box_lines", "box_changes", "pushing_sessions"))
        counts = f"{solution['pushes']}/{solution['moves']} pushes/moves, {lines}/{changes}/{sessions}"
        parts.append(f"{name}: {counts} box lines/box changes/pushing sessions")
    for by in ("pushes", "moves"):
        if len(row["solutions"]) > 1 and row[f"best_{by}"]:
            parts.append(f"best {by}: {row[f'best_{by}'][by]}")
    twin = row["twin"]
    if twin:
        what = "duplicate of" if twin["cells"] == 0 else f"{twin['cells']} cells from"
        parts.append(f"{what} {twin['file']} {twin['index']}")
    return "  ".join(parts)
