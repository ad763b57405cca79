"""Ctrl-C that waits for the right moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the block is over.

    Half an optimiser step, or half of the averaged weights swapped in, is a state that no uninterrupted run is
    ever in: saved and resumed, it would lead elsewhere.

    >>> with uninterrupted():
    ...     pass  # a Ctrl-C here is raised as KeyboardInterrupt when the block ends
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(signal.getsignal(signal.SIGINT)):
        yield  # other threads are never interrupted, and Ctrl-C may be switched off altogether
        return
    caught: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        raise KeyboardInterrupt
