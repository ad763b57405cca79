"""Whether fused kernels are used where there are some: always, but while something is held against doing without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_allowed = True


def allowed() -> bool:
    """Whether a fused kernel may stand in for plain torch now."""
    return _allowed


@contextmanager
def plainly() -> Iterator[None]:
    """Plain torch only, within the block.

    >>> with plainly():
    ...     allowed()
    False
    >>> allowed()
    True
    """
    global _allowed
    before, _allowed = _allowed, False
    try:
        yield
    finally:
        _allowed = before
