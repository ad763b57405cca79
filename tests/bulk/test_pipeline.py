"""Rows say what the rest of the package says about a board, and depend on nothing but the job."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from maskoban.boards import Level, Tokens
from maskoban.boards.synth import synthesize
from maskoban.bulk.job import Job, Origin, Shard
from maskoban.bulk.pipeline import Columns, annotate, sample
from maskoban.bulk.run import make
from maskoban.bulk.table import table
from maskoban.diffusion.loading import load
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.solving import rate_many, solves
from maskoban.solving.filters import BoardFilter
from tests.bulk.conftest import SOLVABLE
from tests.bulk.dice import open_way, write_dice

ORIGIN = Origin("dice", "f00d", "1.0")


def rows(boards: Tokens, job: Job, first: int = 0) -> list[dict[str, object]]:
    columns = annotate(boards, job, Shard(job.seed, first, len(boards)), ORIGIN)
    return [{name: plain(column, i) for name, column in columns.items()} for i in range(len(columns["id"]))]


def plain(column: Columns, i: int) -> object:
    value = column[i]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def sampled(dice: str, job: Job, first: int, count: int) -> Tokens:
    return sample(load(dice), job, Shard(job.seed, first, count))


def test_boards_do_not_depend_on_the_division_into_shards(dice: str) -> None:
    job = Job(100, 7, SamplerConfig(temperature=1.3, sweeps=1, steps=3))
    whole = load(dice).sample(100, 7, job.sampler)
    parts = [sampled(dice, job, first, count) for first, count in ((0, 33), (33, 1), (34, 66))]
    assert (np.concatenate(parts) == whole).all()


def test_the_critic_is_used_where_the_sampler_says_so(tmp_path: Path) -> None:
    dice = str(write_dice(tmp_path, critic=True))
    plain, chosen = (Job(400, 7, SamplerConfig(critic=critic)) for critic in (False, True))
    parts = [sampled(dice, chosen, first, count) for first, count in ((0, 33), (33, 367))]
    assert (np.concatenate(parts) == load(dice).sample(400, 7)).all()
    assert (sampled(dice, plain, 0, 400) == load(dice).sample(400, 7, "plain")).all()
    assert 0.42 < open_way(sampled(dice, plain, 0, 400)).mean() < 0.58  # expected are 1/2
    assert 0.74 < open_way(np.concatenate(parts)).mean() < 0.86  # and 1/2 : 1/2 * 1/4, so 4/5


def test_a_model_without_a_critic_is_refused_before_anything_is_written(dice: str, tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match="model 'dice' has no critic"):
        make(Job(10, sampler=SamplerConfig(critic=True)), tmp_path / "dataset", dice)
    assert not (tmp_path / "dataset").exists()


def test_rows_say_what_level_solver_and_rating_say() -> None:
    boards = synthesize(30, boxes=3, seed=1)
    boards[:3] = np.roll(boards[:3], 1, axis=2)  # and some that are probably broken
    ratings = rate_many(boards)
    assert {rating.difficulty for rating in ratings} >= {"easy", "medium"}
    for i, (row, rating) in enumerate(zip(rows(boards, Job(30, seed=5), first=1000), ratings, strict=True)):
        level = Level(boards[i])
        assert (row["id"], row["exact_id"]) == (level.id, level.exact_id)
        assert "\n".join(line.rstrip() for line in str(row["board"]).splitlines()) == str(level)
        assert row["tokens"] == boards[i].ravel().tolist()
        assert row["verdict"] == rating.verdict
        known = [
            None if value == -1 else value
            for value in (rating.pushes, rating.moves, rating.box_lines, rating.effort)
        ]
        assert [row[name] for name in ("pushes", "moves", "box_lines", "effort")] == known
        assert row["boxes"] == 3
        assert row["rating"] == (rating.difficulty or None)
        assert (row["seed"], row["number"], row["walls"]) == (5, 1000 + i, int((boards[i] == 0).sum()))
        assert (row["model"], row["weights"], row["version"]) == ("dice", "f00d", "1.0")
        if rating.verdict == "solved":
            assert solves(level, str(row["solution"]))
        else:
            assert row["solution"] is None


def test_only_solvable_boards_are_kept_on_request(dice: str) -> None:
    boards = sampled(dice, Job(50), 0, 50)
    kept = rows(boards, Job(50, board_filter=SOLVABLE), first=10)
    assert [row["number"] for row in kept] == (10 + np.flatnonzero(open_way(boards))).tolist()
    assert {row["verdict"] for row in kept} == {"solved"}


def test_boards_of_one_difficulty_are_kept_on_request() -> None:
    boards = synthesize(30, boxes=3, seed=1)
    words = [rating.difficulty for rating in rate_many(boards)]
    kept = rows(boards, Job(30, board_filter=BoardFilter(difficulty="medium")))
    assert [row["number"] for row in kept] == [i for i, word in enumerate(words) if word == "medium"]


def test_boards_with_so_many_boxes_are_kept_on_request() -> None:
    boards = np.concatenate(
        [synthesize(5, boxes=3), synthesize(5, boxes=2, seed=1), synthesize(5, boxes=3, seed=2)]
    )
    kept = rows(boards, Job(5, board_filter=BoardFilter(boxes=2)), first=100)
    assert {row["boxes"] for row in kept} == {2}
    assert [row["number"] for row in kept] == [105, 106, 107, 108, 109]
    assert {row["board"].count("$") + row["board"].count("*") for row in kept} == {2}


@pytest.mark.parametrize("wanted", [SOLVABLE, BoardFilter(difficulty="easy"), BoardFilter(boxes=7)])
def test_where_no_board_matches_there_are_no_rows(wanted: BoardFilter) -> None:
    boards = Level.parse("#####\n#@$ #\n#  .#\n#####").tokens[None]  # the box never leaves the upper wall
    assert table(annotate(boards, Job(1, board_filter=wanted), Shard(0, 0, 1), ORIGIN)).num_rows == 0


def test_repair_takes_away_the_wall_in_the_way_and_says_so(dice: str) -> None:
    boards = sampled(dice, Job(20), 0, 20)
    before = boards.copy()
    repaired = rows(boards, Job(20, repair=True))
    assert (boards == before).all()
    assert {row["verdict"] for row in repaired} == {"solved"}
    for row, was_open in zip(repaired, open_way(boards), strict=True):
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
    assert (row["solution"] is None) == (row["rating"] is None)  # guided effort rates without the effort
