"""``python -m maskoban.training``, as people run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from maskoban.boards import write
from maskoban.training import __main__ as command
from maskoban.training.checkpoint import load_checkpoint
from maskoban.training.synth import synthesize

ROOT = Path(__file__).resolve().parents[2]
SMALL = [f"--set={change}" for change in (
    "height=6", "width=6", "d=16", "blocks=1", "heads=1", "hidden=16", "diffusion_steps=16", "batch=16",
    "validate_every=5", "sample_boards=4", "steps=1000000", "sample_every=1000000",
)]  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "made.npz"
    write(path, synthesize(100, height=6, width=6, boxes=1, seed=1))
    return path


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def log(folder: Path) -> list[dict[str, object]]:
    path = folder / "log.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def interruptible() -> None:
    """A process started in the background ignores Ctrl-C, and one under nohup SIGHUP; this one shall not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


#: With everything hidden but torch and NumPy, as under a plain Python that has only those.
BARE = """
import runpy, sys
hidden = ["rich", "typer", "PIL", "onnxruntime", "onnx", "scipy", "safetensors", "triton", "maskoban._core"]
sys.modules.update(dict.fromkeys(hidden))
runpy.run_module("maskoban.training", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_being_told_to_end_saves_and_the_run_resumes_with_nothing_but_torch_and_numpy(
    tmp_path: Path, corpus: Path, way: signal.Signals
) -> None:
    run = tmp_path / "run"
    arguments = ["--preset", "tiny", "--corpus", str(corpus), "--out", str(run), "--device", "cpu", *SMALL]
    training = subprocess.Popen(
        [sys.executable, "-m", "maskoban.training", *arguments], env=environment(), cwd=tmp_path,
        stderr=subprocess.PIPE, text=True, preexec_fn=interruptible,
    )  # fmt: skip
    patience = time.monotonic() + 120
    while len(log(run)) < 3 and training.poll() is None and time.monotonic() < patience:
        time.sleep(0.05)
    training.send_signal(way)
    _, said = training.communicate(timeout=60)
    assert training.returncode == 130, said
    assert "Traceback" not in said
    step = log(run)[-1]["step"]
    assert log(run)[-1] == {"event": "interrupted", "step": step}
    assert said.splitlines()[-1] == f"interrupted at step {step}; saved in {run}"
    assert load_checkpoint(run)[2].step == step
    assert isinstance(step, int)

    resumed = subprocess.run(
        [sys.executable, "-c", BARE, *arguments[2:8], "--resume", "--stop-at", str(step + 7)],  # its own preset
        env=environment(), cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert resumed.returncode == 0, resumed.stderr
    assert load_checkpoint(run)[2].step == step + 7
    assert [r["event"] for r in log(run) if "event" in r] == ["start", "interrupted", "resume", "end"]


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Runs the command, which must end with exit code 2 and one sentence."""
    monkeypatch.setattr(sys, "argv", ["maskoban train", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        command.main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("maskoban train: ")
    assert said.count("\n") == 1
    return said.removeprefix("maskoban train: ").rstrip("\n")


def test_bad_arguments_get_one_sentence(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: object, preset: str = "tiny") -> str:
        return refused(monkeypatch, capsys, "--preset", preset, "--out", run, *arguments)

    run = tmp_path / "run"
    given = ("--corpus", corpus, *SMALL)
    assert said(*given, preset="huge") == "there is no preset 'huge'; there are paper, best, tiny"
    assert said(*given, "--set=steps=x") == "steps=x: expected a whole number"
    assert said(*given, "--resume") == f"{run}: no checkpoint there (expected state.safetensors)"
    assert said("--corpus", corpus) == "the training corpus has 6x6 boards, but the preset 'tiny' draws 8x8"
    assert said(*given, "--minutes", 0) == "the training time must be above 0 minutes, not 0"
    assert said(*given, "--anneal", 5) == "--anneal ends a run that is there already: give --resume too"
    assert said(*given, "--device", "toaster").startswith("no device 'toaster' here: ")
    assert "nowhere.npz" in said("--corpus", tmp_path / "nowhere.npz")
    assert not run.exists()

    run.mkdir()
    (run / "state.safetensors").write_bytes(b"broken")
    assert said(*given) == f"{run}: a run is there already; give --resume to go on with it, or another --out"
    assert said(*given, "--resume") == f"{run / 'state.safetensors'}: not a safetensors file, or a broken one"
    assert (run / "state.safetensors").read_bytes() == b"broken"
    (run / "model.safetensors").touch()
    assert said(*given, "--resume") == f"{run}: an exported model is there; a run needs a folder of its own"


def test_a_run_starts_from_another_runs_weights(tmp_path: Path, corpus: Path) -> None:
    common = ["--preset", "tiny", "--corpus", str(corpus), "--device", "cpu", *SMALL]
    command.run([*common, "--out", str(tmp_path / "one"), "--stop-at", "3", "--set=learning_rate=0.01"])
    still = ["--set=learning_rate=0", "--set=muon_learning_rate=0"]
    command.run([*common, "--out", str(tmp_path / "two"), "--stop-at", "1", *still,
                 "--start-from", str(tmp_path / "one"), "--held-out", str(corpus)])  # fmt: skip
    one, two = load_checkpoint(tmp_path / "one"), load_checkpoint(tmp_path / "two")
    assert two[2].step == 1
    for name in one[0]:
        if name.startswith("net."):
            np.testing.assert_array_equal(one[0][name], two[0][name])
