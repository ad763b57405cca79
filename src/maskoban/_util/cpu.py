"""The number of CPU cores."""

from __future__ import annotations

import os


def cpu_count() -> int:
    """Cores this process may use.

    >>> cpu_count() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
