"""The game's rules in plain Python: play a solution step by step and see whether it solves its level.

Nothing here knows the native core, so that its solutions can be checked by someone who cannot share its bugs.

A solution is written in LURD: one letter a step, ``l u r d`` for a walk to the left, up, right, down and
``L U R D`` for a push. Case is part of the notation: a letter whose case disagrees with what happens on the
board is an error, because a solution that walks where it says it pushes belongs to another level. The edge of
the grid acts as a wall.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from maskoban.boards import Level, MaskobanError
from maskoban.boards.tiles import (
    BOX,
    BOX_ON_GOAL,
    FLOOR,
    GOAL,
    PLAYER,
    PLAYER_ON_GOAL,
    SYMBOLS,
    WALL,
    Tokens,
)

_STEPS = {"l": (0, -1), "u": (-1, 0), "r": (0, 1), "d": (1, 0)}
_EXPECTED = "expected one of l, u, r, d, L, U, R, D"

# What is left when the player or the box leaves, and what there is when one arrives.
_WITHOUT_PLAYER = {PLAYER: FLOOR, PLAYER_ON_GOAL: GOAL}
_WITHOUT_BOX = {BOX: FLOOR, BOX_ON_GOAL: GOAL}
_WITH_PLAYER = {FLOOR: PLAYER, GOAL: PLAYER_ON_GOAL}
_WITH_BOX = {FLOOR: BOX, GOAL: BOX_ON_GOAL}


class IllegalStepError(MaskobanError):
    """A step the rules forbid; ``index`` is its place in the solution, counted from 0.

    >>> str(IllegalStepError(3, "U", "there is no box to push"))
    "step 3 ('U'): there is no box to push"
    """

    def __init__(self, index: int, letter: str, problem: str) -> None:
        self.index, self.letter, self.problem = index, letter, problem
        super().__init__(f"step {index} ({letter!r}): {problem}")


@dataclass(frozen=True)
class Counts:
    """How long a solution is, in the measures players compare."""

    moves: int
    pushes: int
    box_changes: int
    box_lines: int


def play(level: Level | Tokens, lurd: str) -> Iterator[Tokens]:
    """Every position of the game in turn: the level as given, then one board after each step.

    Raises `IllegalStepError` on reaching a step the rules forbid; the positions before it have been given.

    >>> level = Level.parse("#####\\n#@$.#\\n#####")
    >>> [str(Level(position)).splitlines()[1] for position in play(level, "R")]
    ['#@$.#', '# @*#']
    """
    game = _Game(level)
    yield game.position()
    for index, letter in enumerate(lurd):
        game.step(index, letter)
        yield game.position()


def solves(level: Level | Tokens, lurd: str) -> bool:
    """Whether every box stands on a goal when all steps are played; an illegal one raises `IllegalStepError`.

    >>> solves(Level.parse("#####\\n#@$.#\\n#####"), "R")
    True
    """
    game = _Game(level)
    for index, letter in enumerate(lurd):
        game.step(index, letter)
    return BOX not in game.cells


def count(lurd: str) -> Counts:
    """Moves, pushes, box changes and box lines of a solution, read from its letters alone.

    Moves are all steps, walks and pushes. Box changes are the turns the boxes get: pushing A, then B, then A
    again makes 3. Box lines are the straight pushes: any number of pushes of one box in one direction with no
    walk between them is one line, however long.

    >>> count("RRurDlddR")
    Counts(moves=9, pushes=4, box_changes=2, box_lines=3)
    """
    row = column = changes = 0
    box: tuple[int, int] | None = None  # where the box pushed last stands, seen from the player's start
    for index, letter in enumerate(lurd):
        if letter.lower() not in _STEPS:
            raise IllegalStepError(index, letter, _EXPECTED)
        down, right = _STEPS[letter.lower()]
        row, column = row + down, column + right
        if letter.isupper():
            changes += (row, column) != box
            box = (row + down, column + right)
    # The player cannot turn to another box without changing letter, so equal letters in a row are one line.
    lines = sum(letter.isupper() for letter, _ in groupby(lurd))
    return Counts(len(lurd), sum(map(str.isupper, lurd)), changes, lines)


class _Game:
    """A level being played: a flat list of cells, framed by walls so that no step can leave it."""

    def __init__(self, level: Level | Tokens) -> None:
        tokens = level.tokens if isinstance(level, Level) else level
        framed = np.pad(tokens, 1, constant_values=WALL)
        self.shape = framed.shape
        self.cells: list[int] = framed.ravel().tolist()
        players = [i for i, tile in enumerate(self.cells) if tile in _WITHOUT_PLAYER]
        if len(players) != 1:
            raise MaskobanError(f"a game needs exactly one player, not {len(players)}")
        self.player = players[0]
        self.offsets = {letter: down * self.shape[1] + right for letter, (down, right) in _STEPS.items()}

    def position(self) -> Tokens:
        return np.array(self.cells, dtype=np.uint8).reshape(self.shape)[1:-1, 1:-1]

    def step(self, index: int, letter: str) -> None:
        cells, offset = self.cells, self.offsets.get(letter.lower())
        if offset is None:
            raise IllegalStepError(index, letter, _EXPECTED)
        there = self.player + offset
        if cells[there] in _WITHOUT_BOX:
            if letter.islower():
                raise IllegalStepError(index, letter, f"this pushes a box, written {letter.upper()!r}")
            beyond = there + offset
            if cells[beyond] not in _WITH_BOX:
                raise IllegalStepError(index, letter, f"the box cannot move onto {SYMBOLS[cells[beyond]]!r}")
            cells[beyond] = _WITH_BOX[cells[beyond]]
            cells[there] = _WITHOUT_BOX[cells[there]]
        elif letter.isupper():
            raise IllegalStepError(index, letter, "there is no box to push")
        if cells[there] not in _WITH_PLAYER:
            raise IllegalStepError(index, letter, f"the player cannot walk onto {SYMBOLS[cells[there]]!r}")
        cells[there] = _WITH_PLAYER[cells[there]]
        cells[self.player] = _WITHOUT_PLAYER[cells[self.player]]
        self.player = there
