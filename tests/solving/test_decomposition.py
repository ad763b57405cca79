"""Decomposed effort: levels in the order of their difficulty, and a slow reference that follows docs/solver.md."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from maskoban.boards import Level, read_boards
from maskoban.boards.synth import synthesize
from maskoban.boards.tiles import BOX, FLOOR, GOAL, PLAYER, WALL, Tokens
from maskoban.solving.replay import solves
from maskoban.solving.solver import Limits, solve, solve_many
from tests.solving.reference import DIRECTIONS, Board, Cell, alive, back, read, region, step

Boxes = frozenset[Cell]

ALONE = """
########
#@$   .#
########
"""

SEPARATE = """
#########
#@      #
# $   . #
#       #
# $   . #
#       #
#########
"""

# The box beside the corridor goes first, to its far end: the other one needs the cell it leaves.
IN_ORDER = """
#########
#   #####
# $   ..#
#@$ #####
#   #####
#########
"""

# Each box stands where the player has to stand to push the other to its goal.
PAIR = """
#######
#    ##
#  #  #
#.$$  #
#  @#.#
#######
"""

TRIPLE = """
#######
# @.  #
##  $##
#  $$.#
#   . #
#######
"""

QUADRUPLE = """
#######
#. #  #
#$#@  #
#. $. #
#$$   #
#  .  #
#######
"""

# Much space and four boxes that never meet.
HALL = """
##########
#        #
# $    . #
#        #
# $    . #
#   @    #
# $    . #
#        #
# $    . #
##########
"""


def decomposed(level: str) -> tuple[int, int]:
    """Decomposed effort and boxes at once."""
    result = solve(Level.parse(level), "decomposed")
    assert result.solved
    return result.expanded, result.boxes_at_once


def test_levels_from_easy_to_hard() -> None:
    levels = [ALONE, SEPARATE, IN_ORDER, PAIR, TRIPLE, QUADRUPLE]
    numbers = [decomposed(level)[0] for level in levels]
    assert all(easier < harder for easier, harder in pairwise(numbers)), numbers
    assert [decomposed(level)[1] for level in levels] == [1, 1, 1, 2, 3, 4]


def test_space_makes_effort_but_not_decomposed_effort() -> None:
    hall, tight = (solve(Level.parse(level), "effort").expanded for level in (HALL, QUADRUPLE))
    assert hall > 100 * tight
    assert decomposed(HALL)[0] < decomposed(QUADRUPLE)[0] / 2


def test_boxes_that_never_meet_cost_their_pushes() -> None:
    assert decomposed(ALONE) == (4, 1)
    assert decomposed(SEPARATE) == (8, 1)
    assert decomposed(HALL) == (20, 1)


def test_a_push_round_a_corner_leaves_a_choice() -> None:
    # From two cells above and two left of the goal six shortest ways lead there, over eight cells before it.
    open_room = "#######\n#@    #\n# $   #\n#     #\n#   . #\n#     #\n#######"
    assert decomposed(open_room) == (8, 1)


def test_a_detour_costs_all_its_pushes() -> None:
    # The player stands on the wrong side, and gets round the box only where there is space.
    detour = "##########\n#   ######\n#   $ . @#\n#   ######\n##########"
    assert decomposed(detour) == (6, 1)
    assert decomposed(detour.replace("@", " ").replace("#   $", "#@  $")) == (2, 1)


def test_the_solution_delivers_one_group_after_the_other() -> None:
    boards = random_boards(20_000, seed=2)
    found = solve_many(boards, "decomposed")
    assert found.solutions is not None
    assert set(found.boxes_at_once[found.solved]) == {1, 2, 3}
    for i in np.flatnonzero(found.solved):
        assert solves(boards[i], found.solutions[i])
        assert largest_group(boards[i], found.solutions[i]) == found.boxes_at_once[i], Level(boards[i])


def test_the_reference_agrees() -> None:
    boards = random_boards(20_000, seed=1)
    found = solve_many(boards, "decomposed", solutions=False)
    chosen = np.concatenate([np.flatnonzero(found.boxes_at_once == group)[:80] for group in (-1, 1, 2, 3)])
    assert np.count_nonzero(found.boxes_at_once == 3) >= 5
    for i in chosen:
        expected = reference(boards[i])
        assert found.solved[i] == (expected is not None), Level(boards[i])
        if expected is not None:
            assert (found.expanded[i], found.boxes_at_once[i]) == expected, Level(boards[i])


def test_turned_and_mirrored_boards_are_equally_hard() -> None:
    boards = synthesize(100, 9, 9, 4, seed=6, walls=0.6)
    boards[::3, 4, 4:6] = WALL  # some of them unsolvable or harder
    first = solve_many(boards, "decomposed", solutions=False)
    assert len(set(first.boxes_at_once)) > 1
    for flipped in (boards, boards[:, :, ::-1]):
        for turns in range(4):
            found = solve_many(np.rot90(flipped, turns, (1, 2)), "decomposed", solutions=False)
            assert (found.verdicts == first.verdicts).all()
            assert (found.expanded[found.solved] == first.expanded[found.solved]).all()
            assert (found.boxes_at_once == first.boxes_at_once).all()


def test_a_box_on_a_goal_counts_only_if_it_must_move() -> None:
    assert decomposed("#######\n#@$ .*#\n#######") == (2, 1)
    in_the_way = solve(Level.parse("########\n#@$ *. #\n########"), "decomposed")
    assert in_the_way.verdict == "unsolvable"
    assert decomposed("#######\n#@ *  #\n#  $. #\n#     #\n#######") == (1, 1)
    assert solve(Level.parse("#@*#"), "decomposed").expanded == 0


def test_limits_stop_the_search_and_leave_the_numbers_unknown() -> None:
    level = Level.parse(QUADRUPLE)
    stopped = solve(level, "decomposed", Limits(states=100))
    assert (stopped.verdict, stopped.limit_hit, stopped.boxes_at_once) == ("unknown", "states", -1)
    assert solve(level, "decomposed", Limits(states=10_000)).solved


def test_boxoban_splits_are_in_their_order(boxoban: Path) -> None:
    medians = []
    for split in ("unfiltered/test", "medium/valid", "hard"):
        boards = read_boards(boxoban / split)[:1000]
        medians.append(np.median(solve_many(boards, "decomposed", solutions=False).expanded))
    assert 2 * medians[0] < medians[1] < medians[2] / 2


def random_boards(number: int, seed: int) -> Tokens:
    """Boards of 6x7 with two or three boxes at random places; many are unsolvable."""
    rng = np.random.default_rng(seed)
    boards = np.zeros((number, 6, 7), np.uint8)
    boards[:, 1:-1, 1:-1] = np.where(rng.random((number, 4, 5)) < 0.1, WALL, FLOOR)
    for i, board in enumerate(boards):
        boxes = 2 + i % 2
        things = [PLAYER] + [BOX, GOAL] * boxes
        cells = rng.permutation(np.argwhere(board == FLOOR))[: len(things)]
        for cell, tile in zip(cells, things, strict=True):
            board[tuple(cell)] = tile
    return boards


def reference(tokens: Tokens) -> tuple[int, int] | None:
    """Decomposed effort and boxes at once of a well-formed board that is not solved yet."""
    board = read(tokens)
    live = alive(board)
    if not board.boxes <= live:
        return None
    for size in range(1, len(board.boxes) + 1):
        cost = cheapest(board, live, size)
        if cost is not None:
            return cost, size
    return None


def cheapest(board: Board, live: set[Cell], size: int) -> int | None:
    """The least total over all sequences of groups of at most ``size`` boxes."""
    start = (board.boxes, frozenset[Cell](), region(board, board.boxes, *board.players))
    best, queue = {start: 0}, [(0, 0, start)]
    while queue:
        cost, _, stage = heappop(queue)
        boxes, delivered, reach = stage
        if best[stage] < cost:
            continue
        if boxes == board.goals:
            return cost
        for number in range(1, size + 1):
            for group in combinations(sorted(boxes - delivered), number):
                others = boxes - frozenset(group)
                for moved, end, more in deliveries(board, live, frozenset(group), others, reach):
                    following = (moved | others, delivered | moved, end)
                    if cost + more < best.get(following, 1 << 60):
                        best[following] = cost + more
                        heappush(queue, (cost + more, len(best), following))
    return None


def deliveries(
    board: Board, live: set[Cell], group: Boxes, others: Boxes, reach: Boxes
) -> list[tuple[Boxes, Boxes, int]]:
    """Where the boxes of a group can be delivered: their goals, the player's region, and what it costs."""
    start = (group, reach)
    pushes, queue = {start: 0}, [start]
    for state in queue:
        boxes, reach = state
        for box in sorted(boxes):
            for direction in DIRECTIONS:
                target = step(box, direction)
                if back(box, direction) in reach and target in live and target not in boxes | others:
                    after = boxes - {box} | {target}
                    following = after, region(board, after | others, box)
                    if following not in pushes:
                        pushes[following] = pushes[state] + 1
                        queue.append(following)
    found = []
    for end in queue[1:]:
        if end[0] <= board.goals:
            bound = lone_box_pushes(board.free - others, end[0])
            looked_at = [
                state
                for state in queue
                if pushes[state] < pushes[end]
                and pushes[state] + sum(bound.get(box, 1 << 30) for box in state[0]) <= pushes[end]
            ]
            found.append((*end, len(looked_at)))
    return found


def lone_box_pushes(free: Boxes, goals: Boxes) -> dict[Cell, int]:
    """The fewest pushes from each cell to one of the goals, wherever the player may stand."""
    found, queue = dict.fromkeys(goals, 0), sorted(goals)
    for cell in queue:
        for direction in DIRECTIONS:
            box, player = step(cell, direction), step(step(cell, direction), direction)
            if box in free and player in free and box not in found:
                found[box] = found[cell] + 1
                queue.append(box)
    return found


def largest_group(board: Tokens, solution: str) -> int:
    """The most boxes whose turns in a solution, from first push to last, overlap."""
    steps = {"l": (0, -1), "u": (-1, 0), "r": (0, 1), "d": (1, 0)}
    names = {cell: cell for cell in read(board).boxes}  # where each box is now, and where it was at first
    turns: dict[Cell, tuple[int, int]] = {}
    (player,) = read(board).players
    for at, letter in enumerate(solution):
        player = step(player, steps[letter.lower()])
        if letter.isupper():
            name = names.pop(player)
            names[step(player, steps[letter.lower()])] = name
            turns[name] = (turns.get(name, (at, at))[0], at)
    largest = size = 0
    end = -1
    for first, last in sorted(turns.values()):
        size = size + 1 if first < end else 1
        end, largest = max(end, last), max(largest, size)
    return largest
