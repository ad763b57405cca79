"""A board for people to look at: a picture, or text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Level, MaskobanError, Tokens

#: How an environment can be rendered; frames a second is what a recorded video shows.
METADATA: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 8}


def check_render_mode(mode: str | None) -> None:
    """Refuse a render mode there is none of.

    >>> check_render_mode("human")
    Traceback (most recent call last):
        ...
    maskoban.boards.errors.MaskobanError: a render mode is None, rgb_array or ansi, not 'human'
    """
    if mode is not None and mode not in METADATA["render_modes"]:
        raise MaskobanError(f"a render mode is None, rgb_array or ansi, not {mode!r}")


def rendered(board: Tokens, mode: str) -> NDArray[np.uint8] | str:
    """A picture of 32 pixels a cell as (rows, columns, 3), or with ``ansi`` a letter a cell.

    >>> print(rendered(np.array([[0, 2, 3, 4]], np.uint8), "ansi"))
    #@$.
    """
    if mode == "ansi":
        return str(Level(board))
    from maskoban.pictures import board_image  # only who looks needs to load the pictures

    return np.array(board_image(board).convert("RGB"))
