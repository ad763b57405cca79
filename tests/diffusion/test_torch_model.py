"""A model in torch is loaded from its weights, and what they say about themselves is not believed unseen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maskoban.boards import MaskobanError
from maskoban.diffusion.model import load
from maskoban.diffusion.tensorfile import load_tensors, save_tensors

from ..training.small_models import save_run


@pytest.mark.parametrize(
    "changes",
    [
        {"d": -8},
        {"d": 10**7},
        {"d": 16_384, "blocks": 16_384, "hidden": 16_384, "heads": 1},
        {"height": 0},
        {"heads": 0},
        {"heads": 7},
        {"heads": "two"},
        {"network": "nope"},
        {"schedule": "nope"},
        {"diffusion_steps": 0},
        {"diffusion_steps": None},
        {"name": ...},
        {"diffusion_steps": ...},
    ],
    ids=str,
)
def test_settings_that_no_run_has_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = save_run(tmp_path / "run")
    (weights,) = folder.glob("*.safetensors")
    tensors, told = load_tensors(weights)
    settings = json.loads(told["preset"]) | changes
    told["preset"] = json.dumps({name: value for name, value in settings.items() if value is not ...})
    save_tensors(weights, tensors, told)
    with pytest.raises(MaskobanError, match=f"^{folder}: not a model of maskoban's: "):
        load(folder)


@pytest.mark.parametrize("facts", ["x", "[]", "5", "[" * 100_000])
def test_facts_that_are_none_are_refused(tmp_path: Path, facts: str) -> None:
    folder = save_run(tmp_path / "run")
    (weights,) = folder.glob("*.safetensors")
    tensors, told = load_tensors(weights)
    save_tensors(weights, tensors, told | {"facts": facts})
    with pytest.raises(MaskobanError, match=f"^{folder}: not a model of maskoban's: "):
        load(folder)
