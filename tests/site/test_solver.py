"""The solver as WebAssembly gives the results of the native one."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from maskoban.boards import Level
from maskoban.boards.synth import synthesize
from maskoban.solving import Limits, dead_cells, rate, repair, solve
from tests.site.conftest import Node

#: An open room, whose plain search takes very long.
HARD = """
############
#@         #
# $ $ $ $  #
#          #
#  $ $ $   #
#          #
# .......  #
############
"""
UNSOLVABLE = "#######\n#@$#.##\n#######"
SMALL = [
    str(Level(board))
    for size in ((8, 8), (7, 9))
    for board in synthesize(4, seed=5, height=size[0], width=size[1])
]


def made(count: int) -> list[str]:
    boards = synthesize(count, seed=3)
    texts = [str(Level(board)) for board in boards]
    # Every other board gets one more wall at its first floor, so that some are unsolvable.
    return [text if i % 2 else text.replace(" ", "#", 1) for i, text in enumerate(texts)]


@pytest.mark.parametrize("mode", ["any", "pushes", "effort", "decomposed"])
def test_verdicts_and_solutions_are_the_native_ones(node: Node, mode: str) -> None:
    boards = [*made(40), UNSOLVABLE, "#####\n#@$ #\n#####", "####\n#@ #\n####"]
    found = node("solve", boards=boards, mode=mode, limits={"states": 20_000})
    for board, result in zip(boards, found, strict=True):
        expected = solve(Level.parse(board), mode, Limits(states=20_000, megabytes=256))
        json = expected.as_json() | {"seconds": result["seconds"]}
        assert {name: result[name] for name in json} == json


def test_a_search_ends_at_its_time_limit_and_the_next_one_works(node: Node) -> None:
    late, after = (
        node("solve", boards=[board], mode="effort", limits={"seconds": 0.05})[0]
        for board in (HARD.strip(), "@$.")
    )
    assert (late["verdict"], late["limit_hit"]) == ("unknown", "time")
    assert late["reason"] == "time limit of 0.05 seconds reached"
    assert late["expanded"] > 0
    assert after["solution"] == "R"


def test_a_search_ends_at_its_memory_limit(node: Node) -> None:
    (found,) = node("solve", boards=[HARD.strip()], mode="effort", limits={"megabytes": 4})
    assert (found["verdict"], found["limit_hit"]) == ("unknown", "memory")
    assert found["reason"] == "memory limit of 4 MB reached"


def test_ratings_are_the_native_ones(node: Node) -> None:
    # Boxoban's size, others of the table, and some that are in no table.
    boards = [*made(20), *SMALL, UNSOLVABLE, "@$", "######\n#@$ .#\n######"]
    limits = Limits(states=5_000, megabytes=256)
    found = node("rate", boards=boards, limits={"states": 5_000})
    assert found == [rate(Level.parse(board), limits).as_json() for board in boards]


@pytest.mark.parametrize("walls", [1, 2])
def test_repairs_are_the_native_ones(node: Node, walls: int) -> None:
    ragged = "  ####\n###@.#\n#  $##\n# ## #\n#.$  #\n######"
    boards = [*made(12), UNSOLVABLE, ragged, "########\n#@$##.##\n########"]
    limits = Limits(states=2_000, megabytes=256)
    for board, result in zip(
        boards, node("repair", boards=boards, limits={"states": 2_000}, walls=walls), strict=True
    ):
        expected = asdict(repair(Level.parse(board), walls, threads=1, limits=limits))
        expected["walls"] = [[list(cell) for cell in cells] for cells in expected["walls"]]
        assert result == expected


def test_dead_cells_are_the_native_ones(node: Node) -> None:
    boards = made(10)
    for board, result in zip(boards, node("deadCells", boards=boards), strict=True):
        level = Level.parse(board)
        dead = dead_cells(level) & (level.tokens != 0)
        assert result == [
            list(cell) for cell in zip(*(axis.tolist() for axis in dead.nonzero()), strict=True)
        ]
