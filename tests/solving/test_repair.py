"""Repairs of boards drawn as text, and against brute force over every wall."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from maskoban.boards import Level
from maskoban.boards.synth import synthesize
from maskoban.boards.tiles import FLOOR, WALL, Tokens
from maskoban.errors import MaskobanError
from maskoban.solving.repair import Cell, Repair, interior_walls, repair, repair_many
from maskoban.solving.solver import Limits, solve_many
from tests.solving.reference import judge

ONE_WALL = Level.parse("""
#######
#@$#.##
#######
""")

# The player must get to the other side of the box, above or below.
EITHER_WALL = Level.parse("""
#######
#  #  #
# $@ .#
#  #  #
#######
""")

TWO_WALLS = Level.parse("""
########
#@$##. #
########
""")

DEAD_BOX = Level.parse("""
#####
#$@.#
#####
""")


def test_the_wall_in_the_way_is_found() -> None:
    assert repair(ONE_WALL) == Repair("repaired", walls=(((1, 3),),))


def test_the_first_in_reading_order_or_all() -> None:
    assert repair(EITHER_WALL) == Repair("repaired", walls=(((1, 3),),))
    assert repair(EITHER_WALL, all=True) == Repair("repaired", walls=(((1, 3),), ((3, 3),)))


def test_a_solvable_board_keeps_its_walls() -> None:
    assert repair(Level.parse("######\n#@$.##\n######"), all=True) == Repair("solvable")


def test_pairs_only_where_no_single_wall_helps() -> None:
    assert repair(TWO_WALLS) == Repair("unrepaired")
    assert repair(TWO_WALLS, walls=2) == Repair("repaired", walls=(((1, 3), (1, 4)),))
    assert repair(ONE_WALL, walls=2, all=True) == repair(ONE_WALL)


def test_the_border_stays() -> None:
    assert repair(DEAD_BOX, walls=2, all=True) == Repair("unrepaired")
    assert repair(Level.parse("@$#."), walls=2) == Repair("unrepaired")
    assert interior_walls(Level.parse("###\n###\n###").tokens) == [(1, 1)]


def drawn(*rows: str) -> Tokens:
    """Every blank kept, unlike in a level file."""
    return np.array([["# @$.*+".index(symbol) for symbol in row] for row in rows], np.uint8)


def test_the_border_of_a_level_in_the_blank_stays() -> None:
    board = drawn(
        "            ",
        "   ######   ",
        "   #$ @.#   ",
        "   #    #   ",
        "   ######   ",
        "            ",
    )
    assert interior_walls(board) == []
    assert repair(board, walls=2, all=True) == Repair("unrepaired")


def test_which_walls_of_a_ragged_level_are_interior() -> None:
    board = drawn(
        "#####   ",
        "#@# #   ",
        "# $ ####",
        "#   ## #",
        "##  . .#",
        " #######",
        "        ",
    )
    # (2, 4) and (4, 1) touch the blank at a corner only, where nobody can walk.
    assert interior_walls(board) == [(1, 2), (2, 4), (3, 4), (3, 5), (4, 1)]


def test_a_blank_with_a_goal_is_not_outside() -> None:
    board = drawn(
        "#####  ",
        "#@$ #. ",
        "#####  ",
    )
    assert repair(board) == Repair("repaired", walls=(((1, 4),),))


def test_a_closed_chamber_is_not_outside() -> None:
    assert interior_walls(drawn("#####", "#@# #", "#####")) == [(1, 2)]


def test_blank_around_a_board_changes_nothing() -> None:
    boards = unsolvable(200, 7, 2, 0.4)
    padded = np.pad(boards, ((0, 0), (2, 1), (1, 3)), constant_values=FLOOR)
    for walls in (1, 2):
        for plain, within in zip(
            repair_many(boards, walls, True), repair_many(padded, walls, True), strict=True
        ):
            moved = tuple(tuple((row - 2, column - 1) for row, column in cells) for cells in within.walls)
            assert (moved, within.verdict) == (plain.walls, plain.verdict)


def test_boards_as_lists_arrays_and_iterables() -> None:
    level = ONE_WALL
    assert repair(level.tokens.tolist()) == repair(level.tokens) == repair(level)  # type: ignore[arg-type]
    assert repair_many(each for each in [level]) == [repair(level)]
    with pytest.raises(MaskobanError, match=r"use Level\.parse"):
        repair("#@$.#")  # type: ignore[arg-type]
    with pytest.raises(MaskobanError, match=r"shape \(n, h, w\)"):
        repair_many(level.tokens)


@pytest.mark.parametrize("walls", [1, 2])
@pytest.mark.parametrize(
    ("text", "reason"),
    [("#####\n# $.#\n#####", "no player"), ("#####\n#@$ #\n#####", "1 box but 0 goals")],
)
def test_malformed_boards_are_reported_as_such(text: str, reason: str, walls: int) -> None:
    assert repair(Level.parse(text), walls=walls) == Repair("malformed", reason)


def test_limits_are_named() -> None:
    none = Limits(states=0)
    solvable = Level.parse("#####\n#@$.#\n#####")
    assert repair(solvable, limits=none) == Repair("unknown", "state limit of 0 reached", limit_hit="states")
    undecided = Repair("unknown", "1 removal undecided: state limit of 0 reached", limit_hit="states")
    assert repair(ONE_WALL, limits=none) == undecided


def test_limits_give_no_false_answer() -> None:
    boards = unsolvable(200, 7, 3, 0.4)
    without_limits = repair_many(boards, all=True)
    for states in (0, 1, 3, 10):
        limited = repair_many(boards, all=True, limits=Limits(states=states))
        for known, found in zip(without_limits, limited, strict=True):
            assert set(found.walls) <= set(known.walls)
            assert found == known or found.limit_hit == "states"


def test_a_board_is_repaired_the_same_way_in_any_batch() -> None:
    levels = [ONE_WALL, DEAD_BOX, EITHER_WALL, Level.parse("#"), TWO_WALLS, ONE_WALL] * 20
    for every in (False, True):
        for walls in (1, 2):
            together = repair_many(levels, walls, every)
            assert together[:6] == [repair(level, walls, every) for level in levels[:6]]
            assert together == together[:6] * 20
    assert repair_many([]) == []
    assert repair_many(np.empty((0, 10, 10), np.uint8)) == []


def test_the_input_boards_stay_unchanged() -> None:
    boards = np.stack([ONE_WALL.tokens] * 3)
    repair_many(boards)
    assert np.array_equal(boards, np.stack([ONE_WALL.tokens] * 3))


def test_progress_counts_boards() -> None:
    calls: list[tuple[int, int]] = []
    repair_many([ONE_WALL, ONE_WALL, DEAD_BOX], on_progress=lambda done, total: calls.append((done, total)))
    assert calls == [(2, 3), (3, 3)]


def test_three_walls_are_refused() -> None:
    with pytest.raises(MaskobanError, match="walls: expected 1 or 2, got 3"):
        repair(ONE_WALL, walls=3)


def unsolvable(number: int, side: int, boxes: int, walls: float) -> Tokens:
    """Boards that were solvable until one, two or three more walls were built."""
    boards = synthesize(4 * number, side, side, boxes, seed=side, walls=walls)
    rng = np.random.default_rng(side)
    for i, board in enumerate(boards):
        floor = np.argwhere(board == FLOOR)
        for row, column in rng.permutation(floor)[: 1 + i % 3]:
            board[row, column] = WALL
    boards = boards[~solve_many(boards, solutions=False).solved][:number]
    assert len(boards) == number
    return boards


def without(board: Tokens, cells: tuple[Cell, ...]) -> Tokens:
    open_board = board.copy()
    for cell in cells:
        open_board[cell] = FLOOR
    return open_board


def inner(board: Tokens) -> list[Cell]:
    height, width = board.shape
    cells = [(row, column) for row in range(1, height - 1) for column in range(1, width - 1)]
    return [cell for cell in cells if board[cell] == WALL]


def test_every_wall_of_a_thousand_boards() -> None:
    boards = unsolvable(1000, 10, 3, 0.6)
    trials = [(i, (cell,)) for i, board in enumerate(boards) for cell in inner(board)]
    variants = np.stack([without(boards[i], cells) for i, cells in trials])
    fixes: list[tuple[tuple[Cell, ...], ...]] = [()] * len(boards)
    for (i, cells), result in zip(trials, solve_many(variants, "effort", solutions=False), strict=True):
        if result.solved:
            fixes[i] += (cells,)
    assert 500 < sum(map(bool, fixes)) < 1000
    compare(boards, 1, fixes)


@pytest.mark.parametrize(("number", "side", "boxes", "walls"), [(500, 6, 2, 0.3), (50, 7, 3, 0.4)])
def test_every_wall_by_the_plain_search(number: int, side: int, boxes: int, walls: float) -> None:
    boards = unsolvable(number, side, boxes, walls)
    compare(boards, 1, [by_plain_search(board, 1) for board in boards])


def test_every_pair_of_walls_by_the_plain_search() -> None:
    boards = unsolvable(2000, 6, 2, 0.4)
    boards = boards[[each.verdict == "unrepaired" for each in repair_many(boards)]][:100]
    fixes = [by_plain_search(board, 2) for board in boards]
    compare(boards, 2, fixes)
    assert any(fixes)


def by_plain_search(board: Tokens, size: int) -> tuple[tuple[Cell, ...], ...]:
    sets = combinations(inner(board), size)
    return tuple(cells for cells in sets if judge(without(board, cells)).verdict == "solved")


def compare(boards: Tokens, walls: int, fixes: list[tuple[tuple[Cell, ...], ...]]) -> None:
    every, first = repair_many(boards, walls, all=True), repair_many(boards, walls)
    for board, known, one, many in zip(boards, fixes, first, every, strict=True):
        verdict = "repaired" if known else "unrepaired"
        assert (one, many) == (Repair(verdict, walls=known[:1]), Repair(verdict, walls=known)), Level(board)


def test_a_fix_is_applied_to_arrays_too() -> None:
    blocked = Level.parse("#######\n#@$#.##\n#######")
    for level in (blocked, Level.parse("#######\n#@$ .##\n#######")):
        assert repair(level.tokens).apply(level.tokens) == repair(level).apply(level)
