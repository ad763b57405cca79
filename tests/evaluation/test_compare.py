"""Several generators side by side in one report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

import maskoban
from maskoban.boards import write
from maskoban.boards.synth import synthesize
from maskoban.cli.app import app
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.evaluation.evaluate import compare
from maskoban.evaluation.figures import redraw
from maskoban.evaluation.measure import Generator, Plan
from maskoban.evaluation.measures.board_measures import measure_boards
from maskoban.evaluation.measures.diversity import measure_diversity
from maskoban.evaluation.reference import load_reference
from maskoban.evaluation.report import Comparison, read_report
from maskoban.evaluation.sample import random_boards

from .recall import recalling_model

PLAN = Plan(samples=24, sweep=0, corpus="nowhere", axes=(("walls", "pushes"), ("moves", "effort")))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    """A model with two samplers, a file, `corpus synth` and random boards."""
    folder = tmp_path_factory.mktemp("compared")
    write(folder / "file.npz", synthesize(20, 7, 7, 2, seed=9))
    model = recalling_model()
    generators = [
        Generator("recall", model),
        Generator("recall-plain", model, SamplerConfig()),
        Generator("file", folder / "file.npz"),
        Generator("synth", "synth"),
        Generator("random", "random"),
    ]
    return folder, compare(generators, folder / "report", PLAN)


def test_every_generator_has_its_numbers(compared: tuple[Path, Comparison]) -> None:
    folder, made = compared
    assert list(made.generators) == ["recall", "recall-plain", "file", "synth", "random"]
    assert [each.source.boards for each in made.generators.values()] == [24, 24, 20, 24, 24]
    assert made.generators["recall"].source.critic == 1.0
    assert made.generators["recall-plain"].source.critic is None
    assert made.generators["synth"].solvability.solvable.share == 1  # type: ignore[union-attr]
    assert made.generators["random"].source.rule == "random"
    assert read_report(folder / "report" / "report.json") == made


def test_diversity_is_of_as_many_boards_of_each(compared: tuple[Path, Comparison]) -> None:
    _, made = compared
    assert {each.diversity.boards for each in made.generators.values() if each.diversity} == {20}
    boards = random_boards(24)[:20]
    expected = measure_diversity(boards, load_reference().patterns, measure_boards(boards))
    assert made.generators["random"].diversity == expected


def test_the_page_has_a_column_and_a_panel_for_each(compared: tuple[Path, Comparison]) -> None:
    folder, made = compared
    page = (folder / "report" / "report.html").read_text()
    for name in made.generators:
        assert f'<th scope="col" class="number">{name}</th>' in page
        assert f"<h3>{name}</h3>" in page
    assert "random: no board was solved, so none has a difficulty." in page
    figures = {path.stem for path in (folder / "report" / "figures").glob("*.svg")}
    assert figures >= {
        "range-walls-pushes",
        "range-moves-effort",
        "outcomes",
        "difficulty",
        "boards-0",
        "boards-4",
    }
    for path in (folder / "report" / "figures").glob("range-*.json"):
        data, svg = json.loads(path.read_text()), path.with_suffix(".svg").read_text()
        assert list(data["points"]) == list(made.generators)
        for name, points in data["points"].items():
            assert f"{name}: {len(points):,} boards" in svg
        assert redraw(path).svg == svg


def test_the_same_again_changes_nothing(compared: tuple[Path, Comparison]) -> None:
    folder, _ = compared
    report, said = folder / "report", list[str]()
    before = {path: path.read_bytes() for path in report.glob("*.*")}
    generators = [
        Generator("recall", recalling_model()),
        Generator("recall-plain", recalling_model(), SamplerConfig()),
        Generator("file", folder / "file.npz"),
        Generator("synth", "synth"),
        Generator("random", "random"),
    ]
    compare(generators, report, PLAN, said.append)
    assert {path: path.read_bytes() for path in report.glob("*.*")} == before
    assert [line for line in said if re.search(r": [\d.]+ s$", line)] == []  # no stage was made
    assert sum(line.endswith("as before") for line in said) > 30


@pytest.mark.parametrize("width", [1280, 390])
def test_opened_in_chromium(browser: Browser, compared: tuple[Path, Comparison], width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((compared[0] / "report" / "report.html").as_uri())
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maskoban, "load", lambda name, device: recalling_model())
    out, boards = tmp_path / "report", tmp_path / "mine.npz"
    np.savez(boards, boards=synthesize(5, 7, 7, 1))
    arguments: list[Any] = ["--model", "recall", "--model", "recall:plain", "--boards", boards, "--boards", "random",
        "--samples", 6, "--axes", "walls,box-changes", "--corpus", boards, "--out", out]  # fmt: skip
    done = CliRunner().invoke(app, ["evaluate", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{out / 'report.html'}\n"
    told = [line for line in done.stderr.splitlines() if " solvable (95 %" in line]
    assert [line.split(":")[0] for line in told] == ["recall", "recall-plain", "mine", "random"]
    made = read_report(out / "report.json")
    assert isinstance(made, Comparison)
    assert made.generators["recall-plain"].source.sampler["critic"] is False  # type: ignore[index]
    assert (out / "figures" / "range-walls-box_changes.svg").exists()
    assert re.search(r"<b>random</b>: 6 boards\s+with Boxoban’s counts", (out / "report.html").read_text())
