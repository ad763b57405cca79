"""What a partly given board must be, so that a model can complete it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Level
from maskoban.boards.tiles import MASK, WALL, Tokens, object_counts, tile_counts
from maskoban.diffusion.denoiser import interior_cells
from maskoban.errors import MaskobanError

if TYPE_CHECKING:
    from maskoban.diffusion.model import Model


def model_tokens(model: Model, board: Level | Tokens) -> Tokens:
    """The tokens of a board, which must have the model's size."""
    tokens = board.tokens if isinstance(board, Level) else board
    if not isinstance(tokens, np.ndarray):
        kind = type(tokens).__name__
        raise MaskobanError(f"board: expected a Level or an array of tokens, got a {kind}")
    if tokens.shape != (model.height, model.width):
        size, need = "x".join(map(str, tokens.shape)), f"{model.height}x{model.width}"
        fits = tokens.ndim == 2 and tokens.shape[0] <= model.height and tokens.shape[1] <= model.width
        hint = "; surround it with #" if fits else ""
        raise MaskobanError(f"the board is {size}, but model {model.name!r} samples {need} boards{hint}")
    if (unknown := tokens > MASK).any():
        raise MaskobanError(f"{_first_cell(unknown)} holds {tokens[unknown][0]}; expected a tile, 0 to 7")
    return tokens


def partial_board(model: Model, board: Level | Tokens) -> Tokens:
    """The tokens of a board to complete, with masked cells of its border as wall."""
    tokens = model_tokens(model, board).copy()
    border = np.ones(tokens.shape, dtype=bool)
    border.reshape(-1)[interior_cells(model.denoiser)] = False
    tokens[border & (tokens == MASK)] = WALL
    if (gaps := border & (tokens != WALL)).any():
        raise MaskobanError(f"the border must be wall, but {_first_cell(gaps)} is not")
    return tokens


def check_counts(tokens: Tokens, boxes: int | None) -> None:
    """Raise where no completion has one player, and as many boxes (or so many) as goals."""
    counts = tile_counts(tokens[None])
    (given,), (goals,), (players,) = (each.tolist() for each in object_counts(counts))
    masked = int(counts[MASK, 0])
    if players > 1:
        raise MaskobanError(f"the board has {players} players; expected at most one")
    if boxes is not None and given > boxes:
        raise MaskobanError(f"the board has {given} boxes; expected at most {boxes}")
    # A masked cell can become the player on a goal, so one cell may serve twice.
    spare = masked - (players == 0)
    if masked and (spare < 0 or given > goals + masked or goals > given + spare):
        problem = f"{masked} masked cells cannot make up the difference"
        raise MaskobanError(f"the board has {given} boxes and {goals} goals, and {problem}")


def _first_cell(cells: NDArray[np.bool_]) -> str:
    row, column = np.argwhere(cells)[0]
    return f"row {row}, column {column} (from 0)"
