"""Boards in a terminal: two characters a cell, in colour; plain letters where there is none."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from maskoban.boards.tiles import (
    BOX,
    BOX_ON_GOAL,
    FLOOR,
    GOAL,
    MASK,
    PLAYER,
    PLAYER_ON_GOAL,
    SYMBOLS,
    WALL,
    Tokens,
)
from maskoban.pictures import palette
from maskoban.pictures.surroundings import OUTSIDE, ROCK, looks

# What each tile looks like: two letters, their colour and the colour behind them.
_CELLS = {
    WALL: ("  ", palette.INK, palette.WALL_TOP),
    FLOOR: ("  ", palette.INK, palette.FLOOR_TILE),
    PLAYER: ("@@", palette.MARK_TEXT, palette.COAT),
    BOX: ("[]", palette.CRATE_DARK, palette.CRATE_PLANK),
    GOAL: ("()", palette.GOAL_MARK, palette.FLOOR_TILE),
    BOX_ON_GOAL: ("**", palette.DONE_TICK, palette.DONE_FRAME),
    PLAYER_ON_GOAL: ("++", palette.MARK_TEXT, palette.COAT),
    MASK: ("??", palette.MASK_STAR, palette.MASK_INSET),
}


def board_text(tokens: Tokens, console: Console) -> Text:
    """The board for this console: coloured cells on a terminal with colours, else one letter a cell.

    >>> import io
    >>> import numpy as np
    >>> board_text(np.array([[2, 3, 4]], np.uint8), Console(file=io.StringIO())).plain
    '@$.'
    """
    if not console.is_terminal or console.no_color or console.color_system is None:
        rows = ("".join(SYMBOLS[token] for token in row).rstrip() for row in tokens.tolist())
        return Text("\n".join(rows))
    shown = looks(tokens)
    text = Text()
    for row, look_row in zip(tokens.tolist(), shown.tolist(), strict=True):
        if text:
            text.append("\n")
        for token, look in zip(row, look_row, strict=True):
            letters, ink, behind = _CELLS[token]
            if look == OUTSIDE:
                text.append("  ")
            else:
                text.append(letters, f"bold {ink} on {palette.ROCK if look == ROCK else behind}")
    return text
