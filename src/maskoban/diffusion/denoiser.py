"""The contracts between networks and everything that draws with them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.tiles import Tokens
from maskoban.diffusion.schedule import Schedule


class Grid(Protocol):
    """What is drawn of a ``height`` x ``width`` board: the cells inside ``margin`` rings of wall, row by row."""

    height: int
    width: int
    margin: int


class Denoiser(Grid, Protocol):
    """Masked tokens in, logits over the seven tiles out.

    ``steps`` is the T and ``schedule`` the one it was trained with. It likes to be asked about ``batch`` boards at a
    time, by up to ``overlap`` threads at once; where that is more than one, a batch takes its time however few boards
    are in it.
    """

    steps: int
    schedule: Schedule
    batch: int
    overlap: int

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of the named cells: tokens (n, drawn cells), t (n,), cells (n, k) to (n, k, 7)."""
        ...


class Critic(Protocol):
    """Finished boards in, scores out: the log of how much likelier each is in the corpus than among drawings."""

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        """Scores of finished boards, (n, drawn cells) to (n,); what else is in the batch changes none of them."""
        ...
