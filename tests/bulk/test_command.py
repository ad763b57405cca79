"""``maskoban bulk``: what people type, and what they are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from maskoban.boards import read
from maskoban.bulk.job import Shard
from maskoban.cli import app


def run(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["bulk", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_make_verify_dedupe_export(dice: str, tmp_path: Path, in_process: list[Shard]) -> None:
    made = run("--count", 100, "--out", tmp_path / "a", "--model", dice, "--only-solvable", "--seed", 3)
    assert made.stdout.strip() == str(tmp_path / "a")
    assert made.stderr.startswith("100 boards: 100 solved; ")
    assert "10 boards judged anew" in run("verify", tmp_path / "a", "--sample", 10).stdout
    assert "; 0 boards judged anew" in run("verify", tmp_path / "a", "--sample", 0).stdout
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
    assert "--name, --valid and --test are for a folder, and" in refused


def test_a_damaged_dataset_is_told_line_by_line(dataset: Path) -> None:
    next((dataset / "data").iterdir()).unlink()
    assert "no such file" in run("verify", dataset, code=1).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--count", 9], "a dataset needs --count and --out"),
        (["--count", 9, "--out", "x", "--address", "auto"], "--address is for --engine ray"),
        (["--count", 9, "--out", "x", "--model", "nobody"], "no model 'nobody'"),
        (["--count", 9, "--out", "/dev/null/x"], "cannot be written"),
        (["--count", 9, "--out", "x", "--temperature", 0], "temperature must be above 0"),
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
    told = run("--count", 500, "--seed", 7, "--out", dataset, "--model", dice, "--polish", 1, code=2).stderr
    assert "was begun with polish 0, not 1" in told
