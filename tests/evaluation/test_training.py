"""Training curves come from the log, and boards drawn on the way are judged where they lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.training import Loss, read_training

from .boards import NO_PLAYER, ONE_WALL, SOLVABLE, drawn

LOG: list[dict[str, Any]] = [
    {"event": "start", "settings": {"name": "best"}, "corpus": 450000},
    {"step": 1000, "minutes": 0.7, "train": 0.7, "valid": 0.6, "rate": 1.0},
    {"step": 1000, "boards": "boards-0001000.npy", "walls": 68.4},
    {"step": 2000, "minutes": 1.4, "train": 0.5, "rate": 1.0},
    {"step": 2000, "boards": "boards-0002000.npy", "walls": 68.4},
    {"event": "end", "step": 2000, "minutes": 1.5},
]


def written(folder: Path, entries: list[Any]) -> Path:
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return log


def test_losses_and_solvability(tmp_path: Path) -> None:
    np.save(tmp_path / "boards-0001000.npy", drawn(SOLVABLE, SOLVABLE, ONE_WALL, NO_PLAYER))
    training = read_training(written(tmp_path, LOG))
    assert training.settings == {"name": "best"}
    assert training.losses == [Loss(1000, 0.7, 0.6), Loss(2000, 0.5, None)]
    (checkpoint,) = training.solvability
    assert (checkpoint.step, checkpoint.solvable.count, checkpoint.solvable.total) == (1000, 2, 4)
    assert training.missing == ["boards-0002000.npy"]


def test_runs_that_stand_on_each_other_are_one_curve(tmp_path: Path) -> None:
    start = {"event": "start", "settings": {"name": "best", "sample_boards": 50}}
    second = [start, {"step": 500, "train": 0.4}, {"step": 500, "boards": "elsewhere.npy", "solvable": 0.84}]
    for ending in ("end", "interrupted"):
        first = [*LOG[:-1], {"event": ending, "step": 2000}]
        assert [each.step for each in read_training(written(tmp_path, first + second)).losses][-1] == 2500
    training = read_training(written(tmp_path, [*LOG, *second]))
    assert [loss.step for loss in training.losses] == [1000, 2000, 2500]
    (checkpoint,) = training.solvability
    assert (checkpoint.step, checkpoint.solvable.count, checkpoint.solvable.total) == (2500, 42, 50)


def test_boards_of_the_same_name_belong_to_the_last_of_several_runs(tmp_path: Path) -> None:
    np.save(tmp_path / "boards-0001000.npy", drawn(SOLVABLE, SOLVABLE))
    start = {"event": "start", "settings": {"name": "best", "sample_boards": 50}}
    run = [
        start,
        {"step": 1000, "train": 0.4},
        {"step": 1000, "boards": "boards-0001000.npy", "solvable": 0.5},
    ]
    end = {"event": "end", "step": 1000}
    training = read_training(written(tmp_path, [*run, end, *run, end]))
    assert [(each.step, each.solvable.count) for each in training.solvability] == [(1000, 25), (2000, 25)]


def test_a_run_that_stands_on_nothing_begins_at_zero(tmp_path: Path) -> None:
    start = {"event": "start", "settings": {"name": "best", "sample_boards": 50}, "before": 0}
    run = [start, {"step": 500, "train": 0.4}, {"event": "end", "step": 500}]
    assert [loss.step for loss in read_training(written(tmp_path, run + run)).losses] == [500]
    run[3:] = [start | {"before": 500}, {"step": 100, "train": 0.3}]
    assert [loss.step for loss in read_training(written(tmp_path, run)).losses] == [500, 600]


def test_what_was_logged_stands_in_for_damaged_boards(tmp_path: Path) -> None:
    (tmp_path / "boards-0001000.npy").write_bytes(b"\x93NUMPY")
    entries = [dict(entry) for entry in LOG]
    entries[0]["settings"] = {"name": "best", "sample_boards": 50}
    entries[2]["solvable"] = 0.5
    (checkpoint,) = read_training(written(tmp_path, entries)).solvability
    assert (checkpoint.solvable.count, checkpoint.solvable.total) == (25, 50)


def test_what_a_killed_run_had_logged_in_vain_does_not_count(tmp_path: Path) -> None:
    start = {"event": "start", "settings": {"name": "best", "sample_boards": 50}, "from_step": 0}
    killed = [start, {"step": 10, "train": 3.0}, {"step": 10, "boards": "elsewhere.npy", "solvable": 0.5}]
    begun_anew = [start, *({"step": step, "train": 2.0} for step in (10, 20, 30))]
    resumed = [start | {"event": "resume", "from_step": 20}, {"step": 30, "train": 1.0}]
    training = read_training(written(tmp_path, [*LOG, *killed, *begun_anew, *resumed]))
    assert [(loss.step, loss.train) for loss in training.losses[2:]] == [(2010, 2), (2020, 2), (2030, 1)]
    assert training.solvability == []


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ([], "no losses in it"),
        (LOG[:1], "no losses in it"),
        ([*LOG, 3], "line 7: not a JSON object"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, entries: list[Any], sentence: str) -> None:
    with pytest.raises(MaskobanError, match=sentence):
        read_training(written(tmp_path, entries))


def test_a_missing_log_is_said(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match="cannot be read"):
        read_training(tmp_path / "log.jsonl")
