"""Synthetic boards: a carved room, and boxes pulled backwards from their goals.

Used where there is no corpus, and in tests. A board is made from its solved position: boxes stand on the goals,
and a random player *pulls* them away. Every pull reversed is a legal push, so the board is solvable by
construction, without a solver.

A room is one Python integer with a bit a cell (row-major, ``row * width + column``), so that flood fills and
"which boxes can be pulled left" are a few shifts. The border is always wall, so shifts never wrap around.
"""

from __future__ import annotations

from random import Random

import numpy as np

from maskoban._util.progress import OnProgress
from maskoban.boards.tiles import (
    BOX,
    BOX_ON_GOAL,
    FLOOR,
    GOAL,
    MAX_SIDE,
    PLAYER,
    PLAYER_ON_GOAL,
    WALL,
    Tokens,
)
from maskoban.errors import MaskobanError

#: Rooms tried for one board before a box may stay on its goal, or the board is impossible.
ROOMS = 60


def synthesize(
    n: int,
    height: int = 10,
    width: int = 10,
    boxes: int = 4,
    seed: int = 0,
    *,
    walls: float = 0.55,
    first: int = 0,
    on_progress: OnProgress | None = None,
) -> Tokens:
    """``n`` solvable boards ``(n, height, width)`` with a border of wall.

    ``walls`` is the mean share of wall inside the border; the default is close to Boxoban's 10x10 boards. It is
    lower where the boxes need the room. Boards are numbered from ``first``, and a board depends only on its
    number and the seed.

    >>> synthesize(1000, height=8, width=8, boxes=2, seed=7).shape
    (1000, 8, 8)
    """
    if n < 0 or first < 0:
        raise MaskobanError(f"cannot make {n} boards from number {first}: neither may be negative")
    if not 0 <= walls < 1:
        raise MaskobanError(f"the share of walls must be at least 0 and below 1, not {walls}")
    if boxes < 1:
        raise MaskobanError(f"a board needs at least 1 box, not {boxes}")
    if max(height, width) > MAX_SIDE:
        raise MaskobanError(f"a {height}x{width} board is too large: at most {MAX_SIDE} rows and columns")
    inside = max(height - 2, 0) * max(width - 2, 0)
    if inside < 2 * boxes + 1:
        raise MaskobanError(
            f"a {height}x{width} board has {inside} cells inside its border; "
            f"with {_count(boxes)} it takes at least {2 * boxes + 1}"
        )
    boards = np.empty((n, height, width), np.uint8)
    for i in range(n):
        boards[i] = _board(Random(f"{seed}/{first + i}"), height, width, boxes, walls)
        if on_progress and (i % 64 == 63 or i == n - 1):
            on_progress(i + 1, n)
    return boards


def _board(rng: Random, height: int, width: int, boxes: int, walls: float) -> Tokens:
    """One board: of the first room that leaves nothing standing on a goal, else of the least crowded one."""
    least, best = boxes + 1, None
    for _ in range(ROOMS):
        room = _carve(rng, height, width, boxes, walls)
        goals = _place_goals(rng, room, width, boxes)
        if goals is None:
            continue
        pulled, region = _pull(rng, room, goals, width)
        crowded = _crowded(pulled, region, goals)
        if pulled != goals and crowded < least:
            least, best = crowded, _draw(rng, height, width, room, goals, pulled, region)
            if crowded == 0:
                break
    if best is None:
        raise MaskobanError(
            f"cannot make a {height}x{width} board with {_count(boxes)}: none could be moved in {ROOMS} rooms"
        )
    return best


def _carve(rng: Random, height: int, width: int, boxes: int, walls: float) -> int:
    """A connected room, carved by a walk that clears a small patch around every step, as Boxoban's were."""
    interior = sum(((1 << (width - 2)) - 1) << (row * width + 1) for row in range(1, height - 1))
    cells = (height - 2) * (width - 2)
    share = 1 - walls * (0.7 + 0.6 * rng.random())  # rooms vary in size
    target = min(max(round(cells * share), 3 * boxes + 2), cells)

    patches = ((0,), (-1, 0, 1), (-width, 0, width), (0, 1, width), (0, -1, -width))
    steps = (1, -1, width, -width)
    cell = _pick(rng, interior)
    step = steps[int(rng.random() * 4)]
    room = 0
    for _ in range(4 * cells):
        for offset in patches[int(rng.random() * len(patches))]:
            room |= 1 << (cell + offset)
        room &= interior
        if room.bit_count() >= target:
            return room
        while rng.random() < 0.35 or not interior >> (cell + step) & 1:
            step = steps[int(rng.random() * 4)]
        cell += step
    while room.bit_count() < target:  # the walk got stuck in old ground: grow the room at its edge
        room |= 1 << _pick(rng, _spread(room, width) & interior & ~room)
    return room


def _place_goals(rng: Random, room: int, width: int, boxes: int) -> int | None:
    """Goals on cells a box could be pulled from; None if the room has too few of them."""
    pullable = 0
    for step in (1, -1, width, -width):
        pullable |= room & _shift(room, -step) & _shift(room, -2 * step)
    # The player needs a cell of its own.
    if pullable.bit_count() < boxes or room.bit_count() <= boxes:
        return None
    goals = 0
    for _ in range(boxes):
        goals |= 1 << _pick(rng, pullable & ~goals)
    return goals


def _pull(rng: Random, room: int, goals: int, width: int) -> tuple[int, int]:
    """Play backwards from all boxes on goals; the boxes, and the player's region, farthest from solved.

    A pull in direction ``step`` needs the cell beside the box and the one beyond it to be in the player's
    region: the player steps back onto the second and the box follows onto the first.
    """
    boxes = goals
    player = _pick(rng, room & ~boxes)
    region = _reach(1 << player, room & ~boxes, width)
    home = {cell: cell for cell in _cells(goals)}  # where each box started
    best, farthest = (-len(home) - 1, 0), (boxes, region)
    distance = 0
    seen = {boxes}
    for _ in range(12 + 10 * len(home)):
        pulls = [
            (cell, step)
            for step in (1, -1, width, -width)
            for cell in _cells(boxes & _shift(region, -step) & _shift(region, -2 * step))
        ]
        if not pulls:
            break
        # A layout of boxes not seen before, if a few draws find one: going back and forth makes easy boards.
        for _ in range(4):
            cell, step = pulls[int(rng.random() * len(pulls))]
            after = boxes ^ (1 << cell) ^ (1 << (cell + step))
            if after not in seen:
                break
        seen.add(after)
        boxes = after
        region = _reach(1 << (cell + 2 * step), room & ~boxes, width)
        start = home[cell + step] = home.pop(cell)
        distance += _distance(start, cell + step, width) - _distance(start, cell, width)
        score = -_crowded(boxes, region, goals), distance
        if score > best:
            best, farthest = score, (boxes, region)
    return farthest


def _crowded(boxes: int, region: int, goals: int) -> int:
    """How many boxes stand on goals, and the player with them if its region is nothing but goals."""
    return (boxes & goals).bit_count() + (not region & ~goals)


def _draw(rng: Random, height: int, width: int, room: int, goals: int, boxes: int, region: int) -> Tokens:
    """The board as tokens, with the player somewhere in its region, off the goals where it can be."""
    board = np.full(height * width, WALL, np.uint8)
    board[_cells(room)] = FLOOR
    board[_cells(goals)] = GOAL
    board[_cells(boxes)] = BOX
    board[_cells(boxes & goals)] = BOX_ON_GOAL
    player = _pick(rng, region & ~goals or region)
    board[player] = PLAYER_ON_GOAL if goals >> player & 1 else PLAYER
    return board.reshape(height, width)


def _reach(start: int, free: int, width: int) -> int:
    """Flood fill: every free cell connected with ``start``."""
    region = 0
    while start != region:
        region = start
        start = _spread(region, width) & free
    return region


def _spread(cells: int, width: int) -> int:
    return cells | cells << 1 | cells >> 1 | cells << width | cells >> width


def _shift(cells: int, by: int) -> int:
    return cells << by if by > 0 else cells >> -by


def _cells(mask: int) -> list[int]:
    """The numbers of the cells in ``mask``, in reading order."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _pick(rng: Random, mask: int) -> int:
    """One cell of ``mask``. Only ``random()`` is used here: Python promises its stream never changes."""
    for _ in range(int(rng.random() * mask.bit_count())):
        mask &= mask - 1
    return (mask & -mask).bit_length() - 1


def _distance(cell: int, other: int, width: int) -> int:
    return abs(cell // width - other // width) + abs(cell % width - other % width)


def _count(boxes: int) -> str:
    return "1 box" if boxes == 1 else f"{boxes} boxes"
