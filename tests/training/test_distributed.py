"""Two processes under torchrun train what one process trains: the same gradients, weights, log and checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from torch import Tensor

from maskoban.boards import write
from maskoban.errors import MaskobanError
from maskoban.nn.weight_files import load_folder
from maskoban.training import __main__ as command
from maskoban.training.checkpoint import load_checkpoint, new_network
from maskoban.training.distributed import Processes, joined
from tests.training.test_trainer import RUNS, SMALL, boards, log, trainer
from tests.waiting import LIMIT, wait_for

ROOT = Path(__file__).resolve().parents[2]

#: torchrun, two processes that meet on a free port.
TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--rdzv-conf", f"read_timeout={LIMIT}",
       "--nproc-per-node", "2", "-m"]  # fmt: skip


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(LIMIT),  # after Ctrl-C, torchrun kills who takes longer
    }


# One thread is what each of the two has: sums are then taken in the same order wherever they can be.
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of runs that two processes trained; see ``trained_together.py``."""
    folder = tmp_path_factory.mktemp("two")
    done = subprocess.run(
        [*TWO, "tests.training.trained_together", str(folder)],
        env=environment(), cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def that_matters(name: str, tensor: Tensor) -> Tensor:
    """All but the keys' biases: they change no attention, so their gradients, and their moves, are but rounding."""
    return tensor.unflatten(-1, (3, -1))[:, [0, 2]] if name == "qkv_bias" else tensor


def distance(one: Tensor, other: Tensor) -> float:
    return float((one.double() - other.double()).norm())


# -- equal to one process


@pytest.mark.parametrize("run", list(RUNS))
def test_gradients_are_those_of_one_process_to_rounding(two: Path, tmp_path: Path, run: str) -> None:
    """The optimisers' first moments are running means of the gradients; three steps in, none of these is zero."""
    trainer(RUNS[run], tmp_path, stop_at=3).run()
    one, other = load_folder(tmp_path)[0], load_folder(two / run / "steps")[0]
    assert one.keys() == other.keys()
    gradients = [name for name in one if name.endswith((".exp_avg", ".momentum"))]
    assert len(gradients) == len(list(new_network(RUNS[run]).parameters()))
    for name in gradients:
        assert float(one[name].norm()) > 0, name
        assert distance(one[name], other[name]) <= 5e-6 * float(one[name].norm()), name


@pytest.mark.parametrize("part", ["whole", "parts"])
@pytest.mark.parametrize("run", list(RUNS))
def test_weights_at_the_end_are_those_of_one_process(two: Path, tmp_path: Path, run: str, part: str) -> None:
    """Also where the run went from two processes to one and back to two.

    The difference of two results is a share of how far training moved the weights.
    """
    preset = RUNS[run]
    trainer(preset, tmp_path).run()
    one, other = load_folder(tmp_path)[0], load_folder(two / run / part)[0]
    assert one.keys() == other.keys()
    for name, start in new_network(preset).state_dict().items():
        for kind in ("net", "ema") if preset.ema else ("net",):
            key = f"{kind}.{name}"
            apart = distance(that_matters(name, one[key]), that_matters(name, other[key]))
            moved = distance(that_matters(name, one[key]), that_matters(name, start))
            assert apart <= 2e-4 * moved, key


@pytest.mark.parametrize("run", list(RUNS))
def test_the_log_is_that_of_one_process(two: Path, tmp_path: Path, run: str) -> None:
    trainer(RUNS[run], tmp_path).run()
    one, other = log(tmp_path), log(two / run / "whole")
    assert [record.keys() for record in one] == [record.keys() for record in other]
    assert (one[0]["processes"], other[0]["processes"]) == (1, 2)
    for mine, theirs in zip(one, other, strict=True):
        for name in mine.keys() & {"step", "train", "valid", "rate"}:
            assert theirs[name] == pytest.approx(mine[name], abs=5e-5), name
    assert {path.name for path in (two / run / "whole").iterdir()} == {
        path.name for path in tmp_path.iterdir()
    }


# -- as people run it


def measured_twice(run: Path) -> bool:
    return (run / "log.jsonl").exists() and len([r for r in log(run) if "valid" in r]) >= 2


def test_ctrl_c_ends_both_after_the_same_step_and_one_process_goes_on(tmp_path: Path) -> None:
    corpus, run = tmp_path / "made.npz", tmp_path / "run"
    write(corpus, boards())
    arguments = [
        "--preset",
        "tiny",
        "--corpus",
        str(corpus),
        "--out",
        str(run),
        "--device",
        "cpu",
        "--minutes",
        "60",
    ]
    small = (
        "height",
        "width",
        "d",
        "blocks",
        "heads",
        "hidden",
        "diffusion_steps",
        "batch",
        "validate_every",
    )
    arguments += [f"--set={name}={getattr(SMALL, name)}" for name in small]
    training = subprocess.Popen(
        [*TWO, "maskoban.training", *arguments],
        env=environment(),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: measured_twice(run), training)
        training.send_signal(signal.SIGINT)
        _, said = training.communicate(timeout=LIMIT)
    finally:
        training.kill()
    step = log(run)[-1]["step"]
    assert log(run)[-1]["event"] == "interrupted"
    assert said.count(f"interrupted at step {step}; saved in {run}\n") == 1
    assert "cannot reach" not in said
    assert (
        "maskoban/training" not in said
    )  # torchrun shows where the signal reached it; nothing of ours broke

    *_, progress, _ = load_checkpoint(run)
    assert progress.step == step
    assert progress.seconds > 0
    command.main([*arguments, "--resume", "--stop-at", str(step + 2)])
    assert [(r["event"], r.get("processes")) for r in log(run) if "event" in r] == [
        ("start", 2), ("interrupted", None), ("resume", 1), ("end", None)
    ]  # fmt: skip


# -- sharing out


def test_every_board_of_a_batch_has_one_process() -> None:
    parts = [Processes(4, rank).part(20) for rank in range(4)]
    assert [board for part in parts for board in range(20)[part]] == list(range(20))


def test_a_batch_that_cannot_be_shared_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError) as refused:
        trainer(SMALL, tmp_path, processes=Processes(count=3))
    assert str(refused.value) == "batch: expected a multiple of the 3 processes, got 16"


def test_a_process_that_torchrun_did_not_start_is_alone() -> None:
    with joined("cpu") as (processes, device):
        assert (processes, device) == (Processes(count=1, rank=0), "cpu")
        assert processes.first
        assert processes.agree(1.5, stop=True) == (1.5, True)
        assert processes.from_first(lambda: 7) == processes.together(lambda: 7) == 7
