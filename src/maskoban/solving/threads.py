"""How many threads the native core works on."""

from __future__ import annotations

from numbers import Integral

from maskoban.boards import MaskobanError
from maskoban.cores import cores

# Beyond this more threads help nobody.
_MOST_THREADS = 256


def threads_for(asked: int | None) -> int:
    """As many threads as are asked for and make sense, or one a core.

    >>> threads_for(3), threads_for(1_000_000)
    (3, 256)
    """
    if asked is not None and not (isinstance(asked, Integral) and asked >= 1):
        raise MaskobanError(f"threads must be a whole number, 1 or more, but is {asked!r}")
    return min(int(asked or cores()), _MOST_THREADS)
