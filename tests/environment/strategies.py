"""Boards for hypothesis to play: any shape, walls anywhere, goals under boxes and under the player."""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from maskoban.boards import BOX, BOX_ON_GOAL, FLOOR, GOAL, PLAYER, PLAYER_ON_GOAL, WALL, Tokens

_ON_GOAL = {FLOOR: GOAL, BOX: BOX_ON_GOAL, PLAYER: PLAYER_ON_GOAL}


@st.composite
def playable(draw: st.DrawFn, max_side: int = 6) -> Tokens:
    """A board that can be played: one player, as many goals as boxes, and not solved yet."""
    height, width = draw(st.integers(1, max_side)), draw(st.integers(1, max_side))
    cells = height * width
    assume(cells >= 3)
    boxes = draw(st.integers(1, min(4, cells - 2)))
    player, *rest = draw(st.permutations(range(cells)))
    stood_on = set(rest[:boxes])
    goals = set(draw(st.permutations(range(cells)))[:boxes])
    assume(stood_on != goals)
    free = sorted(set(range(cells)) - stood_on - goals - {player})
    walls = draw(st.sets(st.sampled_from(free), max_size=cells // 3)) if free else set()
    board = np.full(cells, FLOOR, np.uint8)
    board[list(walls)] = WALL
    board[list(stood_on)] = BOX
    board[player] = PLAYER
    for goal in goals:
        board[goal] = _ON_GOAL[int(board[goal])]
    return board.reshape(height, width)


actions = st.lists(st.integers(0, 3), max_size=60)
