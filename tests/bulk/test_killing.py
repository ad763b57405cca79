"""Processes are killed for real, and the dataset comes out the same to the byte.

A gate (gate/sitecustomize.py) holds the workers once some shards are written, so that they are killed at a known
moment. benchmarks/bulk_killing.py kills at random moments, and at full size.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from maskoban.bulk.job import Job
from maskoban.bulk.run import make
from tests.bulk.conftest import contents
from tests.waiting import LIMIT, wait_for

JOB = Job(1000, seed=7, shard_size=50)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, dice: str) -> Path:
    """The dataset as it must come out."""
    out = tmp_path_factory.mktemp("undisturbed") / "dataset"
    make(JOB, out, dice, workers=2)
    return out


class Held:
    """The command, started and held by the gate once it has written some shards."""

    def __init__(self, engine: str, out: Path, dice: str, shards: int, workers: int) -> None:
        self.pids = out.with_name("pids")
        shutil.rmtree(self.pids, ignore_errors=True)
        self.pids.mkdir()
        command = [sys.executable, "-m", "maskoban", "bulk", "--out", str(out), "--workers", str(workers)]
        command += [
            "--model",
            dice,
            "--count",
            "1000",
            "--seed",
            "7",
            "--shard-size",
            "50",
            "--engine",
            engine,
        ]
        gate = {
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent / "gate"), *sys.path]),
            "GATE_PIDS": str(self.pids),
            "GATE_FOLDER": str(out),
            "GATE_SHARDS": str(shards),
        }
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, start_new_session=True, env=os.environ | gate
        )
        wait_for(lambda: any(self.pids.iterdir()), self.process)
        assert self.process.poll() is None, self.process.communicate()[1]
        self.worker = int(next(self.pids.iterdir()).name)

    def end(self) -> tuple[int, str]:
        """Exit code and messages, without the progress that slow machines print."""
        _, messages = self.process.communicate(timeout=LIMIT)
        lines = [line for line in messages.splitlines() if not line.startswith("making boards: ")]
        return self.process.returncode, "\n".join(lines)


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_killed_and_started_again_it_comes_out_the_same(
    engine: str, undisturbed: Path, tmp_path: Path, dice: str
) -> None:
    out = tmp_path / "dataset"
    held = Held(engine, out, dice, shards=3, workers=2)
    os.kill(held.worker, signal.SIGKILL)
    if engine == "local":
        code, messages = held.end()
        assert (code, len(messages.splitlines())) == (2, 1)
        assert "a worker was killed, most likely because memory ran out" in messages
        held = Held(engine, out, dice, shards=6, workers=3)
    os.kill(held.process.pid, signal.SIGKILL)
    assert held.end()[0] == -signal.SIGKILL
    assert 3 <= len(list(out.glob("data/*.parquet"))) < 20
    held = Held(engine, out, dice, shards=9, workers=1)
    shutil.rmtree(held.pids)  # opens the gate
    assert held.end()[0] == 0
    assert contents(out) == contents(undisturbed)


def test_ray_replaces_a_worker_that_was_killed(undisturbed: Path, tmp_path: Path, dice: str) -> None:
    held = Held("ray", tmp_path / "dataset", dice, shards=3, workers=2)
    os.kill(held.worker, signal.SIGKILL)
    shutil.rmtree(held.pids)
    code, messages = held.end()
    assert (code, len(messages.splitlines())) == (0, 1)
    assert contents(tmp_path / "dataset") == contents(undisturbed)


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_sigterm_ends_it_with_one_sentence_and_keeps_what_is_finished(
    engine: str, undisturbed: Path, tmp_path: Path, dice: str
) -> None:
    out = tmp_path / "dataset"
    held = Held(engine, out, dice, shards=3, workers=2)
    # Clusters signal every process of a job. Those of Ray end with the first one.
    (os.killpg if engine == "local" else os.kill)(held.process.pid, signal.SIGTERM)
    assert held.end() == (130, f"maskoban: interrupted; the same command continues {out}")
    kept = contents(out / "data")
    assert 3 <= len(kept) < 20
    assert kept.items() <= contents(undisturbed / "data").items()
    make(JOB, out, dice, workers=2)
    assert contents(out) == contents(undisturbed)


def test_a_full_disk_ends_it_with_one_sentence(tmp_path: Path, dice: str) -> None:
    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))

    command = [sys.executable, "-m", "maskoban", "bulk", "--out", str(tmp_path / "full"), "--workers", "2"]
    command += ["--model", dice, "--count", "4000", "--shard-size", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=small_files_only)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert ".parquet: cannot be written: File too large" in done.stderr
    assert sorted(contents(tmp_path / "full")) == ["job.json"]


def test_a_script_without_its_guard_is_named(tmp_path: Path, dice: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from maskoban.bulk.job import Job\n"
        "from maskoban.bulk.run import make\n"
        f"make(Job(9), {str(tmp_path / 'dataset')!r}, {dice!r}, workers=1)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.stderr.strip().endswith('or, in a script, because if __name__ == "__main__": is missing')
