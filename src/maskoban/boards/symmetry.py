"""The eight ways to turn and mirror a board."""

from __future__ import annotations

import numpy as np

from .tiles import Tokens


def symmetries(tokens: Tokens) -> list[Tokens]:
    """The board, its three quarter turns (anticlockwise), then the mirrored board and its three.

    Works on one board ``(h, w)`` or a batch ``(n, h, w)``; odd quarter turns exchange height and width.

    >>> [s.tolist() for s in symmetries(np.array([[2, 3, 4]], np.uint8))[:3]]
    [[[2, 3, 4]], [[4], [3], [2]], [[4, 3, 2]]]
    """
    mirrored = np.flip(tokens, axis=-1)
    return [np.rot90(t, k, axes=(-2, -1)) for t in (tokens, mirrored) for k in range(4)]
