"""Ctrl-C that waits for the right moment."""

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
