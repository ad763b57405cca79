"""maskoban solve, optimize, repair, rate: what the solver finds out about levels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maskoban.cli.options import File, Outputs, Searching
from maskoban.cli.output import Output, chunks, complain, progress_bar

if TYPE_CHECKING:
    from maskoban.boards import Level

Mode = Literal["any", "pushes", "effort"]

#: Levels of a corpus that are solved to find its quarters.
REFERENCE_LEVELS = 10_000


def solve(
    file: File,
    *,
    mode: Annotated[Mode, typer.Option(help="Any solution, fewest pushes, or effort.")] = "any",
    searching: Searching,
) -> None:
    """Solve levels, or prove that they cannot be solved.

    Solutions are written in LURD: lower case walks, upper case pushes.
    Mode [b]any[/b] finds a solution as fast as it can, [b]pushes[/b] one with the fewest
    pushes, and [b]effort[/b] counts the states a plain breadth-first search
    expands, which is the measure of difficulty. The exit code is 1 where a level
    was not solved.

    Keys of --json: index (counted from 0), title, board (text), id, verdict
    (solved, unsolvable, unknown or malformed), reason, pushes, moves, solution
    (null without one), expanded, seconds, limit_hit (states, memory, time or null).

    \b
    Examples:
      maskoban solve levels.sok
      maskoban solve --mode pushes --json levels.xsb > solutions.jsonl
      printf '#####\\n#@$.#\\n#####\\n' | maskoban solve -
    """
    from maskoban.solving import solve_many

    limits, threads = searching.limits(), searching.threads
    output = Output(searching.as_json)
    for first, levels in chunks(file, "solving", output, searching.strict):
        results = solve_many(levels, mode, threads=threads, limits=limits)
        for index, level in enumerate(levels, first):
            result = results[index - first]
            row = result.as_json()
            shown = ("pushes", "moves", "expanded") if mode == "effort" else ("pushes", "moves")
            output.add(index, level, row, _measures(row, shown), below=result.solution)
    output.finish(good={"solved"})


def optimize(
    file: File,
    *,
    by: Annotated[Literal["moves", "pushes"], typer.Option(help="What to make shorter.")] = "moves",
    out: Annotated[str | None, typer.Option(help="Save the levels with their shorter solutions.")] = None,
    searching: Searching,
) -> None:
    """Shorten the solutions in a level file; a level without one is solved first.

    Every window of pushes that move at most four boxes is searched again. A
    solution never gets longer by the chosen measure, and each one is replayed.
    The shortest of several solutions is taken; one that does not solve its level
    is ignored. The exit code is 1 where a level was not solved.

    Keys of --json: those of solve, and before: the solution that was shortened.

    \b
    Examples:
      maskoban optimize solved.sok --out shorter.sok
      maskoban optimize levels.xsb --by pushes --seconds 60
    """
    from dataclasses import replace

    from maskoban.boards import write
    from maskoban.solving import optimize_many, solve_many
    from maskoban.solving.optimize import length, shortest_given

    Outputs(out).check()
    limits, threads = searching.limits(), searching.threads
    output = Output(searching.as_json, out)
    kept: list[Level] = []
    for first, levels in chunks(file, "optimizing", output, searching.strict):
        given = [shortest_given(level, by) for level in levels]
        unsolved = [i for i, solution in enumerate(given) if solution is None]
        found = solve_many([levels[i] for i in unsolved], threads=threads, limits=limits)
        results = dict(zip(unsolved, found, strict=True))
        before = [results[i].solution if solution is None else solution for i, solution in enumerate(given)]
        solved = [i for i in range(len(levels)) if i not in results or results[i].solved]
        shorter = optimize_many([levels[i] for i in solved], [before[i] for i in solved], by, threads, limits)
        results.update(zip(solved, shorter, strict=True))
        for i, level in enumerate(levels):
            result = results[i]
            row = {**result.as_json(), "before": before[i] if result.solved else None}
            saved = length(before[i], by)[0] - length(result.solution, by)[0]
            text = f"{_measures(row, ('pushes', 'moves'))}  {saved:,} {by} fewer" if result.solved else ""
            output.add(first + i, level, row, text, below=result.solution)
            if out:
                kept.append(replace(level, solutions=(result.solution,)) if result.solved else level)
    if out:
        write(out, kept)
    output.finish(good={"solved"})


def repair(
    file: File,
    *,
    all_: Annotated[bool, typer.Option("--all", help="Every repair, not only the first.")] = False,
    walls: Annotated[int, typer.Option(min=1, max=2, help="2: also try pairs of walls.")] = 1,
    out: Annotated[str | None, typer.Option(help="Save the solvable and repaired levels.")] = None,
    searching: Searching,
) -> None:
    """Find the interior walls whose removal makes unsolvable levels solvable.

    With --out, repaired levels are saved with their first repair applied, and
    with them those that were solvable already; the others are left out, and the
    exit code is 1 where there are any.

    Keys of --json: index (counted from 0), title, board (text, as it was), id,
    verdict (solvable, repaired, unrepaired, unknown or malformed), reason, walls,
    limit_hit.
    Each entry of walls is one repair: a list of the \\[row, column] cells, counted
    from 0, to remove together.

    \b
    Examples:
      maskoban repair broken.xsb
      maskoban repair --walls 2 --all --json broken.xsb
      maskoban repair broken.xsb --out repaired.sok
    """
    from maskoban.boards import write
    from maskoban.solving import repair_many

    Outputs(out).check()
    limits, threads = searching.limits(), searching.threads
    output = Output(searching.as_json, out)
    solvable: list[Level] = []
    for first, levels in chunks(file, "repairing", output, searching.strict):
        repairs = repair_many(levels, walls, all_, threads=threads, limits=limits)
        for index, (level, found) in enumerate(zip(levels, repairs, strict=True), first):
            row = {name: getattr(found, name) for name in ("verdict", "reason", "walls", "limit_hit")}
            repairs_text = " or ".join(" and ".join(f"({r}, {c})" for r, c in cells) for cells in found.walls)
            output.add(index, level, row, f"without {repairs_text}" if repairs_text else "")
            if out and found.verdict in ("solvable", "repaired"):
                solvable.append(found.apply(level))
    if out and solvable:
        write(out, solvable)
    elif out:
        complain(f"nothing to write to {out}: no level could be made solvable")
    output.finish(good={"solvable", "repaired"})


def rate(
    file: File,
    *,
    corpus: Annotated[
        str | None,
        typer.Option(
            show_default="by size and boxes",
            help=f"Rate by the quarters of these levels (the first {REFERENCE_LEVELS:,} of them).",
        ),
    ] = None,
    searching: Searching,
) -> None:
    """Say how hard levels are: easy, medium, hard or expert, and why.

    The word is the quarter of a reference of the level's size and number of boxes.
    Levels of 10x10 with four boxes are rated by the effort of Boxoban's medium
    levels: the states a plain breadth-first search expands. All others are rated by
    the guided effort, the states a guided search expands, of synthetic boards; the
    line names the reference. The decomposed effort counts what a
    player considers who delivers few boxes at a time; boxes at once is the largest
    number of boxes that have to be delivered together. The other numbers belong to
    a solution with the fewest pushes. The exit code is 1 where a level has no
    solution.

    Keys of --json: index (counted from 0), title, board (text), id, verdict,
    reason, effort, pushes, moves, box_changes, box_lines, word, limit_hit,
    decomposed_effort, boxes_at_once, decomposed_word, guided_effort, reference;
    null where not known.

    \b
    Examples:
      maskoban rate levels.sok
      maskoban rate mine.sok --corpus levels8x8.npz
      maskoban rate --json a.sok | jq -r 'select(.word == "hard").board + "\\n"'
    """
    from maskoban.boards import corpus as corpora
    from maskoban.solving.rating import quartiles_of, rate_many, summarise

    limits, threads = searching.limits(), searching.threads
    output = Output(searching.as_json)
    quartiles = None
    if corpus is not None:
        with progress_bar("rating the corpus", output) as progress:
            reference = corpora.load(corpus)[:REFERENCE_LEVELS]
            quartiles = quartiles_of(summarise(reference, threads, limits, progress))
    for first, levels in chunks(file, "rating", output, searching.strict):
        ratings = rate_many(levels, threads, limits, quartiles)
        for index, (level, rating) in enumerate(zip(levels, ratings, strict=True), first):
            if corpus is not None and rating.difficulty:
                rating = replace(rating, reference=corpus)
            row = rating.as_json()
            shown = (
                "effort",
                "guided_effort",
                "decomposed_effort",
                "boxes_at_once",
                "pushes",
                "moves",
                "box_changes",
                "box_lines",
            )
            by = f"  by {rating.reference}" if rating.reference else ""
            output.add(index, level, row, f"{rating.difficulty:<6}  {_measures(row, shown)}{by}")
    output.finish(good={"solved"})


def _measures(row: dict[str, Any], names: tuple[str, ...]) -> str:
    """The measures that are known, each after its name."""
    return "  ".join(f"{name.replace('_', ' ')} {row[name]:,}" for name in names if row[name] is not None)
