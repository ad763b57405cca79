"""What the solver promises: verdicts it can stand by, limits it keeps, and batches that behave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskoban._util.progress import bar
from maskoban.boards import Level, Tokens, read_boards
from maskoban.errors import MaskobanError
from maskoban.solving.replay import solves
from maskoban.solving.solver import MODES, Limits, Results, dead_cells, solve, solve_many


def board(text: str) -> Level:
    return Level.parse(textwrap.dedent(text).strip("\n"))


CLASSIC = board(
    """
    ##############
    #    #       #
    # $  #  $ $  #
    #        $   #
    ## # ## #  ###
    #  #     # ..#
    #   $  @   ..#
    #   ## # # ..#
    #  $  $ $  ..#
    #   #        #
    ##############
    """
)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def large_board() -> Tokens:
    """64x64, open but for scattered pillars, 20 boxes far from 20 goals: no search gets to the end of it."""
    rng = np.random.default_rng(3)
    tokens = np.ones((64, 64), np.uint8)
    tokens[[0, -1], :] = tokens[:, [0, -1]] = 0
    tokens[3:-3:4, 3:-3:4] = 0
    free = rng.permutation([(r, c) for r, c in np.argwhere(tokens == 1) if 2 < r < 61 and 2 < c < 61])
    rows, columns = free[:41].T
    tokens[rows, columns] = [2] + [3] * 20 + [4] * 20
    return tokens


def test_one_push(mode: str) -> None:
    result = solve(board("#####\n#@$.#\n#####"), mode)
    assert (result.verdict, result.reason, result.solution) == ("solved", "", "R")
    assert (result.pushes, result.moves, result.solved) == (1, 1, True)


def test_nothing_to_do(mode: str) -> None:
    result = solve(board("#####\n#@ *#\n#####"), mode)
    assert (result.verdict, result.solution) == ("solved", "")
    assert (result.pushes, result.moves, result.expanded) == (0, 0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "######\n#+$  #\n######\n",
        "#######\n#.$*@ #\n#######",
        "#####\n#.@ #\n#$  #\n#####",
    ],
    ids=["the goal is behind the player", "two boxes in a row", "along the wall only"],
)
def test_unsolvable(text: str, mode: str) -> None:
    result = solve(board(text), mode)
    assert (result.verdict, result.solution, result.pushes, result.moves) == ("unsolvable", "", -1, -1)


@pytest.mark.parametrize(
    "text",
    [
        "#######\n#     #\n#  $+ #\n#     #\n#######",
        "#######\n#  *  #\n# $+* #\n#     #\n#######",
        "@ $ .",
        " @\n $\n .",
    ],
    ids=["player on goal", "boxes on goals in the way", "no border at all", "the edge is a wall"],
)
def test_solvable(text: str, mode: str) -> None:
    level = Level.parse(text)
    result = solve(level, mode)
    assert result.verdict == "solved"
    assert solves(level, result.solution)


def test_a_box_out_of_reach_counts(mode: str) -> None:
    assert solve(board("########\n#@$.# *#\n########"), mode).solved
    refused = solve(board("##########\n#@$.# $ .#\n##########"), mode)
    assert refused.verdict == "unsolvable"


def test_a_box_out_of_reach_may_come_into_reach(mode: str) -> None:
    level = board(
        """
        #######
        #@$  .#
        ####  #
        #. $  #
        #######
        """
    )
    assert solves(level, solve(level, mode).solution)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#$.#", "no player"),
        ("#@$.@#", "2 players"),
        ("#@$.+#", "2 players"),
        ("#@ #", "no boxes"),
        ("#@ .#", "no boxes"),
        ("#@$$$$...#", "4 boxes but 3 goals"),
        ("#@$..#", "1 box but 2 goals"),
        ("#@$$.#", "2 boxes but 1 goal"),
        ("#@$#", "1 box but 0 goals"),
        ("#@$.?#", "masked cells left"),
    ],
)
def test_malformed(text: str, reason: str, mode: str) -> None:
    result = solve(board(text), mode)
    assert (result.verdict, result.reason) == ("malformed", reason)
    assert (result.solution, result.pushes, result.moves, result.expanded) == ("", -1, -1, 0)


def test_arrays_that_are_no_boards() -> None:
    assert solve(np.zeros((0, 5), np.uint8)).reason == "empty board"
    assert solve(np.zeros((65, 5), np.uint8)).reason == "board of 65 x 5 cells is larger than 64 x 64"
    assert solve(np.full((2, 2), 9, np.uint8)).reason == "unknown tile number 9"
    with pytest.raises(MaskobanError, match=r"shape \(n, h, w\), but this array has shape \(4, 4\)"):
        solve_many(np.zeros((4, 4), np.uint8))
    with pytest.raises(MaskobanError, match="tile numbers from 0 to 7"):
        solve(np.full((3, 3), -1))


def test_what_cannot_be_asked_for() -> None:
    level = board("#@$.#")
    with pytest.raises(
        MaskobanError, match="unknown mode 'best': expected one of any, pushes, effort, decomposed"
    ):
        solve(level, "best")
    for threads in (0, -1, 1.5, "2"):
        with pytest.raises(
            MaskobanError, match=f"threads must be a whole number, 1 or more, but is {threads!r}"
        ):
            solve_many([level], threads=threads)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "values", "sentence"),
    [
        ("states", (-1, 1.5, "many"), "a state limit must be a whole number, 0 or more"),
        ("megabytes", (0, -1, 1.5, None), "a memory limit must be a whole number of MB, 1 or more"),
        ("seconds", (-0.5, float("nan"), "1"), "a time limit must be a number of seconds, 0 or more"),
    ],
)
def test_limits_that_make_no_sense(limit: str, values: tuple[Any, ...], sentence: str) -> None:
    for value in values:
        with pytest.raises(MaskobanError, match=f"^{sentence}, but is {value!r}$"):
            Limits(**{limit: value})


def test_limits_beyond_all_bounds_are_no_limits(mode: str) -> None:
    for most in (2**44, 2**63, 10**400):
        assert solve(board("#@$.#"), mode, Limits(most, most, most)).solved
    assert solve(board("#@$.#"), mode, Limits(seconds=float("inf"))).solved
    assert solve(board("#@$.#"), mode, Limits(np.int64(9), np.int32(9), np.float32(9))).solved  # type: ignore[arg-type]


def test_more_threads_than_boards_or_sense() -> None:
    assert solve_many([board("#@$.#")] * 300, threads=50_000).solved.all()


def test_what_is_no_board() -> None:
    with pytest.raises(MaskobanError, match=r"^a board is a Level or an array, not text: use Level\.parse$"):
        solve("#@$.#")  # type: ignore[arg-type]
    with pytest.raises(MaskobanError, match=r"^the rows of a board must be equally long$"):
        solve([[2, 3, 4], [1]])  # type: ignore[arg-type]
    for one, kind in (("#@$.#", "str"), (board("#@$.#"), "Level"), (7, "int")):
        with pytest.raises(MaskobanError, match=f"^expected several boards, got one {kind}$"):
            solve_many(one)  # type: ignore[arg-type]


def test_boards_in_any_wrapping() -> None:
    rows = [[2, 3, 4]], [[3, 2, 4]]
    assert solve(rows[0]).solved  # type: ignore[arg-type]
    for boards in (rows, np.array(rows), (np.array(each) for each in rows), map(np.array, rows)):
        assert solve_many(boards).solved.tolist() == [True, False]  # type: ignore[arg-type]


def test_the_state_limit_is_kept_to_the_state(mode: str) -> None:
    full = solve(CLASSIC, mode, Limits(states=5))
    assert (full.verdict, full.limit_hit, full.expanded) == ("unknown", "states", 5)
    assert full.reason == "state limit of 5 reached"
    assert solve(board("#@$.#"), mode, Limits(states=1)).solved


def test_the_time_limit(mode: str) -> None:
    result = solve(large_board(), mode, Limits(seconds=0.01))
    assert (result.verdict, result.limit_hit) == ("unknown", "time")
    assert result.reason == "time limit of 0.01 seconds reached"
    assert result.seconds >= 0.01


def test_the_clock_is_looked_at_before_the_first_state_of_a_large_board(mode: str) -> None:
    result = solve(large_board(), mode, Limits(seconds=0))
    assert (result.verdict, result.reason) == ("unknown", "time limit of 0 seconds reached")
    assert result.expanded == 0


def test_a_board_stopped_by_the_clock_gives_its_memory_back(mode: str) -> None:
    found = solve_many([large_board()] * 9, mode, threads=1, limits=Limits(megabytes=2, seconds=0))
    assert set(found.reasons) == {"time limit of 0 seconds reached"}


def test_fewest_moves_are_not_sought_at_any_price() -> None:
    """Two boxes in an empty hall: the fewest pushes are found at once, but there are countless ways to go."""
    tokens = np.full((64, 64), 1, np.uint8)
    tokens[[10, 20, 40, 30, 45], [10, 25, 12, 40, 50]] = [2, 3, 3, 4, 4]
    result = solve(tokens, "pushes")
    assert (result.verdict, result.reason) == ("solved", "fewest pushes, but fewest moves not proved")
    assert result.pushes == solve(tokens, "pushes", Limits(states=result.expanded)).pushes
    assert result.expanded < 10_000
    assert solves(tokens, result.solution)


def test_a_classic_level() -> None:
    result = solve(CLASSIC)
    assert CLASSIC.tokens.size > 100
    assert int(np.isin(CLASSIC.tokens, (3, 5)).sum()) > 6
    assert solves(CLASSIC, result.solution)


MEMORY_PROBE = """
import sys
from tests.solving.test_solver import large_board
from maskoban.solving.solver import Limits, solve

def peak_megabytes():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

board = large_board()
solve(board, sys.argv[1], Limits(states=1))  # whatever is only loaded when first needed
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")  # the peak falls back to what is in use now
before = peak_megabytes()
result = solve(board, sys.argv[1], Limits(megabytes=8))
print(result.verdict, result.limit_hit, result.reason, peak_megabytes() - before, sep="|")
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="reads its own memory from /proc")
def test_memory_stays_within_its_bound(mode: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_PROBE, mode],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    verdict, limit_hit, reason, megabytes = done.stdout.strip().split("|")
    assert (verdict, limit_hit, reason) == ("unknown", "memory", "memory limit of 8 MB reached")
    assert 3 < float(megabytes) < 9


def test_a_batch_is_its_boards_one_by_one(mode: str) -> None:
    levels = [board("#@$.#"), CLASSIC, board("#@$ #"), board("######\n#@$ .#\n######"), board("#@$.#")]
    limits = Limits(states=200)
    found = solve_many(levels, mode, threads=2, limits=limits)
    assert len(found) == len(levels)
    for level, result in zip(levels, found, strict=True):
        alone = solve(level, mode, limits)
        assert replace(result, seconds=0) == replace(alone, seconds=0)


def test_batches_without_solutions_and_without_boards() -> None:
    boards = np.stack([board("#@$.#").tokens] * 3)
    found = solve_many(boards, solutions=False)
    assert found.solutions is None
    assert found.solved.tolist() == [True] * 3
    assert (found[2].solution, found[2].pushes) == ("", 1)
    assert [array.dtype for array in (found.verdicts, found.pushes, found.expanded)] == ["u1", "i4", "i8"]
    assert len(solve_many(np.zeros((0, 10, 10), np.uint8))) == len(solve_many([])) == 0


def test_a_part_of_the_results(mode: str) -> None:
    found = solve_many([board("#@$.#"), CLASSIC, board("#@$ #")], mode, limits=Limits(states=2))
    part = found[1:]
    assert isinstance(part, Results)
    assert list(part) == list(found)[1:]
    assert solve_many([CLASSIC] * 2, limits=Limits(states=2), solutions=False)[::-1].solutions is None


def test_progress_is_reported_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[tuple[int, int]] = []
    solve_many([CLASSIC, board("#@$.#")], on_progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1] == (2, 2)
    with bar("solving") as show:
        solve_many([CLASSIC, board("#@$.#")], on_progress=show)
    assert "2/2" in capsys.readouterr().err


INTERRUPTED = """
import numpy as np
from tests.solving.test_solver import large_board
from maskoban.solving.solver import solve_many

boards = np.stack([large_board()] * 4)
print("ready", flush=True)
try:
    solve_many(boards, "effort", threads=2)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_stops_a_batch() -> None:
    repository = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True, cwd=repository
    ) as batch:
        assert batch.stdout is not None
        assert batch.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            batch.wait(0.3)
        batch.send_signal(signal.SIGINT)
        assert batch.stdout.readline() == "stopped\n"
        assert batch.wait() == 0


def test_dead_cells() -> None:
    level = board(
        """
        ######
        #@   #
        # $  #
        #  . #
        ######
        """
    )
    drawn = ["".join(" x"[cell] for cell in row) for row in dead_cells(level).astype(int)]
    assert drawn == [
        "xxxxxx",
        "xxxxxx",
        "xx  xx",
        "xx  xx",
        "xxxxxx",
    ]


def replayed(boards: Tokens, found: Results) -> int:
    assert found.solutions is not None
    return sum(solves(tokens, lurd) for tokens, lurd in zip(boards, found.solutions, strict=True))


def test_real_levels_are_solved(boxoban: Path) -> None:
    parts = [read_boards(str(boxoban / folder))[:number] for folder, number in SHARES.items()]
    boards = np.concatenate(parts)
    found = solve_many(boards)
    assert replayed(boards, found) == len(boards)
    fewest, plain = solve_many(boards[::10], "pushes"), solve_many(boards[::10], "effort")
    assert replayed(boards[::10], fewest) == len(fewest)
    assert fewest.pushes.tolist() == plain.pushes.tolist()
    assert (fewest.moves <= plain.moves).all()


#: How many levels of each collection are tried here; benchmarks/solver.py --replay tries them all.
SHARES = {"medium/valid": 2000, "hard": 1000, "unfiltered/test": 1000}


def test_effort_over_real_levels(boxoban: Path) -> None:
    """The quartiles over the first 1,000 of medium/valid, pinned: the definition must never change."""
    boards = read_boards(str(boxoban / "medium/valid"))[:1000]
    effort = solve_many(boards, "effort", solutions=False).expanded
    assert np.percentile(effort, [25, 50, 75]).tolist() == [604.75, 1547.5, 3593.75]
