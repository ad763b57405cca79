"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from maskoban._util.files import atomic_file
from maskoban.errors import FileError
from tests.waiting import LIMIT


def test_after_an_error_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_file(path) as out:
            out.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("letters", [1, 249, 255])
def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path, letters: int) -> None:
    path = tmp_path / ("x" * letters)
    with atomic_file(path) as out:
        out.write(b"new")
    assert path.read_bytes() == b"new"


def test_a_name_that_is_too_long_is_one_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(FileError, match="cannot be written: File name too long"),
        atomic_file(tmp_path / ("x" * 256)),
    ):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("target", ["levels.npz", "folder/"])
def test_sigterm_leaves_no_part_behind(tmp_path: Path, target: str) -> None:
    (tmp_path / "folder").mkdir()
    program = f"""
import time
from maskoban.boards import Level, write

def levels():
    for i in range(2000):
        yield Level.parse("#@$.#")
    print("writing", flush=True)
    time.sleep({LIMIT})

write("{tmp_path}/{target}", levels())
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"writing\n"
    assert len(list(tmp_path.rglob(".maskoban-*"))) == 1
    child.terminate()
    child.communicate(timeout=LIMIT)
    assert child.returncode != 0
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]
