"""Makers are killed for real, workers and first processes, and the dataset comes out the same to the byte.

The full-size version is benchmarks/bulk_killing.py, from which the scenes are.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from maskoban.bulk.job import Job
from maskoban.bulk.making import make
from tests.bulk.conftest import contents

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bulk_killing import Scene

# Polished until a shard takes long enough to be killed in.
JOB = Job(1000, seed=7, shard_size=50, polish=15)


@pytest.fixture(scope="module")
def in_peace(tmp_path_factory: pytest.TempPathFactory, dice: str) -> Path:
    """The dataset as it must come out."""
    out = tmp_path_factory.mktemp("in-peace") / "dataset"
    make(JOB, out, dice, workers=2)
    return out


def scene(engine: str, tmp_path: Path, dice: str) -> Scene:
    options = ["--model", dice, "--count", "1000", "--seed", "7", "--shard-size", "50"]
    options += ["--polish", "15"]
    return Scene(engine, tmp_path / engine, options, Random(1))


@pytest.mark.parametrize(("engine", "kills"), [("local", 2), ("ray", 2)])
def test_killed_and_started_again_it_comes_out_the_same(
    engine: str, kills: int, in_peace: Path, tmp_path: Path, dice: str
) -> None:
    made = scene(engine, tmp_path, dice)
    made.under_fire(shards=20, kills=kills, pause=0.1)
    assert len(made.killed) == kills
    assert contents(made.out) == contents(in_peace)
    for said in made.said:
        assert "a worker was killed, most likely because memory ran out" in said
        assert len(said.splitlines()) == 1


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_told_to_end_it_says_how_to_go_on_and_keeps_what_is_finished(
    engine: str, in_peace: Path, tmp_path: Path, dice: str
) -> None:
    out = tmp_path / "dataset"
    command = [sys.executable, "-m", "maskoban", "bulk", "--out", str(out), "--workers", "2", "--model", dice]
    command += ["--count", "1000", "--seed", "7", "--shard-size", "50", "--polish", "15", "--engine", engine]
    maker = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    end = time.monotonic() + 120
    while not list(out.glob("data/*.parquet")) and time.monotonic() < end:
        time.sleep(0.02)
    # Clusters tell every process of a job; those of Ray see for themselves that it is over.
    (os.killpg if engine == "local" else os.kill)(maker.pid, signal.SIGTERM)
    _, said = maker.communicate(timeout=60)
    assert (maker.returncode, said) == (
        130,
        f"maskoban: interrupted; the same command goes on from what is in {out}\n",
    )
    kept = contents(out / "data")
    assert 0 < len(kept) < 20
    assert kept.items() <= contents(in_peace / "data").items()
    make(JOB, out, dice, workers=2)
    assert contents(out) == contents(in_peace)


def test_a_disk_that_takes_no_more_ends_it_with_a_sentence(tmp_path: Path, dice: str) -> None:
    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))

    command = [sys.executable, "-m", "maskoban", "bulk", "--out", str(tmp_path / "full"), "--workers", "2"]
    command += ["--model", dice, "--count", "4000", "--shard-size", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=small_files_only)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert ".parquet: cannot be written: File too large" in done.stderr
    assert sorted(contents(tmp_path / "full")) == ["job.json"]


def test_a_script_without_its_guard_is_told_of_it(tmp_path: Path, dice: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from maskoban.bulk.job import Job\n"
        "from maskoban.bulk.making import make\n"
        f"make(Job(9), {str(tmp_path / 'dataset')!r}, {dice!r}, workers=1)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.stderr.strip().endswith('or, in a script, because if __name__ == "__main__": is missing')
