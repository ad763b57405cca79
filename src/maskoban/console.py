"""What every command shares: results on standard output, everything else on standard error, clean endings.

Nothing heavy is imported before it is needed, so that ``--help`` answers at once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from maskoban.boards import Level
    from maskoban.solving import Rating

#: The most levels judged together: enough to keep every core busy.
CHUNK = 512

#: The exit code of a command that Ctrl-C has ended.
INTERRUPTED = 130

#: How often a log is told how far the work is.
SECONDS_A_LINE = 30

_STYLES = {
    "solved": "green",
    "solvable": "green",
    "repaired": "cyan",
    "unknown": "yellow",
    "unsolvable": "red",
    "unrepaired": "red",
    "malformed": "magenta",
}


class Commands(TyperGroup):
    """Commands that end as people expect: with 2 and one sentence on bad input, with 130 on Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            from maskoban.boards.errors import MaskobanError

            if not isinstance(error, MaskobanError):
                raise
            complain(str(error))
            sys.exit(2)
        except KeyboardInterrupt as interrupt:
            # Work that can be taken up again says so in the interrupt it raises.
            for sentence in interrupt.args:
                complain(str(sentence))
            sys.exit(INTERRUPTED)


class Report:
    """Results on standard output, a line of text or of JSON a level, and their sum at the end.

    Where whoever reads them leaves, as `head` does, there is no more to do, but for the ``files`` that were asked for.
    """

    def __init__(self, as_json: bool, *files: str | None) -> None:
        from rich.console import Console

        self.console = Console(highlight=False, soft_wrap=True)
        self.as_json, self.files = as_json, any(files)
        self.verdicts: Counter[str] = Counter()
        self.waiting: list[Text] = []

    def add(self, index: int, level: Level, row: dict[str, Any], told: str, below: str = "") -> None:
        """One level's row; ``told`` is what a person wants to know of it."""
        verdict = row["verdict"]
        self.verdicts[verdict] += 1
        if self.as_json:
            named = {"index": index, "title": level.title, "board": str(level), "id": level.id}
            self._write(json.dumps({**named, **row}))
            return
        rest = "  ".join(part for part in (told.strip(), row["reason"], level.title) if part)
        self._write(f"{index:>5}  ", (f"{verdict:<10}", _STYLES[verdict]), f"  {rest}")
        if below:
            self._write(f"       {below}")

    def draw(self, index: int, level: Level) -> None:
        """One board, with a comment line above it that level files may have too."""
        from maskoban.pictures import board_text

        self._write((f"; {level.title or index}", "dim"))
        self._write(board_text(level.tokens, self.console))
        self._write("")
        self.flush()

    def add_drawn(
        self,
        first: int,
        levels: Sequence[Level],
        facts: Sequence[dict[str, Any]],
        ratings: Sequence[Rating],
    ) -> None:
        """Boards that were drawn, numbered from ``first``, with the solver's judgement of each.

        Terminals show them side by side. Elsewhere they are level files: boards below comment lines.
        """
        from rich.text import Text

        from maskoban.pictures import board_text, sheet_text

        self.verdicts.update(rating.verdict for rating in ratings)
        if self.as_json:
            for level, fact, rating in zip(levels, facts, ratings, strict=True):
                row = {"index": first, **fact, "board": str(level), "id": level.id, **rating.as_json()}
                self._write(json.dumps(row))
                first += 1
        elif self.console.is_terminal:
            captions = []
            for index, rating in enumerate(ratings, first):
                strong, _, soft = caption(rating).partition("\n")
                head = (strong, _STYLES[rating.verdict])
                captions.append(Text.assemble((f"{index} ", "dim"), head, (f"\n{soft}", "dim")))
            self._write(sheet_text([level.tokens for level in levels], captions, self.console))
            self._write("")
        else:
            for index, (level, rating) in enumerate(zip(levels, ratings, strict=True), first):
                told = ", ".join(caption(rating).splitlines())
                self._write(f"; {index}: {told}")
                self._write(board_text(level.tokens, self.console))
                self._write("")
        self.flush()

    def counts(self) -> str:
        """How often each verdict came, the most frequent first."""
        return ", ".join(f"{count:,} {verdict}" for verdict, count in self.verdicts.most_common())

    def finish(self, good: set[str]) -> None:
        """Say the sum, and leave with code 1 if any level is not as good as was asked."""
        total = self.verdicts.total()
        if total > 1 and not self.as_json:
            print(f"{total:,} levels: {self.counts()}", file=sys.stderr)
        if set(self.verdicts) - good:
            raise typer.Exit(1)

    def flush(self) -> None:
        """Show what was added: on a terminal in one piece, for each piece draws the progress below it anew."""
        if self.waiting:
            from rich.text import Text

            self.console.print(Text("\n").join(self.waiting))
            self.waiting.clear()
        with self._read_or_not():
            sys.stdout.flush()

    def _write(self, *parts: str | Text | tuple[str, str]) -> None:
        if self.console.is_terminal:
            from rich.text import Text

            self.waiting.append(Text.assemble(*parts))
        else:  # rich would take most of the time of a large collection
            line = "".join(part[0] if isinstance(part, tuple) else str(part) for part in parts).rstrip()
            with self._read_or_not():
                print(line)

    @contextmanager
    def _read_or_not(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            if not self.files:
                raise
            mute()


def caption(rating: Rating) -> str:
    """A rating in two short lines: the verdict with the word for it, and the reason for them.

    >>> from maskoban.solving import Rating
    >>> caption(Rating("solved", effort=1200, pushes=27, word="medium"))
    'solved, medium\\n27 pushes, effort 1,200'
    """
    head = ", ".join(filter(None, [rating.verdict, rating.word]))
    if rating.verdict != "solved":
        return f"{head}\n{rating.reason or 'every push was tried'}"
    pushes = f"{rating.pushes:,} push{'es' if rating.pushes != 1 else ''}"
    return f"{head}\n{pushes}, effort {rating.effort:,}" if rating.effort >= 0 else f"{head}\n{pushes}"


def chunks(file: str, doing: str, report: Report) -> Iterator[tuple[int, list[Level]]]:
    """The levels of a file a chunk at a time, each with the index of its first, and a count on terminals.

    The first chunk is one level and each other twice the one before, up to ``CHUNK``: what is found early is
    seen early, and long collections still keep every core busy.
    """
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from maskoban.boards import stream

    console = _console_beside(report)
    columns = SpinnerColumn(), TextColumn(f"{doing} {{task.completed:,}} levels done"), TimeElapsedColumn()
    levels = stream(file)
    done, size = 0, 1
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal,
                  redirect_stdout=False) as bar:  # fmt: skip
        task = bar.add_task(doing, total=None)
        while chunk := list(islice(levels, size)):
            yield done, chunk
            done += len(chunk)
            bar.update(task, completed=done)
            report.flush()
            size = min(2 * size, CHUNK)


@contextmanager
def progress_bar(doing: str, report: Report) -> Iterator[Callable[[int, int], None]]:
    """A bar on terminals, moved by calls with (done, in all); in a log, a line every half a minute."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = _console_beside(report)
    if not console.is_terminal:
        yield _lines(doing)
        return
    columns = TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(doing: str) -> Callable[[int, int], None]:
    """Tells standard error from time to time how far the work is."""
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_A_LINE:
            last = time.monotonic()
            print(f"{doing}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    return tell


def _console_beside(report: Report) -> Console:
    """Where a bar goes: beside results on a terminal it must share their console, or both get mixed up."""
    from rich.console import Console

    return report.console if report.console.is_terminal else Console(stderr=True)


def mute() -> None:
    """Let nothing more come out of standard output, nor any word of what was left in it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(sentence: str) -> None:
    """Tell people what is wrong."""
    print(f"maskoban: {sentence}", file=sys.stderr)
