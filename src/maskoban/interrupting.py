"""Ctrl-C that waits for the right moment, and other ways of being told to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[list[int]]:
    """Hold Ctrl-C back until the block is over.

    Half an optimiser step, or half of the averaged weights swapped in, is a state that no uninterrupted run is
    ever in: saved and resumed, it would lead elsewhere. The block can look whether it came: what the block is
    given is no longer empty then. Within another such block, it is held back until that one is over.

    >>> with uninterrupted():
    ...     pass  # a Ctrl-C here is raised as KeyboardInterrupt when the block ends
    """
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not main or not callable(before):
        yield []  # other threads are never interrupted, and Ctrl-C may be switched off altogether
        return
    caught: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        before(caught[0], None)


@contextmanager
def saved_when_told_to_end(processes: int) -> Iterator[None]:
    """Take SIGTERM and SIGHUP (a machine that is given back, a terminal that is closed) for Ctrl-C.

    Only where one process trains: those of several are ended together by who started them. What is ignored, as under
    nohup, stays ignored.

    >>> with saved_when_told_to_end(1):
    ...     pass
    """
    ways = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if processes > 1 or threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [way for way in ways if signal.getsignal(way) is signal.SIG_DFL]
    for way in taken:
        signal.signal(way, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for way in taken:
            signal.signal(way, signal.SIG_DFL)
