"""Presets: the paper's numbers, and what is refused."""

from __future__ import annotations

import dataclasses
import json

import pytest

from maskoban.errors import MaskobanError
from maskoban.training.config import (
    ANY,
    BEST,
    PAPER,
    PRESETS,
    TINY,
    Preset,
    load_preset,
    parse_settings,
)


def test_the_papers_run_has_every_number_of_the_paper() -> None:
    run = dataclasses.asdict(PAPER)
    expected = {
        "network": "paper", "height": 10, "width": 10, "d": 256, "blocks": 6, "heads": 8, "hidden": 1024,
        "dropout": 0.1, "diffusion_steps": 100, "schedule": "linear", "corruption": "independent",
        "weight_cap": 10.0, "batch": 1536, "steps": 292_000, "optimizer": "adamw", "learning_rate": 2.45e-4,
        "weight_decay": 0.01, "warmup": 125, "decay": "cosine", "decay_share": 1.0, "clip": 1.0, "ema": None,
        "validate_every": 1000, "validation_boards": 50_000, "sample_every": 50_000, "sample_boards": 5000,
    }  # fmt: skip
    assert {name: run[name] for name in expected} == expected


def test_presets_are_found_by_name() -> None:
    assert [PRESETS[name] for name in ("paper", "best", "tiny", "any")] == [PAPER, BEST, TINY, ANY]
    assert all(name == PRESETS[name].name for name in PRESETS)
    with pytest.raises(MaskobanError) as refused:
        PRESETS["papre"]
    assert str(refused.value) == "preset: expected one of paper, best, tiny, any, got 'papre'"


def changed(*settings: str) -> Preset:
    return dataclasses.replace(PAPER, **parse_settings(settings))


def test_settings_are_changed_by_name() -> None:
    found = changed("steps=1000", "dropout=0", "clip=none", "ema=0.999", "stratified=true", "betas=0.8,0.95",
                    "corruption=exact", "learning_rate=1e-3", "average=batch")  # fmt: skip
    assert found == dataclasses.replace(
        PAPER, steps=1000, dropout=0.0, clip=None, ema=0.999, stratified=True, betas=(0.8, 0.95),
        corruption="exact", learning_rate=1e-3, average="batch",
    )  # fmt: skip
    assert changed() == PAPER


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("steps=many", "steps: expected a whole number, got 'many'"),
        ("steps=1.5", "steps: expected a whole number, got '1.5'"),
        ("steps", "steps: expected a whole number, got ''"),
        ("steps=none", "steps: expected a whole number, got 'none'"),
        ("dropout=none", "dropout: expected a number, got 'none'"),
        ("clip=some", "clip: expected a number or none, got 'some'"),
        ("stratified=1", "stratified: expected true or false, got '1'"),
        ("betas=0.9", "betas: expected two numbers with a comma between, got '0.9'"),
        ("schedule=square", "schedule: expected one of linear, cosine, got 'square'"),
        ("optimizer=sgd", "optimizer: expected adamw or muon, got 'sgd'"),
        ("average=cell", "average: expected board or batch, got 'cell'"),
        ("batch=0", "batch: expected a number in [1, inf), got 0"),
        ("validate_every=0", "validate_every: expected a number in [1, inf), got 0"),
        ("warmup=-5", "warmup: expected a number in [0, inf), got -5"),
        (
            "optimizer=muon",
            "muon_learning_rate: expected more than 0 with optimizer=muon "
            "(best has muon_learning_rate=0.02 and muon_momentum=0.95)",
        ),
        ("decay_share=0", "decay_share: expected a number in (0, 1], got 0.0"),
        ("learning_rate=nan", "learning_rate: expected a number in [0, inf), got nan"),
        ("clip=-1", "clip: expected a number in [0, inf), got -1.0"),
        ("time_power=nan", "time_power: expected a number in [1, inf), got nan"),
        ("weight_cap=-1", "weight_cap: expected a number in (0, inf), got -1.0"),
        ("weight_cap=inf", "weight_cap: expected a number in (0, inf), got inf"),
        ("betas=2,3", "betas: expected a number in [0, 1), got 2.0"),
        ("muon_momentum=5", "muon_momentum: expected a number in [0, 1), got 5.0"),
        ("ema=nan", "ema: expected a number in [0, 1), got nan"),
        ("seed=9999999999999", "seed: expected a number in [-2^40, 2^40], got 9999999999999"),
        (
            "corruption=exact schedule=cosine",
            "schedule: expected linear with corruption=exact, got cosine; set corruption=independent",
        ),
        ("dropout=1", "dropout: expected a number in [0, 1), got 1.0"),
    ],
)
def test_a_change_that_makes_no_sense_is_an_error(change: str, sentence: str) -> None:
    with pytest.raises(MaskobanError) as error:
        changed(*change.split(" "))
    assert str(error.value) == sentence


def test_an_unknown_setting_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(MaskobanError, match="unknown setting 'lr'; expected one of name, network, height"):
        parse_settings(["lr=1"])


def test_every_setting_has_a_meaning() -> None:
    for field in dataclasses.fields(Preset):
        assert field.metadata["meaning"].endswith("."), field.name


def test_settings_of_older_checkpoints_get_their_defaults() -> None:
    new = {"objective", "average", "time_power"}
    old = {name: value for name, value in dataclasses.asdict(PAPER).items() if name not in new}
    assert load_preset(json.loads(json.dumps(old))) == PAPER
    assert (PAPER.average, PAPER.objective, PAPER.time_power) == ("board", "cross_entropy", 1.0)
