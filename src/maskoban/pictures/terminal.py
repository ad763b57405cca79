"""Boards in a terminal: two coloured characters a cell, or plain text without colours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Console
from rich.text import Text

from maskoban.boards import Level
from maskoban.boards.tiles import BOX, BOX_ON_GOAL, FLOOR, GOAL, MASK, PLAYER, PLAYER_ON_GOAL, WALL, Tokens
from maskoban.pictures import palette
from maskoban.pictures.tileset import OUTSIDE, ROCK, looks

# For each tile: two characters, their colour and the background.
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

_GAP = "   "

#: Captions are wrapped at the width of the boards, but at least at this width.
_CAPTION = 24


def board_text(tokens: Tokens, console: Console) -> Text:
    """The board for this console: coloured cells where it has colours, else one character a cell.

    >>> import io
    >>> import numpy as np
    >>> board_text(np.array([[2, 3, 4]], np.uint8), Console(file=io.StringIO())).plain
    '@$.'
    """
    if not console.is_terminal or console.no_color or console.color_system is None:
        return Text(str(Level(tokens)))
    text = Text()
    for row, look_row in zip(tokens.tolist(), looks(tokens).tolist(), strict=True):
        if text:
            text.append("\n")
        for token, look in zip(row, look_row, strict=True):
            letters, ink, background = _CELLS[token]
            if look == OUTSIDE:
                text.append("  ")
            else:
                text.append(letters, f"bold {ink} on {palette.ROCK if look == ROCK else background}")
    return text


def sheet_text(boards: Sequence[Tokens], captions: Sequence[Text], console: Console) -> Text:
    """Boards side by side, as many as fit the width of the console, with their captions below.

    >>> import io
    >>> import numpy as np
    >>> board = np.array([[2, 3, 4]], np.uint8)
    >>> narrow = Console(file=io.StringIO(), width=60)
    >>> print(sheet_text([board] * 3, [Text("a"), Text("b"), Text("c")], narrow).plain)
    @$.                        @$.
    a                          b
    <BLANKLINE>
    @$.
    c
    """
    drawn = [board_text(board, console).split("\n") for board in boards]
    wide = max(_CAPTION, *(line.cell_len for lines in drawn for line in lines))
    cards = [[*lines, *caption.wrap(console, wide)] for lines, caption in zip(drawn, captions, strict=True)]
    columns = max(1, (console.width + len(_GAP)) // (wide + len(_GAP)))
    rows = []
    for start in range(0, len(cards), columns):
        for *lines, last in zip_longest(*cards[start : start + columns], fillvalue=Text()):
            rows.append(Text(_GAP).join([*(_padded(line, wide) for line in lines), last]))
        rows.append(Text())
    return Text("\n").join(rows[:-1])


def _padded(line: Text, width: int) -> Text:
    padded = line.copy()
    padded.pad_right(width - line.cell_len)
    return padded
