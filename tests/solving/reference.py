"""An obvious, slow search in plain Python that the native solver must agree with.

`judge` follows the definition of effort in docs/solver.md word by word, on sets of (row, column) cells;
`shortest` knows the rules of the game and nothing else: no dead cells, no player regions, only single steps.
Neither shares a line with the package.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

UP, DOWN, LEFT, RIGHT = (-1, 0), (1, 0), (0, -1), (0, 1)
DIRECTIONS = (UP, DOWN, LEFT, RIGHT)

Cell = tuple[int, int]


class Answer(NamedTuple):
    verdict: str  # "solved", "unsolvable" or "malformed"
    reason: str = ""
    expanded: int = 0
    pushes: int = -1


class Board(NamedTuple):
    free: frozenset[Cell]  # every cell that is no wall; beyond the grid there is none
    players: frozenset[Cell]
    boxes: frozenset[Cell]
    goals: frozenset[Cell]
    masked: frozenset[Cell]


def read(tokens: np.ndarray) -> Board:
    at: dict[str, set[Cell]] = {symbol: set() for symbol in "# @$.*+?"}
    for row, line in enumerate(tokens.tolist()):
        for column, token in enumerate(line):
            at["# @$.*+?"[token]].add((row, column))
    free = at[" "].union(*(at[symbol] for symbol in "@$.*+"))
    boxes, goals = at["$"] | at["*"], at["."] | at["*"] | at["+"]
    return Board(*map(frozenset, (free, at["@"] | at["+"], boxes, goals, at["?"])))


def trouble(board: Board) -> str:
    """Why the board is malformed, or nothing."""
    players, boxes, goals = len(board.players), len(board.boxes), len(board.goals)
    if board.masked:
        return "masked cells left"
    if players == 0:
        return "no player"
    if players > 1:
        return f"{players} players"
    if boxes == 0:
        return "no boxes"
    if boxes != goals:
        return f"{boxes} box{'es' * (boxes > 1)} but {goals} goal{'s' * (goals != 1)}"
    return ""


def step(cell: Cell, direction: Cell) -> Cell:
    return cell[0] + direction[0], cell[1] + direction[1]


def back(cell: Cell, direction: Cell) -> Cell:
    return cell[0] - direction[0], cell[1] - direction[1]


def alive(board: Board) -> set[Cell]:
    """The cells from which a lone box could be pushed to some goal: pulled back from every goal."""
    found = set(board.goals)
    waiting = list(found)
    while waiting:
        cell = waiting.pop()
        for direction in DIRECTIONS:
            box, player = step(cell, direction), step(step(cell, direction), direction)
            if box in board.free and player in board.free and box not in found:
                found.add(box)
                waiting.append(box)
    return found


def region(board: Board, boxes: frozenset[Cell], player: Cell) -> frozenset[Cell]:
    """The cells the player can walk to."""
    found = {player}
    waiting = [player]
    while waiting:
        cell = waiting.pop()
        for direction in DIRECTIONS:
            there = step(cell, direction)
            if there in board.free and there not in boxes and there not in found:
                found.add(there)
                waiting.append(there)
    return frozenset(found)


def judge(tokens: np.ndarray) -> Answer:
    """Verdict, effort and fewest pushes by a plain breadth-first search over pushes."""
    board = read(tokens)
    if trouble(board):
        return Answer("malformed", trouble(board))
    if board.boxes == board.goals:
        return Answer("solved", expanded=0, pushes=0)
    live = alive(board)
    if not board.boxes <= live:
        return Answer("unsolvable", expanded=0)
    start = board.boxes, region(board, board.boxes, *board.players)
    pushes = {start: 0}
    queue = deque([start])
    expanded = 0
    while queue:
        state = boxes, reach = queue.popleft()
        expanded += 1
        for box in sorted(boxes):
            for direction in DIRECTIONS:
                target = step(box, direction)
                if back(box, direction) in reach and target in live and target not in boxes:
                    after = boxes - {box} | {target}
                    following = after, region(board, after, box)
                    if following not in pushes:
                        pushes[following] = pushes[state] + 1
                        if after == board.goals:
                            return Answer("solved", expanded=expanded, pushes=pushes[following])
                        queue.append(following)
    return Answer("unsolvable", expanded=expanded)


def shortest(tokens: np.ndarray, by_moves: bool = False) -> tuple[int, int] | None:
    """The fewest pushes of a well-formed board and the fewest moves among such solutions, if it has any.

    With ``by_moves``: the fewest moves, and the fewest pushes among such solutions.
    """
    board = read(tokens)
    (player,) = board.players
    start = player, board.boxes
    best = {start: (0, 0)}
    queue = [(0, 0, *start)]
    walk, push = ((1, 0), (1, 1)) if by_moves else ((0, 1), (1, 1))
    while queue:
        first, second, player, boxes = heappop(queue)
        if boxes == board.goals:
            return first, second
        if best[player, boxes] < (first, second):
            continue
        for direction in DIRECTIONS:
            there, beyond = step(player, direction), step(step(player, direction), direction)
            after, cost = boxes, walk
            if there in boxes:
                if beyond in boxes or beyond not in board.free:
                    continue
                after, cost = boxes - {there} | {beyond}, push
            cost = first + cost[0], second + cost[1]
            if there in board.free and cost < best.get((there, after), (1 << 30, 0)):
                best[there, after] = cost
                heappush(queue, (*cost, there, after))
    return None
