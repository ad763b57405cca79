"""What a drawing is made of: every commit, in order, with its probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.tiles import TILES, Tokens

#: The commits of one evaluation: (boards, cells, tiles, probabilities of the seven tiles), one row a commit.
Made = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class Commits:
    """Every commit of a batch of drawings, in order. Cells count over the whole board, row by row.

    Boards with fewer commits than the longest are filled up with cell -1.
    """

    start: Tokens  # (n, height, width): the boards before the first commit
    step: NDArray[np.int32]  # (n, commits): the network evaluation it came from
    cell: NDArray[np.int32]  # (n, commits)
    tile: NDArray[np.uint8]  # (n, commits)
    probabilities: NDArray[np.float32]  # (n, commits, 7): of each tile when it was committed

    def take(self, boards: NDArray[np.int64], other: Commits, rows: NDArray[np.bool_]) -> None:
        """Give these boards, which have none yet, the commits of these rows of another's."""
        width = other.cell.shape[1]
        for name in ("step", "cell", "tile", "probabilities"):
            getattr(self, name)[boards, :width] = getattr(other, name)[rows]

    def frames(self) -> Tokens:
        """The boards before the first step and after every step: (steps + 1, n, height, width)."""
        boards = self.start.copy()
        flat = boards.reshape(len(boards), -1)
        frames = [boards.copy()]
        for step in range(int(self.step.max(initial=-1)) + 1):
            board, commit = np.nonzero((self.step == step) & (self.cell >= 0))
            flat[board, self.cell[board, commit]] = self.tile[board, commit]
            frames.append(boards.copy())
        return np.stack(frames)

    def probability(self) -> NDArray[np.float32]:
        """The probability of each cell's tile when it was last committed; NaN for given cells: (n, h, w)."""
        shape = self.start.shape
        last = np.full((shape[0], shape[1] * shape[2]), np.nan, dtype=np.float32)
        chosen = np.take_along_axis(self.probabilities, self.tile[..., None].astype(np.int64), axis=2)[..., 0]
        for commit in range(self.cell.shape[1]):
            board = np.nonzero(self.cell[:, commit] >= 0)[0]
            last[board, self.cell[board, commit]] = chosen[board, commit]
        return last.reshape(shape)


def no_commits(start: Tokens, room: int) -> Commits:
    """None as yet, and room for so many a board."""
    shape = (len(start), room)
    steps, cells = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
    return Commits(
        start.copy(), steps, cells, np.zeros(shape, np.uint8), np.zeros((*shape, TILES), np.float32)
    )


def gathered(start: Tokens, inside: NDArray[np.int64], log: list[Made]) -> Commits:
    """The commits of one evaluation after the other, regrouped board by board; ``inside`` are the drawn cells."""
    if not log:
        return no_commits(start, 0)
    board, cell, tile, p = (np.concatenate(parts) for parts in zip(*log, strict=True))
    step = np.repeat(np.arange(len(log)), [len(made[0]) for made in log])
    by_board = np.argsort(board, kind="stable")
    board = board[by_board]
    counts = np.bincount(board, minlength=len(start))
    place = np.arange(len(board)) - np.repeat(np.cumsum(counts) - counts, counts)
    commits = no_commits(start, int(counts.max()))
    commits.step[board, place] = step[by_board]
    commits.cell[board, place] = inside[cell[by_board]]
    commits.tile[board, place] = tile[by_board]
    commits.probabilities[board, place] = p[by_board]
    return commits
