"""Waiting for other processes, on machines of any speed."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

#: Seconds. Only a hang takes longer, however busy the machine is.
LIMIT = 600


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until the condition holds or the process has ended."""
    limit = time.monotonic() + LIMIT
    while not condition() and process.poll() is None:
        assert time.monotonic() < limit, "the process hangs"
        time.sleep(0.05)
