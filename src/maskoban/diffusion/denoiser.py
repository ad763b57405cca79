"""The one contract between a network and everything that draws with it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.tiles import Tokens


class Denoiser(Protocol):
    """Masked tokens in, logits over the seven tiles out.

    A denoiser draws the cells inside ``margin`` rings of wall of a ``height`` x ``width`` board, row by row;
    ``steps`` is the T it was trained with. It likes to be asked about ``batch`` boards at a time, by up to
    ``overlap`` threads at once.
    """

    height: int
    width: int
    margin: int
    steps: int
    batch: int
    overlap: int

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of the named cells: tokens (n, drawn cells), t (n,), cells (n, k) to (n, k, 7)."""
        ...
