"""``maskoban evaluate`` as people run it."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import maskoban
from maskoban.cli.app import app
from maskoban.evaluation import measure

from .boards import NO_PLAYER, ONE_WALL, SOLVABLE, drawn
from .recall import recalling_model


def evaluate(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["evaluate", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def boards(tmp_path: Path) -> Path:
    np.savez(tmp_path / "b.npz", boards=drawn(SOLVABLE, ONE_WALL, NO_PLAYER))
    return tmp_path / "b.npz"


def test_boards_drawn_elsewhere(boards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKOBAN_CACHE", str(tmp_path / "nothing-fetched"))
    out = tmp_path / "report"
    done = evaluate("--boards", boards, "--out", out)
    assert done.stdout == f"{out / 'report.html'}\n"
    assert "3 boards, 33.3% solvable (95 %: 6.1% to 79.2%)" in done.stderr
    assert "distances: nearest neighbours need the levels that were trained on" in done.stderr
    assert json.loads((out / "report.json").read_text())["source"]["boards"] == 3


def test_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def load(name: str, device: str) -> Any:
        asked.append((name, device))
        return recalling_model()

    monkeypatch.setattr(maskoban, "load", load)
    evaluate("--samples", 30, "--seed", 4, "--polish", 1, "--sweep", 0, "--out", tmp_path / "report")
    made = json.loads((tmp_path / "report" / "report.json").read_text())
    assert asked == [("best", "cpu")]
    assert made["source"]["critic"] == 1.0  # the model's own way
    assert (made["source"]["boards"], made["source"]["seed"], made["source"]["sweeps"]) == (30, 4, 1)
    assert "--sweep 0" in made["notes"]["samplers"]


def test_a_model_without_its_critic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maskoban, "load", lambda name, device: recalling_model())
    evaluate("--samples", 9, "--no-critic", "--sweep", 0, "--out", tmp_path / "report")
    source = json.loads((tmp_path / "report" / "report.json").read_text())["source"]
    assert (source["critic"], source["attempts"]) == (None, 1.0)


@pytest.mark.skipif(sys.platform == "win32", reason="there a process cannot be asked to end")
@pytest.mark.parametrize("way", ["SIGINT", "SIGTERM"])
def test_a_signal_says_how_to_go_on(
    way: str, boards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        signal.raise_signal(getattr(signal, way))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    with monkeypatch.context() as patch:
        patch.setattr(measure, "count_tiles", interrupted)
        try:
            stopped = evaluate("--boards", boards, "--out", tmp_path / "report", code=130)
        finally:
            signal.signal(signal.SIGINT, before)
    assert stopped.stderr.splitlines()[-1].startswith("maskoban: interrupted; the same command resumes")
    assert not list(tmp_path.rglob(".maskoban-*"))
    gone_on = evaluate("--boards", boards, "--out", tmp_path / "report")
    assert "mending: as before" in gone_on.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--boards", "b.npz", "--polish", "3"],
            "--device and the options of sampling are for a model",
        ),
        (["--boards", "b.npz", "--device", "cuda"], "--device and the options of sampling are for a"),
        (["--boards", "synth", "--axes", "walls,luck"], "axes: expected two of walls, effort,"),
        (
            ["--boards", "synth", "--boards", "random", "--log", "log.jsonl"],
            "--log is for a report of one model",
        ),
        (["--boards", "a/b.npz", "--boards", "b/b.npz"], "generators need different names, got b, b"),
        (["--boards", "nowhere.npz"], "nowhere.npz: no such file or folder"),
        (["--model", "nobody"], "no model 'nobody'"),
        (["--samples", "9", "--corpus", "nowhere.npz"], "nearest neighbours need the levels"),
    ],
)
def test_what_cannot_be_measured_is_said(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    refused = evaluate(*arguments, "--out", tmp_path / "report", code=2)
    assert refused.stderr.splitlines()[-1].startswith(f"maskoban: {sentence}")


def test_a_log_that_is_none_is_said_before_the_work(boards: Path, tmp_path: Path) -> None:
    refused = evaluate(
        "--boards", boards, "--log", tmp_path / "log.jsonl", "--out", tmp_path / "report", code=2
    )
    assert "log.jsonl: cannot be read" in refused.stderr
    assert "verdicts" not in refused.stderr
