"""Every example of docs/extending.md is run: its Python blocks are saved as files, its commands run in a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "docs" / "extending.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", TEXT, flags=re.M)[1:]}


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", section, flags=re.M | re.S)


@pytest.mark.parametrize("title", SECTIONS)
def test_the_example_runs_as_it_stands(title: str, tmp_path: Path) -> None:
    section = SECTIONS[title]
    for code in blocks(section, "python"):
        name = code.partition("\n")[0].removeprefix("# ")
        assert re.fullmatch(r"\w+\.py", name), "an example starts with the name of its file"
        assert len(code.splitlines()) <= 31, "an extension takes at most 30 lines"
        (tmp_path / name).write_text(code)
    commands = blocks(section, "sh")
    assert commands, "an example has the commands that use it"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for script in commands:
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=tmp_path, env=os.environ | {"PATH": path},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
