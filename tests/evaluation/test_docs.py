"""The example of docs/evaluation.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from maskoban.boards import write
from maskoban.boards.synth import synthesize

from .boards import ONE_WALL, SOLVABLE, drawn

PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"


def test_the_plain_functions_are_called_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = (
        code for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "mend" in code
    )
    monkeypatch.chdir(tmp_path)
    boards = drawn(SOLVABLE, ONE_WALL, SOLVABLE)
    np.savez("boards.npz", boards=boards)
    write("levels.sok", synthesize(20, height=boards.shape[1], width=boards.shape[2], boxes=1))
    exec(example, {})
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("Share(count=2, total=3")
    assert told[1].startswith("Share(count=1, total=1")
    assert "easy" in told[2]
    assert told[5].startswith("Share(count=1, total=3")
    assert float(told[6]) > 0
