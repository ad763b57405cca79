"""Nearest neighbours: against comparing every pair, whatever the registers, the size and the threads."""

from __future__ import annotations

import _thread
from pathlib import Path

import numpy as np
import pytest

from maskoban import _core
from maskoban.boards import Level, Tokens
from maskoban.errors import MaskobanError
from maskoban.evaluation import (
    measure_distances,
    nearest_distances,
    share_of,
    training_levels,
    without_player,
)

from .boards import SOLVABLE, drawn, scribbles


def slow_distances(boards: Tokens, corpus: Tokens) -> list[int]:
    boards, corpus = without_player(boards), without_player(corpus)
    return [min(int((board != other).sum()) for other in corpus) for board in boards]


def test_the_player_leaves_what_it_stands_on() -> None:
    assert str(Level(without_player(drawn("#####\n#@$+#\n#####"))[0])) == "#####\n# $.#\n#####"


def test_a_walk_makes_no_other_board_but_a_push_does() -> None:
    walked, pushed = SOLVABLE.replace("@$ ", " $@"), SOLVABLE.replace("@$ ", " @$")
    assert nearest_distances(drawn(walked, pushed), drawn(SOLVABLE)).tolist() == [0, 2]


@pytest.mark.parametrize("shape", [(1, 1), (4, 5), (8, 8), (5, 13), (10, 10), (16, 16), (7, 64)])
@pytest.mark.parametrize("corpus", [1, 8, 43])
def test_any_size_against_every_pair(shape: tuple[int, int], corpus: int) -> None:
    boards, others = scribbles(70, *shape, tiles=8), scribbles(corpus, *shape, tiles=8, seed=1)
    others[0] = boards[5]
    assert nearest_distances(boards, others).tolist() == slow_distances(boards, others)


def test_cells_that_never_vary_separate_nothing() -> None:
    boards, corpus = scribbles(30, 10, 10), scribbles(30, 10, 10, seed=1)
    for each in (boards, corpus):
        each[:, [0, -1]] = each[:, :, [0, -1]] = 0
    assert nearest_distances(boards, corpus).tolist() == slow_distances(boards, corpus)
    assert nearest_distances(boards[:1], boards[:1]).tolist() == [0]
    corpus[:, 0, 0] = 1  # the same in all the corpus, but another tile than on the boards
    assert nearest_distances(boards, corpus).tolist() == slow_distances(boards, corpus)


@pytest.mark.parametrize("registers", _core.registers())
@pytest.mark.parametrize("cells", [1, 63, 64, 65, 200])
def test_every_kind_of_registers_counts_alike(registers: str, cells: int) -> None:
    # More boards than one pass takes, and a corpus of several passes.
    boards = scribbles(130, 1, cells, tiles=8)[:, 0]
    corpus = scribbles(2500, 1, cells, tiles=8, seed=1)[:, 0]
    corpus[-1] = boards[-1]
    slow = [(board != corpus).sum(axis=1).min() for board in boards]
    for threads in (1, 3):
        assert _core.nearest(boards, corpus, registers, threads, None).tolist() == slow


def test_registers_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="no registers called abacus"):
        _core.nearest(np.zeros((1, 4), np.uint8), np.zeros((1, 4), np.uint8), "abacus", 1, None)


def test_more_threads_than_boards_or_sense() -> None:
    boards, corpus = scribbles(5, 4, 4), scribbles(3, 4, 4, seed=1)
    slow = slow_distances(boards, corpus)
    assert nearest_distances(boards, corpus, threads=1_000_000).tolist() == slow
    assert _core.nearest(boards.reshape(5, 16), corpus.reshape(3, 16), "plain", 1_000_000, None).shape == (5,)


def test_no_boards_have_no_distances() -> None:
    assert nearest_distances(scribbles(0, 4, 4), scribbles(3, 4, 4)).tolist() == []


@pytest.mark.parametrize(
    ("boards", "corpus", "threads", "problem"),
    [
        (
            scribbles(2, 4, 5),
            scribbles(2, 5, 4),
            None,
            "boards of 4x5 cannot be compared with a corpus of 5x4",
        ),
        (scribbles(2, 4, 5), scribbles(0, 4, 5), None, "no levels to compare with"),
        (scribbles(2, 4, 5), scribbles(2, 4, 5), 0, "threads must be a whole number, 1 or more"),
    ],
)
def test_what_cannot_be_compared(boards: Tokens, corpus: Tokens, threads: int | None, problem: str) -> None:
    with pytest.raises(MaskobanError, match=problem):
        nearest_distances(boards, corpus, threads)


def test_an_interrupt_ends_it() -> None:
    boards, corpus = scribbles(200_000, 1, 64)[:, 0], scribbles(300_000, 1, 64, seed=1)[:, 0]
    compared: list[int] = []

    def interrupt(done: int) -> None:
        compared.append(done)
        _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        _core.nearest(boards, corpus, "plain", 1, interrupt)  # minutes, if left alone
    assert compared[-1] < len(boards)


def test_progress_is_told() -> None:
    told: list[int] = []
    boards, corpus = scribbles(20_000, 1, 64)[:, 0], scribbles(20_000, 1, 64, seed=1)[:, 0]
    _core.nearest(boards, corpus, "plain", 1, told.append)
    assert told == sorted(told)
    assert 0 < told[-1] <= 20_000


def test_a_summary() -> None:
    found = measure_distances(np.array([0, 0, 5, 6, 13], np.int32))
    assert (found.median, found.mean, found.exact) == (5.0, 24 / 5, 2)
    assert found.within_five == share_of(3, 5)
    assert found.histogram == [2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1]
    with pytest.raises(MaskobanError, match="no boards"):
        measure_distances(np.array([], np.int32))


def test_missing_training_levels_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKOBAN_CACHE", str(tmp_path))
    with pytest.raises(MaskobanError) as caught:
        training_levels()
    assert str(caught.value).startswith(
        "nearest neighbours need the levels that were trained on: no corpus 'boxoban-medium-train'"
    )
    assert "`maskoban corpus fetch`" in str(caught.value)
