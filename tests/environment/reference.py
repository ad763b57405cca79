"""The rules and the observations for many boards at once, in NumPy: slow, obvious, and without the native core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import BOX, BOX_ON_GOAL, FLOOR, GOAL, PLAYER, PLAYER_ON_GOAL, TILES, WALL, Tokens

_OFFSETS = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
COLOURS = np.array(
    [
        (0, 0, 0),
        (243, 248, 238),
        (160, 212, 56),
        (142, 121, 56),
        (254, 126, 125),
        (254, 95, 56),
        (219, 212, 56),
    ],
    np.uint8,
)


def step(boards: Tokens, actions: NDArray[np.int64]) -> tuple[Tokens, NDArray[np.float64], NDArray[np.bool_]]:
    """The boards after one action each (up, down, left, right), rewards, and which are solved."""
    framed = np.pad(boards, ((0, 0), (2, 2), (2, 2)), constant_values=WALL)  # no step leads out of it
    every, rows, columns = np.nonzero((framed == PLAYER) | (framed == PLAYER_ON_GOAL))
    down, right = _OFFSETS[actions].T
    here, there, beyond = (
        (every, rows + distance * down, columns + distance * right) for distance in range(3)
    )
    goal = np.isin(framed, (GOAL, BOX_ON_GOAL, PLAYER_ON_GOAL))
    box = np.isin(framed, (BOX, BOX_ON_GOAL))
    free = np.isin(framed, (FLOOR, GOAL))
    push = box[there] & free[beyond]
    move = free[there] | push
    before = (framed == BOX_ON_GOAL).sum((1, 2))
    after = framed.copy()
    after[here] = np.where(move, np.where(goal[here], GOAL, FLOOR), framed[here])
    after[there] = np.where(move, np.where(goal[there], PLAYER_ON_GOAL, PLAYER), framed[there])
    after[beyond] = np.where(push, np.where(goal[beyond], BOX_ON_GOAL, BOX), after[beyond])
    solved = ~(after == BOX).any((1, 2))
    rewards = -0.1 + (after == BOX_ON_GOAL).sum((1, 2)) - before + 10 * solved
    return after[:, 2:-2, 2:-2], rewards, solved


def observe(kind: str, boards: Tokens) -> NDArray[np.uint8]:
    """The observations of boards, looked up cell by cell."""
    if kind == "planes":
        return np.stack([boards == tile for tile in range(TILES)], 1).astype(np.uint8)
    if kind == "boxoban":
        planes = (PLAYER, PLAYER_ON_GOAL), (WALL,), (BOX, BOX_ON_GOAL), (GOAL, BOX_ON_GOAL, PLAYER_ON_GOAL)
        return np.stack([np.isin(boards, tiles) for tiles in planes], 1).astype(np.uint8)
    return COLOURS[boards] if kind == "rgb" else boards
