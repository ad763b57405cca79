"""Presets: the paper's numbers, and what is refused."""

from __future__ import annotations

import dataclasses

import pytest

from maskoban.boards import MaskobanError
from maskoban.training.presets import BEST, PAPER, PRESETS, TINY, preset_named, vary


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
    assert [preset_named(name) for name in ("paper", "best", "tiny")] == [PAPER, BEST, TINY]
    assert all(name == preset.name for name, preset in PRESETS.items())
    with pytest.raises(MaskobanError) as refused:
        preset_named("papre")
    assert str(refused.value) == "there is no preset 'papre'; there are paper, best, tiny"


def test_settings_are_changed_by_name() -> None:
    changed = vary(PAPER, ["steps=1000", "dropout=0", "clip=none", "ema=0.999", "stratified=true",
                           "betas=0.8,0.95", "corruption=exact", "learning_rate=1e-3"])  # fmt: skip
    assert changed == dataclasses.replace(
        PAPER, steps=1000, dropout=0.0, clip=None, ema=0.999, stratified=True, betas=(0.8, 0.95),
        corruption="exact", learning_rate=1e-3,
    )  # fmt: skip
    assert vary(PAPER, []) == PAPER


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("steps=many", "steps=many: expected a whole number"),
        ("steps=1.5", "steps=1.5: expected a whole number"),
        ("steps", "steps=: expected a whole number"),
        ("steps=none", "steps=none: expected a whole number"),
        ("dropout=none", "dropout=none: expected a number"),
        ("clip=some", "clip=some: expected a number or none"),
        ("stratified=1", "stratified=1: expected true or false"),
        ("betas=0.9", "betas=0.9: expected two numbers with a comma between"),
        ("network=mine", "network is 'paper' or 'interior', not 'mine'"),
        ("schedule=square", "schedule is 'linear' or 'cosine', not 'square'"),
        ("optimizer=sgd", "optimizer is 'adamw' or 'muon', not 'sgd'"),
        ("batch=0", "batch must be at least 1, and is 0"),
        ("validate_every=0", "validate_every must be at least 1, and is 0"),
        ("warmup=-5", "warmup must be at least 0, and is -5"),
        (
            "optimizer=muon",
            "optimizer=muon with muon_learning_rate=0 would leave all matrices as they begin; "
            "set muon_learning_rate too (best has 0.02, and muon_momentum=0.95)",
        ),
        ("heads=7", "d must be a multiple of four times the 7 heads, and is 256"),
        ("decay_share=0", "decay_share must be above 0 and at most 1, and is 0.0"),
        ("learning_rate=nan", "learning_rate must be a number from 0 on, and is nan"),
        ("clip=-1", "clip must be a number from 0 on, and is -1.0"),
        ("time_power=nan", "time_power must be at least 1, and is nan"),
        ("weight_cap=-1", "weight_cap must be a number above 0, and is -1.0"),
        ("weight_cap=nan", "weight_cap must be a number above 0, and is nan"),
        ("betas=2,3", "betas must be at least 0 and below 1, and is 2.0"),
        ("muon_momentum=5", "muon_momentum must be at least 0 and below 1, and is 5.0"),
        ("ema=nan", "ema must be at least 0 and below 1, and is nan"),
        ("seed=9999999999999", "seed must lie within 2^40 of 0, and is 9999999999999"),
        (
            "corruption=exact schedule=cosine",
            "schedule=cosine means nothing where exact numbers of cells are hidden; set corruption=independent too",
        ),
        ("dropout=1", "dropout must be at least 0 and below 1, and is 1.0"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(change: str, sentence: str) -> None:
    with pytest.raises(MaskobanError) as refused:
        vary(PAPER, change.split(" "))
    assert str(refused.value) == sentence


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(MaskobanError, match="a preset has no setting 'lr'; it has name, network, height"):
        vary(PAPER, ["lr=1"])
