"""``maskoban train`` and ``python -m maskoban.training``, as people run them."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from maskoban.boards import write
from maskoban.boards.synth import synthesize
from maskoban.cli.app import app
from maskoban.training import __main__ as command
from maskoban.training import data
from maskoban.training.checkpoint import load_checkpoint
from maskoban.training.config import PAPER, TINY, Preset
from maskoban.training.data import fit_to_corpus
from maskoban.training.options import TrainOptions
from tests.waiting import LIMIT, wait_for

ROOT = Path(__file__).resolve().parents[2]
SMALL = [f"--set={change}" for change in (
    "height=6", "width=6", "d=16", "blocks=1", "heads=1", "hidden=16", "diffusion_steps=16", "batch=16",
    "validate_every=5", "sample_boards=4", "steps=1000000", "sample_every=1000000",
)]  # fmt: skip


SIZE = ("--set=height", "--set=width", "--set=diffusion_steps")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "made.npz"
    write(path, synthesize(100, height=6, width=6, boxes=1, seed=1))
    return path


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def log(folder: Path) -> list[dict[str, object]]:
    """The complete lines of a log, which may be written at this moment."""
    path = folder / "log.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


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
def test_a_signal_saves_and_the_run_resumes_with_nothing_but_torch_and_numpy(
    tmp_path: Path, corpus: Path, way: signal.Signals
) -> None:
    run = tmp_path / "run"
    arguments = ["--preset", "tiny", "--corpus", str(corpus), "--out", str(run), "--device", "cpu", *SMALL]
    with open(tmp_path / "stderr", "w") as stderr:
        training = subprocess.Popen(
            [sys.executable, "-m", "maskoban.training", *arguments], env=environment(), cwd=tmp_path,
            stderr=stderr, text=True, preexec_fn=interruptible,
        )  # fmt: skip
        try:
            wait_for(lambda: len(log(run)) >= 3, training)
            training.send_signal(way)
            training.wait(LIMIT)
        finally:
            training.kill()
    said = (tmp_path / "stderr").read_text()
    assert training.returncode == 130, said
    assert "Traceback" not in said
    step = log(run)[-1]["step"]
    assert log(run)[-1]["event"] == "interrupted"
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


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Runs both commands, which must end with exit code 2 and the same sentence."""
    words = [str(each) for each in arguments]
    with pytest.raises(SystemExit) as left:
        command.main(words)
    assert left.value.code == 2
    said = capsys.readouterr().err
    result = CliRunner().invoke(app, ["train", *words])
    assert result.exit_code == 2, result.output
    assert said == result.stderr.replace("maskoban: ", "maskoban train: ", 1)
    assert said.count("\n") == 1
    return said.removeprefix("maskoban train: ").rstrip("\n")


def test_bad_arguments_get_one_sentence(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def error(*arguments: object, preset: str = "tiny") -> str:
        return error_of(capsys, "--preset", preset, "--out", run, *arguments)

    run = tmp_path / "run"
    given = ("--corpus", corpus, *SMALL)
    assert error(*given, preset="huge") == "preset: expected one of paper, best, tiny, any, got 'huge'"
    assert error(*given, "--set=steps=x") == "steps: expected a whole number, got 'x'"
    assert (
        error(*given, "--set=network=mine")
        == "network: expected one of paper, interior, conditional, got 'mine'"
    )
    assert error(*given, "--set=objective=mine") == "objective: expected one of cross_entropy, got 'mine'"
    assert error(*given, "--resume") == f"{run}: no checkpoint there (expected state.safetensors)"
    assert (
        error(*given, "--resume", "--start-from", "best")
        == "--start-from: expected a new run, got --resume too"
    )
    wrong = ("--corpus", corpus, "--set=height=8", "--set=width=8")
    assert error(*wrong) == "the training corpus has 6x6 boards, but the preset samples 8x8"
    assert error(*given, "--minutes", 0) == "--minutes: expected a number above 0, got 0"
    assert error(*given, "--threads", 0) == "--threads: expected a number from 1 on, got 0"
    assert error(*given, "--anneal", 5) == "--anneal: expected --resume too; it ends a run that exists"
    assert error(*given, "--device", "toaster").startswith("device 'toaster': ")
    assert "nowhere.npz" in error("--corpus", tmp_path / "nowhere.npz")
    assert not run.exists()

    run.mkdir()
    (run / "state.safetensors").write_bytes(b"broken")
    assert error(*given) == f"{run}: holds a run already; give --resume to continue it, or another --out"
    assert (
        error(*given, "--resume") == f"{run / 'state.safetensors'}: not a safetensors file, or a broken one"
    )
    assert (run / "state.safetensors").read_bytes() == b"broken"
    (run / "model.safetensors").touch()
    assert error(*given, "--resume") == f"{run}: holds an exported model; expected another --out for a run"


def test_a_run_starts_from_another_runs_weights(tmp_path: Path, corpus: Path) -> None:
    common = ["--preset", "tiny", "--corpus", str(corpus), "--device", "cpu", *SMALL]
    command.main([*common, "--out", str(tmp_path / "one"), "--stop-at", "3", "--set=learning_rate=0.01"])
    still = ["--set=learning_rate=0", "--set=muon_learning_rate=0"]
    command.main([*common, "--out", str(tmp_path / "two"), "--stop-at", "1", *still,
                  "--start-from", str(tmp_path / "one"), "--held-out", str(corpus)])  # fmt: skip
    one, two = load_checkpoint(tmp_path / "one"), load_checkpoint(tmp_path / "two")
    assert two[2].step == 1
    for name in one[0]:
        if name.startswith("net."):
            np.testing.assert_array_equal(one[0][name], two[0][name])


# -- defaults


def test_board_size_and_diffusion_steps_follow_the_corpus(tmp_path: Path) -> None:
    write(tmp_path / "oblong.npz", synthesize(60, height=7, width=9, boxes=1, seed=1))
    given = ["train", "--preset", "tiny", "--corpus", tmp_path / "oblong.npz", "--out", tmp_path / "run",
             "--stop-at", 1, "--device", "cpu", "--quiet",
             *(change for change in SMALL if not change.startswith(SIZE))]  # fmt: skip
    result = CliRunner().invoke(app, [str(word) for word in given])
    assert result.exit_code == 0, result.output
    preset = load_checkpoint(tmp_path / "run")[1]
    assert (preset.height, preset.width, preset.diffusion_steps) == (7, 9, 5 * 7)


def test_settings_that_are_given_do_not_follow_the_corpus() -> None:
    boards = synthesize(1, height=7, width=9, boxes=1)
    assert fit_to_corpus(TINY, boards, set()).diffusion_steps == 35
    assert fit_to_corpus(TINY, boards, {"diffusion_steps"}).diffusion_steps == 36
    assert fit_to_corpus(TINY, boards, {"height", "width"}) == TINY
    paper = fit_to_corpus(PAPER, boards, set())
    assert (paper.height, paper.width, paper.diffusion_steps) == (
        7,
        9,
        100,
    )  # T is free without exact corruption


def test_tiny_trains_without_any_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(data, "synthesize", lambda n, *size, **how: synthesize(60, *size, **how))
    result = CliRunner().invoke(
        app, ["train", "--preset", "tiny", "--stop-at", "1", "--set=batch=16", "--device=cpu"]
    )
    assert result.exit_code == 0, result.output
    assert load_checkpoint(Path("runs/tiny"))[2].step == 1
    result = CliRunner().invoke(app, ["train", "--out", "runs/tiny", "--resume", "--stop-at", "2"])
    assert load_checkpoint(Path("runs/tiny"))[2].step == 2, result.output


def test_help_shows_every_option_and_every_setting() -> None:
    result = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    for field in (*dataclasses.fields(TrainOptions), *dataclasses.fields(Preset)):
        assert field.metadata["meaning"].split()[0] in result.output
        assert (field.metadata.get("flag") or field.name.replace("_", "-")) in result.output.replace("_", "-")
    for value in ("292000", "2.45e-4", "0.000245", "interior"):
        assert value in result.output or value == "2.45e-4"


def test_threads_are_set_and_logged(tmp_path: Path, corpus: Path) -> None:
    before = torch.get_num_threads()
    given = ["--preset", "tiny", "--corpus", str(corpus), "--out", str(tmp_path / "run"), "--device", "cpu"]
    try:
        command.main([*given, *SMALL, "--stop-at", "1", "--threads", "3"])
        assert log(tmp_path / "run")[0]["threads"] == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("given", [None, "ACTIVE"])
@pytest.mark.parametrize("module", ["maskoban", "maskoban.training"])
def test_threads_sleep_while_they_wait_unless_the_environment_says_otherwise(
    module: str, given: str | None
) -> None:
    """torch reads the variable when it is imported."""
    script = f"""
import os, runpy, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ["OMP_WAIT_POLICY"])
            sys.exit()
sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["train"] if {module!r} == "maskoban" else []
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
    env = {name: value for name, value in environment().items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env | ({"OMP_WAIT_POLICY": given} if given else {}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == f"{given or 'PASSIVE'}\n", done.stderr
