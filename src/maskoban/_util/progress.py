"""Progress of long work: callbacks of (done, total), and a bar on the error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

#: Called with (done, total) from time to time.
OnProgress: TypeAlias = Callable[[int, int], None]


@contextmanager
def bar(doing: str, wanted: bool = True, console: Console | None = None) -> Iterator[OnProgress]:
    """A callback that moves a bar on a console; one that does nothing where no bar is ``wanted``.

    >>> with bar("counting", wanted=False) as on_progress:
    ...     on_progress(3, 3)
    """
    if not wanted:
        yield lambda done, total: None
        return
    # Imported here, because solving and training need NumPy and torch only.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = console or Console(stderr=True)
    # In a log the last state of the bar stays; on a terminal the bar goes away.
    with Progress(*columns, console=console, transient=console.is_terminal, redirect_stdout=False) as shown:
        task = shown.add_task(doing, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
