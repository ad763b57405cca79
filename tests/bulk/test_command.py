"""``maskoban bulk``: commands, their output and their errors."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from maskoban.boards import read
from maskoban.bulk.dataset import Dataset
from maskoban.bulk.job import Shard
from maskoban.cli.app import app
from maskoban.diffusion.loading import load
from maskoban.diffusion.sampler import SamplerConfig
from tests.bulk.dice import write_dice


def run(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["bulk", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_make_verify_dedupe_export(dice: str, tmp_path: Path, in_process: list[Shard]) -> None:
    made = run("--count", 100, "--out", tmp_path / "a", "--model", dice, "--only-solvable", "--seed", 3)
    assert made.stdout.strip() == str(tmp_path / "a")
    assert made.stderr.startswith("100 boards: 100 solved; ")
    assert "10 boards solved again" in run("verify", tmp_path / "a", "--sample", 10).stdout
    assert " 0 boards solved again" in run("verify", tmp_path / "a", "--sample", 0).stdout
    run("dedupe", tmp_path / "a", tmp_path / "b")
    exported = run("export", tmp_path / "b", tmp_path / "c", "--name", "medium")
    assert exported.stdout.strip() == str(tmp_path / "c" / "medium")
    assert (tmp_path / "c" / "medium" / "train" / "000.txt").exists()
    assert run("export", tmp_path / "b", tmp_path / "c").stdout.strip() == str(tmp_path / "c" / "unfiltered")
    one_file = run("export", tmp_path / "a", tmp_path / "d.sok")
    assert one_file.stdout.strip() == str(tmp_path / "d.sok")
    assert one_file.stderr == "100 in all\n"
    assert len(read(tmp_path / "d.sok")) == 100
    refused = run("export", tmp_path / "a", tmp_path / "e.sok", "--test", 0, code=2).stderr
    assert "--name, --valid and --test: expected a folder, but" in refused


def test_boards_of_another_size_are_a_dataset_too(tmp_path: Path, in_process: list[Shard]) -> None:
    wanted = ("--size", "6x7", "--boxes", 2, "--difficulty", "hard", "--sampler", "fast")
    run("--count", 12, "--out", tmp_path / "a", *wanted)
    settings = Dataset(tmp_path / "a").settings()
    assert (settings["model"], settings["conditions"]["width"], settings["boxes"]) == ("any", 7, None)
    assert "12 boards solved again" in run("verify", tmp_path / "a", "--sample", 20).stdout
    run("export", tmp_path / "a", tmp_path / "a.sok")
    given = load("any").given(size=(6, 7), boxes=2, difficulty="hard")
    boards = [level.tokens for level in read(tmp_path / "a.sok")]
    assert all(
        board.tobytes() in {each.tobytes() for each in given.sample(12, 0, "fast")} for board in boards
    )
    refused = run("--count", 12, "--out", tmp_path / "a", *wanted[2:], "--size", "7x6", code=2).stderr
    assert "conditions" in refused


def test_the_problems_of_a_damaged_dataset_are_printed(dataset: Path) -> None:
    next((dataset / "data").iterdir()).unlink()
    assert "no such file" in run("verify", dataset, code=1).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--count", 9], "a dataset needs --count and --out"),
        (["--count", 9, "--out", "x", "--address", "auto"], "--address: expected together with --engine ray"),
        (["--count", 9, "--out", "x", "--model", "nobody"], "no model 'nobody'"),
        (["--count", 9, "--out", "/dev/null/x"], "cannot be written"),
        (["--count", 9, "--out", "x", "--temperature", 0], "temperature: expected a number above 0, got 0"),
        (["verify", "nowhere"], "no dataset there"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    arguments: list[object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stderr = run(*arguments, code=2).stderr
    assert said in stderr
    assert len(stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_other_settings_are_refused(dataset: Path, dice: str) -> None:
    run("--count", 500, "--seed", 7, "--out", dataset, "--model", dice)
    error = run("--count", 500, "--seed", 7, "--out", dataset, "--model", dice, "--polish", 1, code=2).stderr
    assert "was started with sweeps 0, got 1" in error


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ([], SamplerConfig()),
        (["--sampler", "fast"], SamplerConfig(steps=16)),
        (["--sampler", "best"], SamplerConfig(critic=True)),
        (["--sampler", "best", "--temperature", 2], SamplerConfig(temperature=2.0)),
        (["--order", "confidence", "--sweeps", 2], SamplerConfig(order="confidence", sweeps=2)),
    ],
)
def test_the_sampler_is_plain_unless_options_say_otherwise(
    options: list[object], config: SamplerConfig, tmp_path: Path, in_process: list[Shard]
) -> None:
    model = write_dice(tmp_path / "model", critic=True)
    run("--count", 70, "--seed", 7, "--out", tmp_path / "out", "--model", model, *options)
    assert asdict(config).items() <= Dataset(tmp_path / "out").settings().items()
    boards = pq.read_table(tmp_path / "out" / "data")["tokens"].to_pylist()
    expected = load(model).sample(70, 7, config)
    assert boards == expected.reshape(70, -1).tolist()
