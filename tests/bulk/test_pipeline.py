"""Rows say what the rest of the package says about a board, and depend on nothing but the job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskoban.boards import Level, MaskobanError, Tokens
from maskoban.bulk.job import Job, Origin, Shard
from maskoban.bulk.making import make
from maskoban.bulk.models import load_model
from maskoban.bulk.pipeline import Columns, draw, judge
from maskoban.bulk.table import table
from maskoban.diffusion.model import load
from maskoban.solving import rate_many, solves
from maskoban.training.synth import synthesize
from tests.bulk.dice import open_way, write_dice

ORIGIN = Origin("dice", "f00d", "1.0")


def rows(boards: Tokens, job: Job, first: int = 0) -> list[dict[str, object]]:
    columns = judge(boards, job, Shard(job.seed, first, len(boards)), ORIGIN)
    return [{name: plain(column, i) for name, column in columns.items()} for i in range(len(columns["id"]))]


def plain(column: Columns, i: int) -> object:
    value = column[i]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def drawn(dice: str, job: Job, first: int, count: int) -> Tokens:
    return draw(load_model(dice, job), job, Shard(job.seed, first, count))


def test_boards_are_those_the_model_draws_however_the_sequence_is_cut(dice: str) -> None:
    job = Job(100, seed=7, temperature=1.3, polish=1, steps=3)
    whole = load(dice).sample(100, 7, temperature=1.3, polish=1, steps=3)
    parts = [drawn(dice, job, first, count) for first, count in ((0, 33), (33, 1), (34, 66))]
    assert (np.concatenate(parts) == whole).all()


def test_a_critic_is_asked_where_the_job_says_so(tmp_path: Path) -> None:
    dice = str(write_dice(tmp_path, critic=True))
    plain, chosen = (Job(400, seed=7, critic=critic) for critic in (False, True))
    parts = [drawn(dice, chosen, first, count) for first, count in ((0, 33), (33, 367))]
    assert (np.concatenate(parts) == load(dice).sample(400, 7)).all()
    assert (drawn(dice, plain, 0, 400) == load(dice).sample(400, 7, critic=False)).all()
    assert 0.42 < open_way(drawn(dice, plain, 0, 400)).mean() < 0.58  # expected are 1/2
    assert 0.74 < open_way(np.concatenate(parts)).mean() < 0.86  # and 1/2 : 1/2 * 1/4, so 4/5


def test_a_model_without_a_critic_is_refused_before_anything_is_written(dice: str, tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match="model 'dice' has no critic"):
        make(Job(10, critic=True), tmp_path / "dataset", dice)
    assert not (tmp_path / "dataset").exists()


def test_rows_say_what_level_solver_and_rating_say() -> None:
    boards = synthesize(30, boxes=3, seed=1)
    boards[:3] = np.roll(boards[:3], 1, axis=2)  # and some that are probably broken
    ratings = rate_many(boards)
    assert {rating.word for rating in ratings} >= {"easy", "medium"}
    for i, (row, rating) in enumerate(zip(rows(boards, Job(30, seed=5), first=1000), ratings, strict=True)):
        level = Level(boards[i])
        assert (row["id"], row["exact_id"]) == (level.id, level.exact_id)
        assert "\n".join(line.rstrip() for line in str(row["board"]).splitlines()) == str(level)
        assert row["tokens"] == boards[i].ravel().tolist()
        assert row["verdict"] == rating.verdict
        known = [
            None if value in (-1, "") else value for value in (rating.pushes, rating.moves, rating.effort)
        ]
        assert [row["pushes"], row["moves"], row["effort"]] == known
        assert row["rating"] == (rating.word or None)
        assert (row["seed"], row["number"], row["walls"]) == (5, 1000 + i, int((boards[i] == 0).sum()))
        assert (row["model"], row["weights"], row["version"]) == ("dice", "f00d", "1.0")
        if rating.verdict == "solved":
            assert solves(level, str(row["solution"]))
        else:
            assert row["solution"] is None


def test_only_solvable_boards_are_kept_on_request(dice: str) -> None:
    boards = drawn(dice, Job(50), 0, 50)
    kept = rows(boards, Job(50, only_solvable=True), first=10)
    assert [row["number"] for row in kept] == (10 + np.flatnonzero(open_way(boards))).tolist()
    assert {row["verdict"] for row in kept} == {"solved"}


def test_boards_of_one_difficulty_are_kept_on_request() -> None:
    boards = synthesize(30, boxes=3, seed=1)
    words = [rating.word for rating in rate_many(boards)]
    kept = rows(boards, Job(30, difficulty="medium"))
    assert [row["number"] for row in kept] == [i for i, word in enumerate(words) if word == "medium"]


def test_boards_with_so_many_boxes_are_kept_on_request() -> None:
    boards = np.concatenate(
        [synthesize(5, boxes=3), synthesize(5, boxes=2, seed=1), synthesize(5, boxes=3, seed=2)]
    )
    kept = rows(boards, Job(5, boxes=2), first=100)
    assert [row["number"] for row in kept] == [105, 106, 107, 108, 109]
    assert {row["board"].count("$") + row["board"].count("*") for row in kept} == {2}


@pytest.mark.parametrize("wish", [{"only_solvable": True}, {"difficulty": "easy"}, {"boxes": 7}])
def test_where_no_board_passes_there_are_no_rows(wish: dict[str, Any]) -> None:
    boards = Level.parse("#####\n#@$ #\n#  .#\n#####").tokens[None]  # the box never leaves the upper wall
    assert table(judge(boards, Job(1, **wish), Shard(0, 0, 1), ORIGIN)).num_rows == 0


def test_repair_takes_away_the_wall_in_the_way_and_says_so(dice: str) -> None:
    boards = drawn(dice, Job(20), 0, 20)
    before = boards.copy()
    mended = rows(boards, Job(20, repair=True))
    assert (boards == before).all()
    assert {row["verdict"] for row in mended} == {"solved"}
    for row, was_open in zip(mended, open_way(boards), strict=True):
        assert row["repaired"] == ([] if was_open else [1 * 8 + 3])
        assert row["walls"] == str(row["board"]).count("#")
        assert str(row["board"]).splitlines()[1][3] == " "


def test_a_search_that_gives_up_leaves_the_verdict_unknown_and_says_why() -> None:
    board = Level.parse("########\n#@ $  .#\n# $  . #\n#      #\n########").tokens[None]
    (row,) = rows(board, Job(1, states=1))
    assert (row["verdict"], row["solution"], row["effort"]) == ("unknown", None, None)
    assert "state" in str(row["reason"])


@pytest.mark.parametrize("states", [3, 10, 30, 100])
def test_what_is_solved_but_not_rated_has_a_solution_that_holds(states: int) -> None:
    board = Level.parse("########\n#@ $  .#\n# $  . #\n#      #\n########").tokens[None]
    (row,) = rows(board, Job(1, states=states))
    if row["verdict"] == "solved":
        assert solves(Level(board[0]), str(row["solution"]))
        assert row["moves"] == len(str(row["solution"]))
    assert (row["effort"] is None) == (row["rating"] is None)
