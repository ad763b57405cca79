"""The rules of the game in plain Python: play a solution step by step and check whether it solves its level.

This module does not use the native core, so that it can check the core's solutions independently.

A solution is written in LURD: one letter per step, ``l u r d`` for a walk to the left, up, right, down and
``L U R D`` for a push. A letter whose case disagrees with what happens on the board is an error, because such a
solution belongs to another level. The edge of the grid acts as a wall.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from maskoban.boards import Level
from maskoban.boards.tiles import BOX, BOX_ON_GOAL, FLOOR, GOAL, PLAYER, PLAYER_ON_GOAL, SYMBOLS, WALL, Tokens
from maskoban.errors import MaskobanError

_STEPS = {"l": (0, -1), "u": (-1, 0), "r": (0, 1), "d": (1, 0)}
_EXPECTED = "expected one of l, u, r, d, L, U, R, D"

# The tile that remains when the player or the box leaves, and the tile when one arrives.
_WITHOUT_PLAYER = {PLAYER: FLOOR, PLAYER_ON_GOAL: GOAL}
_WITHOUT_BOX = {BOX: FLOOR, BOX_ON_GOAL: GOAL}
_WITH_PLAYER = {FLOOR: PLAYER, GOAL: PLAYER_ON_GOAL}
_WITH_BOX = {FLOOR: BOX, GOAL: BOX_ON_GOAL}


class IllegalStepError(MaskobanError):
    """A step the rules forbid; ``index`` is its position in the solution, counted from 0.

    >>> str(IllegalStepError(3, "U", "there is no box to push"))
    "step 3 ('U'): there is no box to push"
    """

    def __init__(self, index: int, letter: str, problem: str) -> None:
        self.index, self.letter, self.problem = index, letter, problem
        super().__init__(f"step {index} ({letter!r}): {problem}")


@dataclass(frozen=True)
class Counts:
    """The length of a solution in the measures players compare."""

    moves: int
    pushes: int
    box_changes: int
    box_lines: int


def play(level: Level | Tokens, lurd: str) -> Iterator[Tokens]:
    """Every position of the game: the start, then one board after each step.

    Raises `IllegalStepError` at a step the rules forbid, after the positions before it.

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
    """Whether every box stands on a goal after all steps; an illegal step raises `IllegalStepError`.

    >>> solves(Level.parse("#####\\n#@$.#\\n#####"), "R")
    True
    """
    game = _Game(level)
    for index, letter in enumerate(lurd):
        game.step(index, letter)
    return BOX not in game.cells


def count(lurd: str) -> Counts:
    """Moves, pushes, box changes and box lines of a solution, read from its letters alone.

    Moves are all steps, walks and pushes. Box changes count how often the pushed box changes: A, then B, then A
    again makes 3. A box line is a run of pushes of one box in one direction without a walk between them.

    >>> count("RRurDlddR")
    Counts(moves=9, pushes=4, box_changes=2, box_lines=3)
    """
    row = column = changes = 0
    box: tuple[int, int] | None = None  # where the last pushed box stands, relative to the player's start
    for index, letter in enumerate(lurd):
        if letter.lower() not in _STEPS:
            raise IllegalStepError(index, letter, _EXPECTED)
        down, right = _STEPS[letter.lower()]
        row, column = row + down, column + right
        if letter.isupper():
            changes += (row, column) != box
            box = (row + down, column + right)
    # The player cannot reach another box without another letter, so equal letters in a row are one line.
    lines = sum(letter.isupper() for letter, _ in groupby(lurd))
    return Counts(len(lurd), sum(map(str.isupper, lurd)), changes, lines)


def pushing_sessions(lurd: str) -> int:
    """How often a player begins to push: the number of runs of pushes without a walk between them.

    >>> pushing_sessions("RRurDlddR")
    3
    """
    return sum(pushes for pushes, _ in groupby(lurd, str.isupper))


class _Game:
    """A level being played: a flat list of cells, framed by walls so that no step can leave it."""

    def __init__(self, level: Level | Tokens) -> None:
        tokens = level.tokens if isinstance(level, Level) else level
        framed = np.pad(tokens, 1, constant_values=WALL)
        self.shape = framed.shape
        self.cells: list[int] = framed.ravel().tolist()
        players = [i for i, tile in enumerate(self.cells) if tile in _WITHOUT_PLAYER]
        if len(players) != 1:
            raise MaskobanError(f"expected exactly one player, got {len(players)}")
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
