"""The native solver against the obvious search in reference.py: every mode, every verdict, every solution.

The tests hold every small room with one or two boxes. A larger family takes minutes and is a command, here
for all rooms of 3x4 cells:

    python -m tests.solving.test_agreement 3 4
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice, product

import numpy as np
import pytest

from maskoban.boards import Level
from maskoban.boards.synth import synthesize
from maskoban.boards.tiles import BOX, BOX_ON_GOAL, FLOOR, GOAL, MASK, PLAYER, PLAYER_ON_GOAL, WALL, Tokens
from maskoban.solving.replay import count, solves
from maskoban.solving.solver import Limits, Result, Results, solve, solve_many
from tests.solving.reference import Answer, judge, shortest

MODES = ("any", "pushes", "effort")
UNSOLVABLE = Results.VERDICTS.index("unsolvable")


def placed(tokens: Tokens, size: tuple[int, int], top: int, left: int) -> Tokens:
    """The same boards inside larger ones that are otherwise wall."""
    boards = np.full((len(tokens), *size), WALL, dtype=np.uint8)
    boards[:, top : top + tokens.shape[1], left : left + tokens.shape[2]] = tokens
    return boards


def check(boards: Tokens, answers: list[Answer]) -> None:
    """All three modes say what the reference says, and what they call a solution is one."""
    effort = np.array([answer.expanded for answer in answers])
    hopeless = np.array([answer.verdict == "unsolvable" for answer in answers])
    for mode in MODES:
        results = solve_many(boards, mode=mode)
        # Most boards are unsolvable and have little to compare; only the others are worth a closer look.
        alike = hopeless & (results.verdicts == UNSOLVABLE) & (results.pushes == -1) & (results.moves == -1)
        if mode == "effort":
            alike &= results.expanded == effort
        for i in np.flatnonzero(~alike):
            wrong = disagreement(mode, boards[i], answers[i], results[i])
            assert not wrong, f"{mode}: {wrong}\n{Level(boards[i])}\n{answers[i]}\n{results[i]}"


def disagreement(mode: str, board: Tokens, answer: Answer, result: Result) -> str:
    if result.verdict != answer.verdict:
        return "another verdict"
    if result.verdict == "malformed" and result.reason != answer.reason:
        return "another reason"
    if mode == "effort" and result.expanded != answer.expanded:
        return "another effort"
    if not result.solved:
        return (
            "" if (result.pushes, result.moves, result.solution) == (-1, -1, "") else "a solution of nothing"
        )
    if not solves(board, result.solution):
        return "no solution"
    counts = count(result.solution)
    if (counts.pushes, counts.moves) != (result.pushes, result.moves):
        return "wrong counts"
    if counts.pushes < answer.pushes or (mode != "any" and counts.pushes > answer.pushes):
        return "another number of pushes"
    return ""


def check_by_rules(boards: Tokens, answers: list[Answer]) -> None:
    """The reference itself, and the moves of mode `pushes`, against a search that knows single steps only."""
    results = solve_many(boards, mode="pushes")
    for board, answer, result in zip(boards, answers, results, strict=True):
        best = shortest(board)
        said = f"{Level(board)}\n{answer}\n{result}\n{best}"
        assert (answer.verdict == "solved") == (best is not None), said
        if best is not None:
            assert (result.pushes, result.moves) == best, said


def fillings(height: int, width: int, boxes: int) -> Iterator[list[int]]:
    """Every pattern of walls with every placement of so many boxes and goals and a player."""
    for room in product((WALL, FLOOR), repeat=height * width):
        free = [cell for cell, tile in enumerate(room) if tile == FLOOR]
        for stand, goals in product(combinations(free, boxes), repeat=2):
            filled = list(room)
            for cell in goals:
                filled[cell] = GOAL
            for cell in stand:
                filled[cell] = BOX if filled[cell] == FLOOR else BOX_ON_GOAL
            for player in free:
                if player not in stand:
                    board = filled.copy()
                    board[player] = PLAYER if board[player] == FLOOR else PLAYER_ON_GOAL
                    yield board


def batches(height: int, width: int, boxes: int) -> Iterator[Tokens]:
    boards = fillings(height, width, boxes)
    while batch := list(islice(boards, 20_000)):
        yield np.array(batch, dtype=np.uint8).reshape(-1, height, width)


@pytest.mark.parametrize(
    ("height", "width", "boxes", "number"),
    [(3, 3, 1, 50_688), (3, 3, 2, 254_016), (2, 4, 1, 17_920)],
)
def test_every_small_room(height: int, width: int, boxes: int, number: int) -> None:
    seen = 0
    for boards in batches(height, width, boxes):
        answers = [judge(board) for board in boards]
        check(boards, answers)
        check(placed(boards, (height + 2, width + 2), 1, 1), answers)
        check_by_rules(boards, answers)
        seen += len(boards)
    assert seen == number


def test_every_filling_of_six_cells_with_all_seven_tiles() -> None:
    boards = np.array(list(product(range(7), repeat=6)), dtype=np.uint8).reshape(-1, 2, 3)
    answers = [judge(board) for board in boards]
    assert Counter(answer.verdict for answer in answers).keys() == {"solved", "unsolvable", "malformed"}
    check(boards, answers)


def random_boards(number: int, height: int, width: int, boxes: int, walls: float, seed: int) -> Tokens:
    """Well-formed boards with walls anywhere, the rim included, so that rooms may be open or cut in two."""
    rng = np.random.default_rng(seed)
    boards = np.where(rng.random((number, height * width)) < walls, WALL, FLOOR).astype(np.uint8)
    for board in boards:
        boxes_and_player = rng.permutation(height * width)[: boxes + 1]
        goals = rng.permutation(height * width)[:boxes]
        board[boxes_and_player] = BOX
        board[boxes_and_player[0]] = PLAYER
        for goal in goals:
            board[goal] = {PLAYER: PLAYER_ON_GOAL, BOX: BOX_ON_GOAL}.get(board[goal], GOAL)
    return boards.reshape(-1, height, width)


def made_boards(number: int, side: int, boxes: int, walls: float) -> Tokens:
    """Boards that need real search: boxes pulled off their goals, and in every other one a wall added."""
    boards = synthesize(number, side, side, boxes, seed=side, walls=walls)
    rng = np.random.default_rng(side)
    for board in boards[1::2]:
        row, column = rng.choice(np.argwhere(board == FLOOR))
        board[row, column] = WALL
    return boards


# Walls from almost none to rooms cut in pieces; sides and numbers of boxes as far as plain Python can follow.
@pytest.mark.parametrize(
    ("number", "height", "width", "boxes", "walls"),
    [
        (5000, 4, 4, 2, 0.15),
        (5000, 4, 5, 2, 0.35),
        (2000, 3, 6, 3, 0.10),
        (2000, 4, 4, 3, 0.10),
        (500, 5, 5, 3, 0.20),
        (1000, 6, 6, 2, 0.30),
        (300, 3, 30, 1, 0.15),
        (300, 30, 3, 1, 0.15),
    ],
)
def test_random_boards(number: int, height: int, width: int, boxes: int, walls: float) -> None:
    boards = random_boards(number, height, width, boxes, walls, seed=boxes)
    answers = [judge(board) for board in boards]
    verdicts = Counter(answer.verdict for answer in answers)
    assert min(verdicts["solved"], verdicts["unsolvable"]) > number // 20
    check_everywhere(boards, answers)
    check_by_rules(boards[:300], answers[:300])


@pytest.mark.parametrize(
    ("number", "side", "boxes", "walls"),
    [(500, 6, 2, 0.2), (500, 7, 3, 0.35), (200, 8, 3, 0.4), (60, 8, 4, 0.45), (10, 10, 4, 0.6)],
)
def test_boards_that_need_search(number: int, side: int, boxes: int, walls: float) -> None:
    boards = made_boards(number, side, boxes, walls)
    answers = [judge(board) for board in boards]
    check_everywhere(boards, answers)
    if boxes == 2:
        check_by_rules(boards, answers)


@pytest.mark.parametrize(("boxes", "number"), [(5, 100), (6, 100), (7, 60), (8, 40), (9, 40)])
def test_many_boxes_against_the_plain_search(boxes: int, number: int) -> None:
    """Too many states for plain Python, so mode `effort`, which the tests above pin, is the judge."""
    boards = random_boards(number, 7, 7, boxes, 0.3, seed=boxes)
    check_by_effort(np.concatenate([boards, made_boards(number, 7, boxes, 0.3)]))


@pytest.mark.parametrize("side", [3, 6, 9, 10, 11])
def test_blocks_of_boxes_on_goals_against_the_plain_search(side: int) -> None:
    """Beside a room where two boxes are to be moved a block with a hole here and there: up to 123 boxes."""
    rooms = random_boards(200, side, 4, 2, 0.1, seed=side)
    holes = np.random.default_rng(side).random((200, side, side)) < 0.02
    check_by_effort(np.concatenate([np.where(holes, FLOOR, BOX_ON_GOAL).astype(np.uint8), rooms], axis=2))


def check_by_effort(boards: Tokens) -> None:
    """Modes `any` and `pushes` against `effort`, wherever that comes to an end."""
    effort = solve_many(boards, "effort", limits=Limits(states=30_000))
    decided = [i for i, result in enumerate(effort) if result.verdict in ("solved", "unsolvable")]
    verdicts = Counter(effort[i].verdict for i in decided)
    assert min(verdicts["solved"], verdicts["unsolvable"]) > len(boards) // 20
    answers = [Answer(effort[i].verdict, pushes=effort[i].pushes) for i in decided]
    for mode in ("any", "pushes"):
        for i, answer, result in zip(decided, answers, solve_many(boards[decided], mode), strict=True):
            wrong = disagreement(mode, boards[i], answer, result)
            assert not wrong, f"{mode}: {wrong}\n{Level(boards[i])}\n{answer}\n{result}"


def check_everywhere(boards: Tokens, answers: list[Answer]) -> None:
    """A room is the same room at the edge of the grid or inside, in a small grid or a large one."""
    _, height, width = boards.shape
    check(boards, answers)
    check(placed(boards, (height + 2, width + 2), 1, 1), answers)
    check(placed(boards, (height + 3, 64), 2, 64 - width), answers)


def test_random_tiles() -> None:
    rng = np.random.default_rng(7)
    chances = [0.2, 0.5, 0.06, 0.1, 0.08, 0.02, 0.03, 0.01]
    boards = rng.choice(MASK + 1, (3000, 4, 5), p=chances).astype(np.uint8)
    answers = [judge(board) for board in boards]
    reasons = {answer.reason for answer in answers}
    assert {"", "no player", "2 players", "no boxes", "2 boxes but 1 goal", "masked cells left"} <= reasons
    check(boards, answers)


def test_what_limits_do() -> None:
    boards = made_boards(300, 7, 3, 0.35)
    answers = [judge(board) for board in boards]
    for mode, states in product(MODES, (0, 1, 5, 40)):
        results = solve_many(boards, mode=mode, limits=Limits(states=states))
        for board, answer, result in zip(boards, answers, results, strict=True):
            said = f"{mode}, {states} states:\n{Level(board)}\n{answer}\n{result}"
            if result.verdict == "unknown":
                assert result.reason == f"state limit of {states} reached", said
                assert result.expanded == states, said
            else:
                assert result.verdict == answer.verdict, said
            if mode == "effort":
                assert (result.verdict == "unknown") == (answer.expanded > states), said


def test_one_board_at_a_time_is_the_same() -> None:
    boards = random_boards(200, 4, 5, 2, 0.2, seed=5)
    for mode in MODES:
        for board, many in zip(boards, solve_many(boards, mode=mode), strict=True):
            one = solve(Level(board), mode=mode)
            assert replace(one, seconds=0) == replace(many, seconds=0)


if __name__ == "__main__":
    rows, columns = int(sys.argv[1]), int(sys.argv[2])
    done = 0
    for batch in (batch for number in (1, 2) for batch in batches(rows, columns, number)):
        check(batch, [judge(board) for board in batch])
        done += len(batch)
        print(f"\r{done} boards agree", end="", flush=True)
    print()
