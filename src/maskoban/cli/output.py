"""What every command shares: results on standard output, everything else on standard error, exit codes."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

import typer
from typer.core import TyperGroup

from maskoban._util.progress import OnProgress, bar
from maskoban._util.signals import INTERRUPTED, is_interrupt, raise_on_interrupt
from maskoban.errors import FileError, MaskobanError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from maskoban.boards import Level
    from maskoban.solving import Rating

#: The most levels solved together: enough to keep every core busy.
CHUNK = 512

#: Seconds between two lines of progress in a log.
SECONDS_PER_LINE = 30

_PYTHONS = warnings.showwarning

_STYLES = {
    "solved": "green",
    "solvable": "green",
    "repaired": "cyan",
    "unknown": "yellow",
    "unsolvable": "red",
    "unrepaired": "red",
    "malformed": "magenta",
}


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning about a level file like an error, and any other as Python does."""
    if category.__name__ == "LevelFileWarning":  # whose module is not loaded for every command
        complain(str(message))
    else:
        _PYTHONS(message, category, filename, lineno, file, line)


class Commands(TyperGroup):
    """Commands that exit with 2 and one sentence on bad input, and with 130 on Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        raise_on_interrupt()
        warnings.showwarning = _show_warning
        try:
            return super().invoke(ctx)
        except MaskobanError as error:
            complain(str(error))
            sys.exit(2)
        except MemoryError:
            complain("not enough memory for so much at once")
            sys.exit(2)
        except (KeyboardInterrupt, ImportError) as error:
            if not is_interrupt(error):
                raise
            # Work that can be resumed says so in the interrupt it raises.
            for sentence in error.args if isinstance(error, KeyboardInterrupt) else ():
                complain(str(sentence))
            sys.exit(INTERRUPTED)


class Output:
    """Results on standard output, a line of text or JSON a level, and the sum of verdicts at the end.

    Where the reader of a pipe leaves, as `head` does, the command ends, unless it also writes ``files``.
    """

    def __init__(self, as_json: bool, *files: str | None) -> None:
        from rich.console import Console

        self.console = Console(highlight=False, soft_wrap=True)
        self.as_json, self.files = as_json, any(files)
        self.verdicts: Counter[str] = Counter()
        self.waiting: list[Text] = []
        self.warnings = 0

    def add(self, index: int, level: Level, row: dict[str, Any], text: str, below: str = "") -> None:
        """Print one level's row: as JSON, or as ``text`` after the verdict, with a line ``below``."""
        verdict = row["verdict"]
        self.verdicts[verdict] += 1
        if self.as_json:
            named = {"index": index, "title": level.title, "board": str(level), "id": level.id}
            self._write(json.dumps({**named, **row}))
            return
        rest = "  ".join(part for part in (text.strip(), row["reason"], level.title) if part)
        self._write(f"{index:>5}  ", (f"{verdict:<10}", _STYLES[verdict]), f"  {rest}")
        if below:
            self._write(f"       {below}")

    def show(self, index: int, level: Level) -> None:
        """Print one board below a comment line, as in a level file."""
        from maskoban.pictures import board_text

        self._write((f"; {level.title or index}", "dim"))
        self._write(board_text(level.tokens, self.console))
        self._write("")
        self.flush()

    def add_sampled(
        self, first: int, levels: Sequence[Level], facts: Sequence[dict[str, Any]], ratings: Sequence[Rating]
    ) -> None:
        """Print sampled boards, numbered from ``first``, with their ratings.

        Side by side on a terminal; elsewhere as a level file, boards below comment lines.
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
                text = ", ".join(caption(rating).splitlines())
                self._write(f"; {index}: {text}")
                self._write(board_text(level.tokens, self.console))
                self._write("")
        self.flush()

    def warn(self, warning: FileError) -> None:
        """Print a warning about a level file to standard error, and with --json also as a line of the output."""
        self.warnings += 1
        complain(str(warning))
        if self.as_json:
            found = {"file": warning.path, "line": warning.line, "problem": warning.problem}
            self._write(json.dumps({"warning": found}))

    def counts(self) -> str:
        """The number of levels by verdict, the most frequent first."""
        return ", ".join(f"{count:,} {verdict}" for verdict, count in self.verdicts.most_common())

    def finish(self, good: set[str], bad: int = 0) -> None:
        """Print the sum, and exit with code 1 if any verdict is not a good one, or something else is ``bad``."""
        total = self.verdicts.total()
        if total > 1 and not self.as_json:
            print(f"{total:,} levels: {self.counts()}", file=sys.stderr)
        if bad or set(self.verdicts) - good:
            raise typer.Exit(1)

    def flush(self) -> None:
        """Print what was added: on a terminal in one piece, since each piece draws the progress bar again."""
        if self.waiting:
            from rich.text import Text

            self.console.print(Text("\n").join(self.waiting))
            self.waiting.clear()
        with self._broken_pipe_allowed():
            sys.stdout.flush()

    def _write(self, *parts: str | Text | tuple[str, str]) -> None:
        if self.console.is_terminal:
            from rich.text import Text

            self.waiting.append(Text.assemble(*parts))
        else:  # rich would take most of the time of a large collection
            line = "".join(part[0] if isinstance(part, tuple) else str(part) for part in parts).rstrip()
            with self._broken_pipe_allowed():
                print(line)

    @contextmanager
    def _broken_pipe_allowed(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            if not self.files:
                raise
            mute()


def caption(rating: Rating) -> str:
    """A rating in two short lines: verdict and difficulty, then the numbers or the reason.

    >>> from maskoban.solving import Rating
    >>> caption(Rating("solved", effort=1200, pushes=27, difficulty="medium"))
    'solved, medium\\n27 pushes, effort 1,200'
    """
    head = ", ".join(filter(None, [rating.verdict, rating.difficulty]))
    if rating.verdict != "solved":
        return f"{head}\n{rating.reason or 'every push was tried'}"
    pushes = f"{rating.pushes:,} push{'es' if rating.pushes != 1 else ''}"
    return f"{head}\n{pushes}, effort {rating.effort:,}" if rating.effort >= 0 else f"{head}\n{pushes}"


def chunks(file: str, doing: str, output: Output, strict: bool) -> Iterator[tuple[int, list[Level]]]:
    """The levels of a file a chunk at a time, each with the index of its first; terminals show a count.

    Chunks grow from one level to ``CHUNK``: first results come early, and long files keep every core busy.
    """
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from maskoban.boards import stream, take

    console = _progress_console(output)
    columns = SpinnerColumn(), TextColumn(f"{doing} {{task.completed:,}} levels done"), TimeElapsedColumn()
    levels = stream(file, strict=strict, on_warning=output.warn)
    done, size = 0, 1
    shown = Progress(*columns, console=console, transient=True, redirect_stdout=False)
    # Off a terminal it never starts: older versions of rich end even a disabled one with an empty line.
    with shown if console.is_terminal else nullcontext():
        task = shown.add_task(doing, total=None)
        while chunk := take(levels, size):
            yield done, chunk
            done += len(chunk)
            shown.update(task, completed=done)
            output.flush()
            size = min(2 * size, CHUNK)


@contextmanager
def progress_bar(doing: str, output: Output | None = None) -> Iterator[OnProgress]:
    """A progress bar on terminals, moved by calls with (done, total); elsewhere a line every half a minute."""
    console = _progress_console(output)
    with bar(doing, console.is_terminal, console) as moved:
        yield moved if console.is_terminal else _lines(doing)


def _lines(doing: str) -> OnProgress:
    last = time.monotonic()

    def on_progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_PER_LINE:
            last = time.monotonic()
            print(f"{doing}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    return on_progress


def _progress_console(output: Output | None) -> Console:
    """The console of a progress bar: that of the results where both are on one terminal, so that they do not mix."""
    from rich.console import Console

    console = output.console if output else Console()
    return console if console.is_terminal else Console(stderr=True)


def mute() -> None:
    """Discard everything written to standard output from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(sentence: str) -> None:
    """Print an error or a warning to standard error."""
    print(f"maskoban: {sentence}", file=sys.stderr)


def boards_text(count: int) -> str:
    """A number of boards in words.

    >>> boards_text(1), boards_text(1000)
    ('1 board', '1,000 boards')
    """
    return f"{count:,} board{'' if count == 1 else 's'}"
