"""Ctrl-C while the program loads, Ctrl-C that waits until a block ends, and SIGTERM treated like Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: The exit code after Ctrl-C.
INTERRUPTED = 130


def _exit(*_: object) -> None:
    os._exit(INTERRUPTED)


def exit_on_interrupt() -> None:
    """Let Ctrl-C end the process without a traceback: for the time in which modules load and no work has begun."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as under nohup
        signal.signal(signal.SIGINT, _exit)


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise ``KeyboardInterrupt`` again."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an exception is Ctrl-C, or what a native module makes of one while it is imported.

    >>> is_interrupt(KeyboardInterrupt()), is_interrupt(ImportError("initialization failed"))
    (True, False)
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


@contextmanager
def defer_interrupt() -> Iterator[list[int]]:
    """Hold Ctrl-C back until the block ends.

    Half an optimiser step is a state that no uninterrupted run is ever in: it must not be saved. The block
    receives a list that is no longer empty once Ctrl-C was pressed. In nested blocks the outermost raises.

    >>> with defer_interrupt():
    ...     pass  # a Ctrl-C here is raised as KeyboardInterrupt when the block ends
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield []  # only the main thread is interrupted, and Ctrl-C may be ignored altogether
        return
    caught: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, handler)
    if caught:
        handler(caught[0], None)


@contextmanager
def terminate_as_interrupt(processes: int = 1) -> Iterator[None]:
    """Treat SIGTERM and SIGHUP (a machine is taken back, a terminal is closed) like Ctrl-C.

    Several ``processes`` are left alone: whoever started them ends them together. A signal that is ignored, as
    under nohup, stays ignored.

    >>> with terminate_as_interrupt():
    ...     pass
    """
    if processes > 1 or threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    signals = [s for name in names if signal.getsignal(s := getattr(signal, name)) is signal.SIG_DFL]
    for number in signals:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_DFL)
