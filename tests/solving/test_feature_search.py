"""The search for large levels, run alone: on small boards it must agree with the obvious search in reference.py.

Mode `any` takes to it only where the search over single pushes is at a loss, so that search is left out here. More
random boards take minutes and are a command, here for a million:

    python -m tests.solving.test_feature_search 1000000
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

from maskoban import _core
from maskoban.boards import Level, Tokens
from maskoban.solving.replay import count, solves
from maskoban.solving.solver import Limits, Results, solve, solve_many
from tests.solving.reference import judge
from tests.solving.test_agreement import batches, made_boards, random_boards

#: As native/outcome.hpp numbers them.
BEST_FIRST, PLAN_FROM_OUTSIDE, RELAXED_GAME, CORRALS = 1, 2, 4, 8
PLAN_FROM_STARTS, ASSIGNMENT, BACKWARDS = 16, 32, 64


def planned(boards: Tokens, without: int = BEST_FIRST, states: int = -1) -> list[tuple[str, str]]:
    """Verdict and solution of every board."""
    found = _core.solve_boards(boards, 0, states, 1024, -1.0, 2, True, None, without)
    assert found["solutions"] is not None
    verdicts = (Results.VERDICTS[verdict] for verdict in found["verdicts"])
    return list(zip(verdicts, found["solutions"], strict=True))


#: The search played backwards, alone.
FROM_THE_GOALS = BEST_FIRST | PLAN_FROM_OUTSIDE | PLAN_FROM_STARTS


def check(boards: Tokens, verdicts: list[str]) -> None:
    forwards = BEST_FIRST | BACKWARDS
    for without in (forwards, forwards | RELAXED_GAME, forwards | PLAN_FROM_OUTSIDE | CORRALS | ASSIGNMENT):
        agree(boards, planned(boards, without), verdicts)
    # Backwards, no rule tells dead positions, so that a proof may take long.
    found = planned(boards, FROM_THE_GOALS, states=1000)
    decided = [i for i, (said, _) in enumerate(found) if said != "unknown"]
    assert len(decided) > len(boards) / 2
    agree(boards[decided], [found[i] for i in decided], [verdicts[i] for i in decided])


def agree(boards: Tokens, found: list[tuple[str, str]], verdicts: list[str]) -> None:
    for board, verdict, (said, solution) in zip(boards, verdicts, found, strict=True):
        assert said == verdict, f"{said}, not {verdict}:\n{Level(board)}"
        assert verdict != "solved" or solves(board, solution), f"{solution}:\n{Level(board)}"


@pytest.mark.parametrize(("height", "width", "boxes"), [(3, 3, 1), (2, 4, 1), (2, 4, 2)])
def test_every_small_room(height: int, width: int, boxes: int) -> None:
    for boards in batches(height, width, boxes):
        check(boards, [judge(board).verdict for board in boards])


@pytest.mark.parametrize(
    ("number", "height", "width", "boxes", "walls"),
    [(3000, 4, 4, 2, 0.15), (3000, 4, 5, 2, 0.35), (1000, 4, 4, 3, 0.10), (300, 5, 5, 3, 0.20)],
)
def test_random_boards(number: int, height: int, width: int, boxes: int, walls: float) -> None:
    boards = random_boards(number, height, width, boxes, walls, seed=boxes + 10)
    check(boards, [judge(board).verdict for board in boards])


@pytest.mark.parametrize(("boxes", "number"), [(3, 300), (4, 200), (5, 100), (7, 50)])
def test_many_boxes_against_the_plain_search(boxes: int, number: int) -> None:
    against_effort(
        np.concatenate(
            [made_boards(number, 7, boxes, 0.3), random_boards(number, 7, 7, boxes, 0.3, seed=boxes)]
        )
    )


def against_effort(boards: Tokens) -> None:
    """Wherever mode `effort`, which other tests pin, comes to an end."""
    effort = solve_many(boards, "effort", limits=Limits(states=30_000), solutions=False)
    decided = np.flatnonzero(np.isin(effort.verdicts, (0, 1)))
    check(boards[decided], [effort[i].verdict for i in decided])


GOAL_ROOM = Level.parse(
    """
##############
##          ##
##$ ## $ $  ##
# @##   #  ###
##$## ### $###
#  ## ###  $ #
#  #  ##  $  #
#  # $##     #
#  $  ##$  $ #
#     $  $   #
#  ######  ###
#  ###### $###
# ####.#...###
#  ###.....###
#  ###.....###
# ############
##############
"""
)


@pytest.mark.parametrize("without", [BEST_FIRST, BEST_FIRST | BACKWARDS, FROM_THE_GOALS])
def test_a_level_with_a_goal_room(without: int) -> None:
    ((verdict, solution),) = planned(GOAL_ROOM.tokens[None], without)
    assert verdict == "solved"
    assert solves(GOAL_ROOM, solution)


def test_both_searches_take_turns() -> None:
    """The search over pushes alone does not solve it with a hundred times the states both need together."""
    result = solve(GOAL_ROOM)
    assert solves(GOAL_ROOM, result.solution)
    assert count(result.solution).pushes == result.pushes
    alone = _core.solve_boards(
        GOAL_ROOM.tokens[None],
        0,
        100 * result.expanded,
        1024,
        -1.0,
        1,
        False,
        None,
        PLAN_FROM_OUTSIDE | PLAN_FROM_STARTS | BACKWARDS,
    )
    assert Results.VERDICTS[alone["verdicts"][0]] == "unknown"


RULES = {1: "freezing", 2: "corral", 4: "relaxed game", 8: "assignment"}


def check_rules(boards: Tokens) -> set[str]:
    """No rule may call a solvable position dead. Returns the rules that called some position dead."""
    dead = _core.dead_by_rules(boards)
    for board, rules in zip(boards[dead > 0], dead[dead > 0], strict=True):
        assert judge(board).verdict == "unsolvable", (
            f"{[n for b, n in RULES.items() if b & rules]}:\n{Level(board)}"
        )
    return {name for bit, name in RULES.items() if (dead & bit).any()}


@pytest.mark.parametrize(
    ("height", "width", "boxes", "walls"), [(4, 5, 2, 0.3), (4, 4, 3, 0.1), (5, 5, 3, 0.2)]
)
def test_no_rule_calls_a_solvable_position_dead(height: int, width: int, boxes: int, walls: float) -> None:
    boards = random_boards(10_000, height, width, boxes, walls, seed=boxes + 20)
    assert check_rules(boards) == set(RULES.values())


def test_the_same_level_is_solved_the_same_way() -> None:
    assert planned(GOAL_ROOM.tokens[None]) == planned(GOAL_ROOM.tokens[None])


if __name__ == "__main__":
    done, rng = 0, np.random.default_rng(0)
    while done < int(sys.argv[1]):
        height, width, boxes = rng.integers(3, 8), rng.integers(3, 8), rng.integers(1, 6)
        if height * width < 3 * boxes:
            continue
        seed = int(rng.integers(1 << 30))
        boards = random_boards(2000, int(height), int(width), int(boxes), rng.uniform(0.05, 0.4), seed)
        against_effort(boards)
        dead = boards[_core.dead_by_rules(boards) > 0]
        effort = solve_many(dead, "effort", limits=Limits(states=30_000), solutions=False)
        assert not effort.solved.any(), f"not dead:\n{Level(dead[np.argmax(effort.solved)])}"
        done += len(boards)
        print(f"\r{done} boards agree", end="", flush=True)
    print()
