"""How far long work is: told to whoever asks, or shown as a bar on the error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

#: Told (done, in all) every now and then.
Progress: TypeAlias = Callable[[int, int], None]


@contextmanager
def bar(doing: str, total: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    """A bar, where one is wanted, that moves when the function is told how many of ``total`` are done.

    >>> with bar("counting", 3, wanted=False) as show:
    ...     show(3)
    """
    if not wanted:
        yield lambda done: None
        return
    # Here, so that boards are solved and models trained where only NumPy and torch are.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Shown

    columns = TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Shown(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(doing, total=total)
        yield lambda done: shown.update(task, completed=done)
