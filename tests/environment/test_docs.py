"""The examples of docs/environment.md run and do what they say."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from typer.testing import CliRunner

from maskoban import write
from maskoban.boards.synth import synthesize
from maskoban.cli.app import app

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


EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.mark.parametrize("code", EXAMPLES, ids=[f"example {i}" for i in range(len(EXAMPLES))])
def test_every_example_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None
) -> None:
    if "stable_baselines3" in code and os.environ.get("CI") != "true":
        pytest.importorskip("stable_baselines3")
    if "SokobanPufferEnv" in code:
        pytest.importorskip("pufferlib", reason="needs pufferlib, 3.0 or later")
    if '"dataset"' in code:
        done = CliRunner().invoke(app, ["bulk", "--count", "8", "--out", f"{tmp_path}/dataset"])
        assert done.exit_code == 0, done.output
    write(tmp_path / "levels.sok", synthesize(20, height=8, width=8, boxes=1, seed=3))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code, names)
    if "Expert(" in code:
        assert names["solved"] > 16
    if "Pool(" in code:
        assert names["envs"].games.supply.waits == 0
    if '"dataset"' in code:
        assert (names["infos"]["optimal_pushes"] > 0).all()
    if "pickle" in code:
        assert len(names["last"]) == 64
    if "solved_episodes" in code:
        assert len(names["observations"]) == len(names["actions"]) + 1 == len(names["rewards"]) + 1
    if "hardest_first" in code:
        assert len(set(names["infos"]["level_index"])) > 1
