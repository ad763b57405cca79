"""Run-length encoding, in which ``3#2-$`` stands for ``###--$`` and ``2r3U`` for ``rrUUU``."""

from __future__ import annotations

import re

from ..errors import LevelFileError

_COUNT = re.compile("[0-9]")
_RUN = re.compile("([0-9]*)([^0-9])")


def expand(text: str, limit: int, problem: str, path: str, line: int, column: int = 1) -> str:
    """``text`` with every run written out; for more than ``limit`` letters there is a ``problem`` instead.

    >>> expand("3#2-$", 64, "more than 64 cells in a row", "maze.sok", line=1)
    '###--$'
    """
    if len(text) <= limit and not _COUNT.search(text):
        return text
    runs, total = [], 0
    for run in _RUN.finditer(text):
        digits, letter = run.groups()
        # The length of a count is looked at before its value, which might have a million digits.
        count = limit + 1 if len(digits) > 9 else int(digits or 1)
        total += count
        if total > limit:
            raise LevelFileError(path, problem, line, column + run.start())
        runs.append(letter * count)
    return "".join(runs)
