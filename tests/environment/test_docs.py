"""The longer examples of docs/environment.md do what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from maskoban import write
from maskoban.boards.synth import synthesize
from maskoban.environment import LevelSet

PAGE = Path(__file__).parents[2] / "docs" / "environment.md"


def example(begins_with: str) -> str:
    """The one block of code that has these words."""
    (found,) = (
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if begins_with in block
    )
    return found


def test_how_well_an_agent_does_is_not_a_matter_of_how_many_environments_it_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "levels.sok", synthesize(100, height=8, width=8, boxes=1, seed=3))
    monkeypatch.chdir(tmp_path)
    made = gymnasium.make_vec

    def seeded(*args: Any, **kwargs: Any) -> Any:
        envs = made(*args, **kwargs)
        envs.action_space.seed(7)
        return envs

    monkeypatch.setattr(gymnasium, "make_vec", seeded)
    shares = []
    for count in (1, 64, 1000):
        names: dict[str, Any] = {}
        exec(example("levels solved").replace("num_envs=64", f"num_envs={count}"), names)
        assert set(names["solved"]) == set(range(100))
        shares.append(sum(names["solved"].values()))
    assert max(shares) - min(shares) < 20
    assert "of 100 levels solved" in capsys.readouterr().out


def test_a_curriculum_of_ones_own_plays_what_its_weights_say() -> None:
    names: dict[str, Any] = {"np": np, "levels": LevelSet(synthesize(4, height=5, width=6, boxes=1))}
    exec(example("def hardest_first"), names)
    envs = names["envs"]
    _, infos = envs.reset(seed=1)
    assert len(set(infos["level_index"])) > 1
