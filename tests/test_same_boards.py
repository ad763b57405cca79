"""The same model, seed and sampler give the same boards on every surface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

import maskoban
from maskoban.boards import Tokens
from maskoban.cli.app import app
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.environment import ModelLevels, SokobanEnv
from tests.studio.browsing import person, shows
from tests.studio.serving import serving

SEED, BOARDS = 8, 3

#: The default, and a config with every field changed that the default of another surface could hide.
SAMPLERS: dict[str, dict[str, Any]] = {
    "best": {"sampler": "best"},
    "changed": {"sampler": "fast", "steps": 24, "temperature": 0.9, "sweeps": 1, "precision": "int8"},
}


@pytest.fixture(scope="module")
def model() -> maskoban.diffusion.model.Model:
    return maskoban.load()


@pytest.fixture(scope="module")
def studio() -> Iterator[str]:
    from maskoban.studio.app import create_app

    with serving(create_app(maskoban.load)) as address:
        yield address


def config_of(model: Any, sampler: dict[str, Any]) -> SamplerConfig:
    fields = dict(sampler)
    return model.sampler(fields.pop("sampler"), **fields)


def options(sampler: dict[str, Any]) -> list[str]:
    return [part for name, value in sampler.items() for part in (f"--{name}", str(value))]


def boards_of(texts: list[str]) -> Tokens:
    return np.stack([maskoban.Level.parse(text).tokens for text in texts])


# --- the surfaces: each gives the first boards of the seed ------------------------------------------------------------


def from_generate(model: Any, sampler: dict[str, Any], **_: Any) -> Tokens:
    return np.stack([level.tokens for level in model.generate(BOARDS, SEED, config_of(model, sampler))])


def from_trajectory(model: Any, sampler: dict[str, Any], **_: Any) -> Tokens:
    return model.trajectory(BOARDS, SEED, config_of(model, sampler)).frames()[-1]


def from_commits(model: Any, sampler: dict[str, Any], **_: Any) -> Tokens:
    boards = model.start(BOARDS)
    for event in model.steps(boards.copy(), SEED, config_of(model, sampler)):
        if isinstance(event, maskoban.diffusion.sampler.AttemptEnd):
            boards[event.board[event.accepted]] = event.boards[event.accepted]
    return boards


def from_completion_of_nothing(model: Any, sampler: dict[str, Any], **_: Any) -> Tokens:
    blank = maskoban.Level(model.start(1)[0])
    return np.stack(
        [level.tokens for level in model.complete(blank, BOARDS, SEED, config_of(model, sampler))]
    )


def from_command_line(sampler: dict[str, Any], **_: Any) -> Tokens:
    command = ["generate", "-n", str(BOARDS), "--seed", str(SEED), "--json", *options(sampler)]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return boards_of([json.loads(line)["board"] for line in done.stdout.splitlines()])


def from_bulk(sampler: dict[str, Any], tmp_path: Path, **_: Any) -> Tokens:
    parquet = pytest.importorskip("pyarrow.parquet")
    command = [
        "bulk",
        "--count",
        str(BOARDS),
        "--seed",
        str(SEED),
        "--workers",
        "1",
        "--out",
        str(tmp_path / "set"),
    ]
    done = CliRunner().invoke(app, [*command, *options(sampler)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows = parquet.read_table(tmp_path / "set" / "data").sort_by("number")
    return boards_of(rows["board"].to_pylist())


def from_evaluation(sampler: dict[str, Any], tmp_path: Path, **_: Any) -> Tokens:
    pytest.importorskip("matplotlib")
    report = tmp_path / "report"
    command = [
        "evaluate",
        "--samples",
        str(BOARDS),
        "--seed",
        str(SEED),
        "--sweep",
        "0",
        "--out",
        str(report),
    ]
    done = CliRunner().invoke(app, [*command, *options(sampler)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (stage,) = (report / "stages").glob("*boards*.npz")
    with np.load(stage) as arrays:
        return arrays["boards"]


def from_environment(model: Any, sampler: dict[str, Any], **_: Any) -> Tokens:
    env = SokobanEnv(ModelLevels(model, only_solvable=False, sampler=config_of(model, sampler)))
    return np.stack([env.reset(seed=None if number else SEED)[0] for number in range(BOARDS)])


def from_studio_api(sampler: dict[str, Any], studio: str, **_: Any) -> Tokens:
    body = json.dumps({"count": BOARDS, "seed": SEED, **sampler}).encode()
    with urlopen(
        Request(f"{studio}/api/generate", body, {"Content-Type": "application/json"}), timeout=600
    ) as answer:
        found = json.load(answer)["boards"]
    return boards_of([each["board"] for each in sorted(found, key=lambda each: each["number"])])


SURFACES: list[Callable[..., Tokens]] = [
    from_generate,
    from_trajectory,
    from_commits,
    from_completion_of_nothing,
    from_command_line,
    from_bulk,
    from_evaluation,
    from_environment,
    from_studio_api,
]


@pytest.fixture(scope="module")
def expected(model: Any) -> dict[str, Tokens]:
    return {name: model.sample(BOARDS, SEED, config_of(model, sampler)) for name, sampler in SAMPLERS.items()}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)
def test_every_surface_gives_the_boards_of_the_library(
    surface: Callable[..., Tokens],
    name: str,
    model: Any,
    expected: dict[str, Tokens],
    studio: str,
    tmp_path: Path,
) -> None:
    boards = surface(model=model, sampler=SAMPLERS[name], studio=studio, tmp_path=tmp_path)
    assert boards.tolist() == expected[name].tolist()


def test_the_configs_give_different_boards(expected: dict[str, Tokens]) -> None:
    assert (expected["best"] != expected["changed"]).any()


@pytest.mark.parametrize("sampler", ["best", "fast"])
def test_the_page_gives_the_boards_of_the_library(
    sampler: str, model: Any, studio: str, browser: Browser
) -> None:
    page = person(browser, studio)
    page.click("[data-tab=watch]")
    page.locator("#watch-form details").evaluate_all("all => all.forEach((details) => (details.open = true))")
    page.fill("[name=count]", str(BOARDS))
    page.fill("[name=seed]", str(SEED))
    assert page.locator("[name=sampler]").input_value() == "best"  # unless somebody chooses another one
    page.select_option("[name=sampler]", sampler)
    page.click("#generate")
    for number, board in enumerate(model.generate(BOARDS, SEED, sampler)):
        shows(page.locator("#watch-boards canvas").nth(number), str(board))
    page.context.close()
