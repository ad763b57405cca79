"""What an agent sees of a board: tokens, planes or pixels, for one board or for many at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from maskoban.boards import TILES, MaskobanError, Tokens

#: The kinds of observation: ``tokens`` (h, w), ``planes`` (7, h, w), ``rgb`` (h, w, 3); all of them uint8.
Observation = Literal["tokens", "planes", "rgb"]

Seen = NDArray[np.uint8]

# One pixel a cell, in the colours of gym-sokoban's tiny world, which agents trained elsewhere know. By token.
_COLOURS = np.array(
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
_EACH_TILE = np.arange(TILES, dtype=np.uint8)[:, None, None]


def observing(
    kind: Observation, shape: tuple[int, int]
) -> tuple[spaces.Space[Seen], Callable[[Tokens], Seen]]:
    """The space of one observation, and what turns boards (..., h, w) into new arrays of them.

    >>> space, see = observing("planes", (10, 10))
    >>> space.shape, see(np.zeros((64, 10, 10), np.uint8)).shape
    ((7, 10, 10), (64, 7, 10, 10))
    """
    kinds: dict[str, tuple[tuple[int, ...], int, Callable[[Tokens], Seen]]] = {
        "tokens": (shape, TILES - 1, np.copy),
        "planes": ((TILES, *shape), 1, _planes),
        "rgb": ((*shape, 3), 255, _rgb),
    }
    if kind not in kinds:
        raise MaskobanError(f"an observation is one of {', '.join(get_args(Observation))}, not {kind!r}")
    size, high, see = kinds[kind]
    space: spaces.Box[np.uint8] = spaces.Box(0, high, size, np.uint8)
    return space, see


def _planes(boards: Tokens) -> Seen:
    # Many times faster than looking every cell up in a table of planes and moving the axes.
    there: NDArray[np.bool_] = boards[..., None, :, :] == _EACH_TILE
    return there.view(np.uint8)


def _rgb(boards: Tokens) -> Seen:
    return _COLOURS.take(boards, axis=0)
