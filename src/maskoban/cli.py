"""The command line: one thin command per capability.

Heavy modules are imported inside the commands, so that ``--help`` answers at once. Results go to standard
output, everything else to standard error. Exit codes: 0 fine, 1 something asked for was not found (a level
without solution, a board that could not be repaired), 2 bad input, 130 interrupted.

A new capability is one more command in the first part, in the order in which a board travels; what several
commands share stands in the second.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.text import Text

    from maskoban.boards import Level
    from maskoban.solving import Limits, Repair

app = typer.Typer(
    help="Prove, repair, rate, show and convert Sokoban levels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: Levels judged together: enough to keep every core busy, few enough to see results soon.
CHUNK = 512

_STYLES = {
    "solved": "green",
    "solvable": "green",
    "repaired": "cyan",
    "unknown": "yellow",
    "unsolvable": "red",
    "unrepaired": "red",
    "malformed": "magenta",
}


class Mode(StrEnum):
    """What a solution is to be."""

    any = "any"
    pushes = "pushes"
    effort = "effort"


File = Annotated[
    str, typer.Argument(metavar="FILE", help="Level file of any format, a folder of them, or - for stdin.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a level a line.")]
Threads = Annotated[int | None, typer.Option(min=1, show_default="all cores", help="Threads to use.")]
States = Annotated[int | None, typer.Option(min=0, help="Give up on a level after so many states.")]
Seconds = Annotated[float | None, typer.Option(min=0, help="Give up on a level after so many seconds.")]
Megabytes = Annotated[int, typer.Option(min=1, help="Memory each thread's search may use.")]


# --- commands -----------------------------------------------------------------------------------------------


@app.command()
def solve(
    file: File,
    mode: Annotated[Mode, typer.Option(help="Any solution, fewest pushes, or effort.")] = Mode.any,
    as_json: Json = False,
    threads: Threads = None,
    states: States = None,
    seconds: Seconds = None,
    megabytes: Megabytes = 1024,
) -> None:
    """Solve levels, or prove that they cannot be solved.

    Solutions are written in LURD: lower case walks, upper case pushes.
    Mode [b]any[/b] finds a solution as fast as it can, [b]pushes[/b] one with the fewest
    pushes, and [b]effort[/b] counts the states a plain breadth-first search
    expands, which is the measure of difficulty.

    Keys of --json: index (counted from 0), title, verdict (solved, unsolvable,
    unknown or malformed), reason, pushes, moves, solution (null without one),
    expanded, seconds.

    \b
    Examples:
      maskoban solve levels.sok
      maskoban solve --mode pushes --json levels.xsb > solutions.jsonl
      printf '#####\\n#@$.#\\n#####\\n' | maskoban solve -
    """
    from maskoban.solving import solve_many

    limits = _limits(states, seconds, megabytes)
    report = _Report(as_json)
    for first, levels in _chunks(file, "solving", report):
        results = solve_many(levels, mode.value, threads=threads, limits=limits)
        for index, level in enumerate(levels, first):
            result = results[index - first]
            row = {
                "verdict": result.verdict,
                "reason": result.reason,
                "pushes": result.pushes if result.solved else None,
                "moves": result.moves if result.solved else None,
                "solution": result.solution if result.solved else None,
                "expanded": result.expanded,
                "seconds": round(result.seconds, 6),
            }
            shown = ("pushes", "moves", "expanded") if mode is Mode.effort else ("pushes", "moves")
            report.add(index, level, row, _measures(row, shown), below=result.solution)
    report.finish(good={"solved"})


@app.command()
def repair(
    file: File,
    all_: Annotated[bool, typer.Option("--all", help="Every cure, not only the first.")] = False,
    walls: Annotated[int, typer.Option(min=1, max=2, help="2: try pairs where no single wall helps.")] = 1,
    out: Annotated[str | None, typer.Option(help="Save the levels that are solvable now.")] = None,
    as_json: Json = False,
    threads: Threads = None,
    states: States = None,
    seconds: Seconds = None,
    megabytes: Megabytes = 1024,
) -> None:
    """Find the interior walls whose removal makes unsolvable levels solvable.

    With --out, repaired levels are saved with their first cure applied, and
    with them those that were solvable already; the others are left out.

    Keys of --json: index (counted from 0), title, verdict (solvable, repaired,
    unrepaired, unknown or malformed), reason, walls. Each entry of walls is one
    cure: a list of the \\[row, column] cells to remove together.

    \b
    Examples:
      maskoban repair broken.xsb
      maskoban repair --walls 2 --all --json broken.xsb
      maskoban repair broken.xsb --out mended.sok
    """
    from maskoban.boards import write
    from maskoban.solving import repair_many

    limits = _limits(states, seconds, megabytes)
    report = _Report(as_json)
    solvable: list[Level] = []
    for first, levels in _chunks(file, "repairing", report):
        repairs = repair_many(levels, walls, all_, threads=threads, limits=limits)
        for index, (level, found) in enumerate(zip(levels, repairs, strict=True), first):
            row = {"verdict": found.verdict, "reason": found.reason, "walls": found.walls}
            cures = " or ".join(" and ".join(f"({r}, {c})" for r, c in cure) for cure in found.walls)
            report.add(index, level, row, f"without {cures}" if cures else "")
            if out and found.verdict in ("solvable", "repaired"):
                solvable.append(_mended(level, found))
    if out and solvable:
        write(out, solvable)
    report.finish(good={"solvable", "repaired"})


@app.command()
def rate(
    file: File,
    as_json: Json = False,
    threads: Threads = None,
    states: States = None,
    seconds: Seconds = None,
    megabytes: Megabytes = 1024,
) -> None:
    """Say how hard levels are: easy, medium, hard or expert, and why.

    The word is the quarter of the Boxoban medium training levels in which the
    effort falls: the states a plain breadth-first search expands. All other
    numbers belong to a solution with the fewest pushes.

    Keys of --json: index (counted from 0), title, verdict, reason, effort,
    pushes, moves, box_changes, box_lines, word; null where not known.

    \b
    Examples:
      maskoban rate levels.sok
      maskoban rate --json levels.sok | jq 'select(.word == "hard")'
    """
    from dataclasses import asdict

    from maskoban.solving import rate_many

    limits = _limits(states, seconds, megabytes)
    report = _Report(as_json)
    for first, levels in _chunks(file, "rating", report):
        ratings = rate_many(levels, threads=threads, limits=limits)
        for index, (level, rating) in enumerate(zip(levels, ratings, strict=True), first):
            row = {key: None if value == -1 else value for key, value in asdict(rating).items()}
            row["word"] = rating.word or None
            shown = ("effort", "pushes", "moves", "box_changes", "box_lines")
            report.add(index, level, row, f"{rating.word:<6}  {_measures(row, shown)}")
    report.finish(good={"solved"})


@app.command()
def show(
    file: File,
    out: Annotated[str | None, typer.Option(help="Save a picture instead: .png or .svg.")] = None,
    solution: Annotated[str | None, typer.Option(help="Save a GIF of a level being solved.")] = None,
    level: Annotated[int | None, typer.Option(min=0, help="Only this level, counted from 0.")] = None,
) -> None:
    """Draw levels in the terminal, as a picture, or being solved.

    --solution plays the solution in the file if there is one that works, else
    it looks for one; of a collection it takes the first level unless --level
    says otherwise.

    \b
    Examples:
      maskoban show levels.sok
      maskoban show levels.sok --out levels.png
      maskoban show levels.sok --level 3 --out level.svg --solution level.gif
    """
    from maskoban.boards import MaskobanError, stream
    from maskoban.pictures import board_text, save_picture, solution_gif

    first = level or 0
    chosen = islice(stream(file), first, None if level is None else first + 1)
    head = next(chosen, None)
    if head is None:
        raise MaskobanError(f"{file}: there is no level {level}")
    if out:
        shown = [head, *chosen]
        titles = [each.title for each in shown]
        save_picture(out, [each.tokens for each in shown], titles if any(titles) else None)
    if solution:
        steps = _solution(head)
        if steps is None:
            _complain(f"level {first} has no solution to show")
            raise typer.Exit(1)
        solution_gif(head, steps, solution)
    if not out and not solution:
        report = _Report(as_json=False)
        for index, each in enumerate(chain([head], chosen), first):
            report.draw(index, each, board_text(each.tokens, report.console))


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="Level file, folder of them, or - for stdin.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="File to write, or - for stdout.")],
    to: Annotated[str | None, typer.Option(help="Format: xsb, sok, slc, boxoban or npz.")] = None,
) -> None:
    """Convert levels between formats.

    What is read is recognised by its content; what is written follows --to, or
    else the ending of its name.

    \b
    Examples:
      maskoban convert levels.slc levels.sok
      maskoban convert boxoban-levels/hard hard.npz
      cat levels.sok | maskoban convert - - --to xsb
    """
    from maskoban.boards import stream, write

    write(target, stream(source), to)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        import maskoban

        print(f"maskoban {maskoban.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; what a user got wrong ends with one sentence and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A title that the terminal's encoding lacks is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    try:
        app(prog_name="maskoban")
    except ValueError as error:
        from maskoban.boards.errors import MaskobanError

        if not isinstance(error, MaskobanError):
            raise
        _complain(str(error))
        sys.exit(2)
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read us has left, as `head` does; nothing more is to be said, not even on the way out.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- what the commands share ----------------------------------------------------------------------------


class _Report:
    """Results on standard output, a line of text or of JSON a level, and their sum at the end."""

    def __init__(self, as_json: bool) -> None:
        from rich.console import Console

        self.console = Console(highlight=False, soft_wrap=True)
        self.as_json = as_json
        self.verdicts: Counter[str] = Counter()

    def add(self, index: int, level: Level, row: dict[str, Any], told: str, below: str = "") -> None:
        """One level's row; ``told`` is what a person wants to know of it."""
        verdict = row["verdict"]
        self.verdicts[verdict] += 1
        if self.as_json:
            self._write(json.dumps({"index": index, "title": level.title, **row}))
            return
        rest = "  ".join(part for part in (told.strip(), row["reason"], level.title) if part)
        self._write(f"{index:>5}  ", (f"{verdict:<10}", _STYLES[verdict]), f"  {rest}")
        if below:
            self._write(f"       {below}")

    def draw(self, index: int, level: Level, board: Text) -> None:
        """One board, with a comment line above it that level files may have too."""
        self._write((f"; {level.title or index}", "dim"))
        self._write(board)
        self._write("")

    def finish(self, good: set[str]) -> None:
        """Say the sum, and leave with code 1 if any level is not as good as was asked."""
        total = self.verdicts.total()
        if total > 1 and not self.as_json:
            counts = ", ".join(f"{count:,} {verdict}" for verdict, count in self.verdicts.most_common())
            print(f"{total:,} levels: {counts}", file=sys.stderr)
        if set(self.verdicts) - good:
            raise typer.Exit(1)

    def _write(self, *parts: str | Text | tuple[str, str]) -> None:
        if self.console.is_terminal:
            from rich.text import Text

            self.console.print(Text.assemble(*parts))
        else:  # rich would take most of the time of a large collection
            print("".join(part[0] if isinstance(part, tuple) else str(part) for part in parts).rstrip())


def _chunks(file: str, doing: str, report: _Report) -> Iterator[tuple[int, list[Level]]]:
    """The levels of a file a chunk at a time, each with the index of its first, and a count on terminals."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from maskoban.boards import stream

    # A bar and results on one terminal must share a console, or they overwrite each other.
    console = report.console if report.console.is_terminal else Console(stderr=True)
    columns = SpinnerColumn(), TextColumn(f"{doing} {{task.completed:,}} levels done"), TimeElapsedColumn()
    levels = stream(file)
    done = 0
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal,
                  redirect_stdout=False) as bar:  # fmt: skip
        task = bar.add_task(doing, total=None)
        while chunk := list(islice(levels, CHUNK)):
            yield done, chunk
            done += len(chunk)
            bar.update(task, completed=done)
            sys.stdout.flush()


def _measures(row: dict[str, Any], names: tuple[str, ...]) -> str:
    """The measures that are known, each after its name."""
    return "  ".join(f"{name.replace('_', ' ')} {row[name]:,}" for name in names if row[name] is not None)


def _limits(states: int | None, seconds: float | None, megabytes: int) -> Limits:
    from maskoban.solving import Limits

    return Limits(states=states, seconds=seconds, megabytes=megabytes)


def _mended(level: Level, found: Repair) -> Level:
    """The level without the walls of its first cure."""
    from dataclasses import replace

    from maskoban.boards import FLOOR

    if not found.walls:
        return level
    tokens = level.tokens.copy()
    for cell in found.walls[0]:
        tokens[cell] = FLOOR
    return replace(level, tokens=tokens)


def _solution(level: Level) -> str | None:
    """A solution of the level: its own if one works, else a short one, else any."""
    from maskoban.boards import MaskobanError
    from maskoban.solving import Limits, solve, solves

    for own in level.solutions:
        try:
            if solves(level, own):
                return own
        except MaskobanError:
            continue
    result = solve(level, "pushes", Limits(seconds=10))
    if result.verdict == "unknown":
        result = solve(level)
    return result.solution if result.solved else None


def _complain(sentence: str) -> None:
    print(f"maskoban: {sentence}", file=sys.stderr)
