"""The training loop: it learns, it can be stopped anywhere, and resuming changes nothing."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from maskoban._util.signals import defer_interrupt
from maskoban.boards import Level, Tokens
from maskoban.boards.synth import synthesize
from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.training import read_training
from maskoban.nn.networks import InteriorNetwork
from maskoban.nn.weight_files import load_folder, save_tensors
from maskoban.training import trainer as loop
from maskoban.training.checkpoint import named_folder
from maskoban.training.config import PAPER, TINY, Preset
from maskoban.training.distributed import Processes
from maskoban.training.options import TrainOptions
from maskoban.training.trainer import Trainer

QUIET = TrainOptions(quiet=True, device="cpu", compile=False)

SMALL = replace(
    TINY, height=6, width=6, d=16, blocks=2, heads=2, hidden=32, diffusion_steps=16, batch=16, steps=12,
    warmup=3, ema=0.9, validate_every=4, validation_boards=16, sample_every=100, sample_boards=4,
)  # fmt: skip

#: Both networks, looped and not, both optimisers, corruptions and decays, with and without clipping and averaging.
RUNS = {
    "ours": SMALL,
    "looped": replace(
        SMALL, passes=3, least_passes=1, symmetry=0.5, unit="gelu", muon_weight_decay=0.1, steps=12
    ),
    "paper": replace(
        PAPER, height=6, width=6, d=16, blocks=2, heads=2, hidden=32, diffusion_steps=36, batch=16, steps=12,
        warmup=3, ema=0.9, precision="fp32", validate_every=4, validation_boards=16, sample_every=100,
        sample_boards=4,
    ),
    "paper, muon, no average": replace(
        PAPER, height=6, width=6, d=16, blocks=1, heads=1, hidden=32, batch=16, steps=12, precision="fp32",
        optimizer="muon", muon_learning_rate=0.02, muon_momentum=0.95, validate_every=4, validation_boards=16,
        sample_every=100, sample_boards=4,
    ),
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("one_thread")


@cache
def boards() -> Tokens:
    return synthesize(80, height=6, width=6, boxes=1, seed=3)


def trainer(preset: Preset, folder: Path, processes: Processes | None = None, **options: Any) -> Trainer:
    return Trainer(preset, boards()[:64], boards()[64:], folder, replace(QUIET, **options), processes)


def state(folder: Path) -> dict[str, bytes]:
    """Every tensor of a run's checkpoint, as bytes: equal means equal to the bit."""
    return {
        name: value.contiguous().view(-1).numpy().tobytes() for name, value in load_folder(folder)[0].items()
    }


def log(folder: Path) -> list[dict[str, Any]]:
    """The complete lines of a log, which may be written at this moment."""
    lines = (folder / "log.jsonl").read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


# -- exact resume


@pytest.mark.parametrize("run", list(RUNS))
def test_interrupted_and_resumed_equals_uninterrupted_to_the_bit(tmp_path: Path, run: str) -> None:
    preset = RUNS[run]
    trainer(preset, tmp_path / "whole").run()
    trainer(preset, tmp_path / "parts", stop_at=2).run()  # in the warm-up
    trainer(preset, tmp_path / "parts", stop_at=7, largest_file=0.02).resume().run()  # in the next epoch
    trainer(preset, tmp_path / "parts").resume().run()
    whole = state(tmp_path / "whole")
    assert whole == state(tmp_path / "parts")
    kinds = {name.split(".")[0] for name in whole}
    assert kinds == {"net", "adamw"} | ({"ema"} if preset.ema else set()) | (
        {"muon"} if preset.optimizer == "muon" else set()
    )
    # So were all losses, though one run was left between two notes of them.
    losses = [
        [(r["step"], r["train"], r["valid"]) for r in log(tmp_path / name) if "valid" in r]
        for name in ("whole", "parts")
    ]
    assert losses[0] == losses[1]


def test_two_runs_from_one_seed_are_equal_and_another_seed_is_not(tmp_path: Path) -> None:
    preset = replace(SMALL, steps=4)
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        trainer(replace(preset, seed=seed), tmp_path / name).run()
    assert state(tmp_path / "one") == state(tmp_path / "again")
    assert state(tmp_path / "one") != state(tmp_path / "other")


def test_measuring_on_the_way_changes_nothing(tmp_path: Path) -> None:
    preset = replace(SMALL, steps=5)
    trainer(preset, tmp_path / "plain").run()
    measured = trainer(preset, tmp_path / "measured")
    for _ in range(5):
        measured.train_step()
        measured.folder.mkdir(exist_ok=True)
        measured.validate()
        measured.sample()
    measured.save()
    assert state(tmp_path / "plain") == state(tmp_path / "measured")


def interrupting(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Ctrl-C in the middle of this step: when Muon has moved its matrices, and AdamW has not moved the rest."""
    from maskoban.training.optim import StackedMuon

    plain, taken = StackedMuon.step, 0

    def stepping(self: StackedMuon, closure: None = None) -> None:
        nonlocal taken
        plain(self, closure)
        taken += 1
        if taken == step:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(StackedMuon, "step", stepping)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt here even where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_the_middle_of_a_step_lets_the_step_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer(SMALL, tmp_path / "whole").run()
    with monkeypatch.context() as patched:
        interrupting(patched, step=6)
        with pytest.raises(KeyboardInterrupt):
            trainer(SMALL, tmp_path / "cut").run()
    assert log(tmp_path / "cut")[-1].items() >= {"event": "interrupted", "step": 6}.items()
    trainer(SMALL, tmp_path / "cut").resume().run()
    assert state(tmp_path / "whole") == state(tmp_path / "cut")


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("moment", ["named_parameters", "eval", "train"])
def test_ctrl_c_while_measuring_saves_the_raw_weights_and_the_average_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Measuring swaps the average in: Ctrl-C comes during that, just after it, or when all is swapped back."""
    trainer(SMALL, tmp_path / "whole").run()
    cut = trainer(SMALL, tmp_path / "cut")
    for _ in range(4):
        cut.train_step()
    plain = getattr(cut.network, moment)

    def interrupted_call(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return plain(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(cut.network, moment, interrupted_call)
        with pytest.raises(KeyboardInterrupt):
            cut.validate()
    cut.folder.mkdir()
    cut.save()
    trainer(SMALL, tmp_path / "cut").resume().run()
    assert state(tmp_path / "whole") == state(tmp_path / "cut")


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_is_held_back_until_the_block_ends() -> None:
    reached = []

    def block() -> None:
        with defer_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("the end of the block")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# -- what is refused


def changed(rows: str) -> Tokens:
    """Boards of which number 3 is another one."""
    other = boards().copy()
    other[3] = Level.parse(rows).tokens
    return other


OPEN = "######\n#@$. #\n#     \n#    #\n#    #\n######"
MASKED = "######\n#@$. #\n#  ? #\n#    #\n#    #\n######"


@pytest.mark.parametrize(
    ("corpus", "sentence"),
    [
        (lambda: boards()[:, :5], "the training corpus has 5x6 boards, but the preset samples 6x6"),
        (
            lambda: changed(OPEN),
            "the training corpus: board 3 has a border that is not all wall; this network needs one",
        ),
        (lambda: changed(MASKED), "the training corpus: board 3 has masked cells"),
        (lambda: boards()[:10], "the training corpus has 10 boards; expected at least one batch of 16"),
    ],
)
def test_a_corpus_that_does_not_fit_is_refused(tmp_path: Path, corpus: Any, sentence: str) -> None:
    with pytest.raises(MaskobanError) as refused:
        Trainer(SMALL, corpus(), boards(), tmp_path / "run", QUIET)
    assert str(refused.value) == sentence
    assert not (tmp_path / "run").exists()


def test_numbers_of_hidden_cells_that_would_come_more_seldom_are_refused(tmp_path: Path) -> None:
    for steps in (15, 25):
        match = rf"expected a multiple of the 16 cells .* got {steps}; set diffusion_steps=16"
        with pytest.raises(MaskobanError, match=match):
            trainer(replace(SMALL, diffusion_steps=steps), tmp_path)
    trainer(replace(SMALL, diffusion_steps=32), tmp_path)
    trainer(replace(RUNS["paper"], diffusion_steps=15), tmp_path)  # hides cells one by one: any number comes


def test_a_run_that_diverges_ends_and_keeps_the_checkpoint_from_before(tmp_path: Path) -> None:
    trainer(SMALL, tmp_path, stop_at=2).run()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("state*")}
    run = trainer(SMALL, tmp_path).resume()
    with torch.no_grad():
        next(run.network.parameters()).fill_(math.nan)
    with pytest.raises(MaskobanError, match="the loss is not finite at step 4: training has diverged"):
        run.run()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("state*")} == before
    assert "NaN" not in (tmp_path / "log.jsonl").read_text()


@pytest.mark.parametrize("how", [{"save_every": 1}, {"stop_at": 3}])
def test_what_has_diverged_is_not_saved_before_it_is_noticed_either(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    trainer(SMALL, tmp_path, stop_at=2).run()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("state*")}
    run = trainer(replace(SMALL, validate_every=100), tmp_path, **how).resume()
    with torch.no_grad():
        next(run.network.parameters()).view(-1)[0] = math.inf
    with pytest.raises(MaskobanError, match="training has diverged"):
        run.run()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("state*")} == before


def test_half_a_line_in_the_log_costs_no_other(tmp_path: Path) -> None:
    trainer(SMALL, tmp_path, stop_at=2).run()
    log = tmp_path / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    trainer(SMALL, tmp_path).resume().run()
    lines = log.read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines if '"event": "resume"' in line] == ["resume"]
    assert read_training(log).losses[-1].step == SMALL.steps


def test_held_out_boards_are_checked_too(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match="the held-out corpus: board 3 has masked cells"):
        Trainer(SMALL, boards(), changed(MASKED), tmp_path, QUIET)
    with pytest.raises(MaskobanError, match="the held-out corpus has no boards"):
        Trainer(SMALL, boards(), boards()[:0], tmp_path, QUIET)


def test_the_papers_network_samples_the_border_itself(tmp_path: Path) -> None:
    Trainer(RUNS["paper"], changed(OPEN), boards(), tmp_path, QUIET)


def test_a_run_is_not_resumed_with_other_settings(tmp_path: Path) -> None:
    trainer(replace(SMALL, steps=1), tmp_path).run()
    with pytest.raises(MaskobanError) as refused:
        trainer(replace(SMALL, steps=2, ema=0.99), tmp_path).resume()
    assert str(refused.value) == f"{tmp_path}: the run has other settings: steps, ema differ"


def test_a_run_is_not_resumed_with_other_boards(tmp_path: Path) -> None:
    trainer(SMALL, tmp_path, stop_at=1).run()
    with pytest.raises(MaskobanError, match="the run was trained on other boards"):
        Trainer(SMALL, boards()[1:65], boards()[64:], tmp_path, QUIET).resume()


def test_a_resumed_run_keeps_its_minutes(tmp_path: Path) -> None:
    trainer(SMALL, tmp_path / "minutes", stop_at=2, minutes=5).run()
    assert trainer(SMALL, tmp_path / "minutes").resume().options.minutes == 5
    with pytest.raises(MaskobanError, match="the run's budget is in 5 minutes, got --minutes 6"):
        trainer(SMALL, tmp_path / "minutes", minutes=6).resume()
    trainer(SMALL, tmp_path / "steps", stop_at=2).run()
    with pytest.raises(MaskobanError, match="the run's budget is in steps, got --minutes 6"):
        trainer(SMALL, tmp_path / "steps", minutes=6).resume()


def test_a_run_ends_early_with_its_rate_at_zero(tmp_path: Path) -> None:
    preset = replace(SMALL, steps=100, warmup=1, validate_every=1, decay="linear", decay_share=1.0)
    trainer(preset, tmp_path / "begun", stop_at=4).run()
    for name in ("whole", "parts"):
        shutil.copytree(tmp_path / "begun", tmp_path / name)
    trainer(preset, tmp_path / "whole", anneal=4).resume().run()
    trainer(preset, tmp_path / "parts", anneal=4, stop_at=6).resume().run()
    with pytest.raises(MaskobanError, match="the run is annealing already, over 4 steps; got --anneal 3"):
        trainer(preset, tmp_path / "parts", anneal=3).resume()
    trainer(preset, tmp_path / "parts").resume().run()
    rates = {entry["step"]: entry["rate"] for entry in log(tmp_path / "parts") if "rate" in entry}
    assert rates == {1: 0.99, 2: 0.98, 3: 0.97, 4: 0.96, 5: 0.72, 6: 0.48, 7: 0.24, 8: 0.0}
    assert state(tmp_path / "whole") == state(tmp_path / "parts")
    sampled = [entry["step"] for entry in log(tmp_path / "parts") if "boards" in entry]
    assert sampled[-1] == 8


def test_the_run_as_it_was_before_annealing_can_go_on(tmp_path: Path) -> None:
    preset = replace(SMALL, steps=8)
    trainer(preset, tmp_path / "whole").run()
    trainer(preset, tmp_path / "run", stop_at=4).run()
    with pytest.raises(MaskobanError, match="the run ends in 4 steps; got --anneal 5"):
        trainer(preset, tmp_path / "run", anneal=5).resume()
    trainer(preset, tmp_path / "run", anneal=2).resume().run()
    trainer(preset, tmp_path / "run" / "before-annealing-4").resume().run()
    assert state(tmp_path / "whole") == state(tmp_path / "run" / "before-annealing-4")


def test_a_run_that_has_ended_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer(replace(SMALL, steps=2), tmp_path, quiet=False).run()
    assert "has ended" not in capsys.readouterr().err
    trainer(replace(SMALL, steps=2), tmp_path, quiet=False).resume().run()
    assert capsys.readouterr().err == f"the run in {tmp_path} has ended, at step 2\n"


def test_a_checkpoint_is_never_older_than_some_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_SAVE_AFTER", 0.0)
    saved: list[int] = []
    run = trainer(replace(SMALL, steps=3), tmp_path)
    monkeypatch.setattr(run, "save", lambda: saved.append(run.progress.step))
    run.run()
    assert saved == [1, 2, 3, 3]


def test_what_is_measured_may_change_in_the_middle_of_a_run(tmp_path: Path) -> None:
    trainer(replace(SMALL, steps=8, validate_every=4), tmp_path, stop_at=4).run()
    trainer(replace(SMALL, steps=8, validate_every=2), tmp_path).resume().run()
    assert [entry["step"] for entry in log(tmp_path) if "valid" in entry] == [4, 6, 8]


def test_a_run_that_has_ended_cannot_end_early(tmp_path: Path) -> None:
    trainer(replace(SMALL, steps=1), tmp_path).run()
    with pytest.raises(MaskobanError, match="the run ends in 0 steps; got --anneal 2"):
        trainer(replace(SMALL, steps=1), tmp_path, anneal=2).resume()


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("moment", ["validate", "sample", "solvable_share"])
@pytest.mark.parametrize("every", [4, 5])
def test_ctrl_c_during_the_last_measuring_does_not_lose_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, every: int
) -> None:
    preset = replace(SMALL, validate_every=every)
    trainer(preset, tmp_path / "whole").run()
    measured = [entry for entry in log(tmp_path / "whole") if "event" not in entry]
    where: Any = loop if moment == "solvable_share" else Trainer
    plain, calls = getattr(where, moment), 0

    def pressed(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if moment != "validate" or calls == 3:  # the last time
            raise KeyboardInterrupt
        return plain(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(where, moment, pressed)
        with pytest.raises(KeyboardInterrupt):
            trainer(preset, tmp_path / "cut").run()
    with open(tmp_path / "cut" / "log.jsonl", "a") as torn:
        torn.write('{"step": 1\n')  # as a full disk leaves it
    for _ in range(2):  # what is there already is not measured again
        trainer(preset, tmp_path / "cut").resume().run()
    sampled = [tmp_path / run / "boards-0000012.npy" for run in ("whole", "cut")]
    assert (np.load(sampled[0]) == np.load(sampled[1])).all()
    lines = (tmp_path / "cut" / "log.jsonl").read_text().splitlines()
    seen = [json.loads(line) for line in lines if line.endswith("}")]
    again = [entry for entry in seen if "event" not in entry]
    assert [(e["step"], e.get("valid"), e.get("boards")) for e in again] == [
        (e["step"], e.get("valid"), e.get("boards")) for e in measured
    ]
    assert seen[-1]["event"] == "end"


def test_the_last_loss_is_noted_where_boards_were_sampled_on_the_way(tmp_path: Path) -> None:
    trainer(replace(SMALL, validate_every=5, sample_every=4), tmp_path).run()
    assert [entry["step"] for entry in log(tmp_path) if "valid" in entry] == [5, 10, 12]
    assert [entry["step"] for entry in log(tmp_path) if "boards" in entry] == [4, 8, 12]


def test_steps_of_runs_that_stand_on_each_other_add_up(tmp_path: Path) -> None:
    for name, source in (("one", None), ("two", "one"), ("three", "two")):
        run = trainer(replace(SMALL, steps=4), tmp_path / name, stop_at=3)
        (run.start_from(tmp_path / source) if source else run).run()
    trainer(replace(SMALL, steps=4), tmp_path / "three").resume().run()
    assert [entry["before"] for entry in log(tmp_path / "three") if "before" in entry] == [6, 6]
    export = pytest.importorskip("maskoban.training.export", reason="exporting needs onnx").export
    facts = export(tmp_path / "three", tmp_path / "model")
    assert facts["training_steps"] == 3 + 3 + 4
    assert export(tmp_path / "model", tmp_path / "again")["training_steps"] == 10


def test_units_that_were_left_out_of_a_model_can_learn_again(tmp_path: Path) -> None:
    trainer(replace(SMALL, steps=2), tmp_path / "run").run()
    first = trainer(SMALL, tmp_path / "new").start_from(tmp_path / "run")
    tensors = dict(load_folder(tmp_path / "run")[0])
    for kind in ("net", "ema"):
        tensors[f"{kind}.up"][:, 5:], tensors[f"{kind}.down"][..., 5:] = 0, 0
    metadata = load_folder(tmp_path / "run")[1]
    (tmp_path / "pruned").mkdir()
    save_tensors(tmp_path / "pruned" / "state.safetensors", tensors, metadata)
    run = trainer(replace(SMALL, seed=3), tmp_path / "new").start_from(tmp_path / "pruned")
    assert isinstance(run.network, InteriorNetwork)
    assert isinstance(first.network, InteriorNetwork)
    assert (run.network.up[:, :5] == first.network.up[:, :5]).all()
    assert (run.network.up[:, 5:] != 0).all()
    assert (run.network.down[..., 5:] == 0).all()  # so that nothing is changed as yet
    run.run()
    assert (run.network.down[..., 5:] != 0).any()


def test_a_shipped_model_is_started_from_by_its_name() -> None:
    assert (named_folder("best") / "model.safetensors").is_file()
    assert named_folder("elsewhere") == Path("elsewhere")


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    trainer(replace(SMALL, steps=1), tmp_path).run()
    with pytest.raises(MaskobanError, match=r"tensor 'ema.qkv' has shape"):
        trainer(replace(SMALL, blocks=3), tmp_path / "new").start_from(tmp_path)


@pytest.mark.parametrize("device", ["cuda:99", "toaster"])
def test_a_device_that_is_not_there_is_refused(tmp_path: Path, device: str) -> None:
    with pytest.raises(MaskobanError, match=f"device '{device}': "):
        trainer(SMALL, tmp_path, device=device)


@pytest.mark.parametrize(
    ("name", "value"),
    [("minutes", 0), ("minutes", math.nan), ("save_every", 0), ("stop_at", 0), ("anneal", 0)],
)
def test_impossible_options_are_refused(name: str, value: float) -> None:
    with pytest.raises(MaskobanError):
        replace(QUIET, **{name: value})  # type: ignore[arg-type]


# -- a full disk


@pytest.mark.parametrize("name", ["state.safetensors", "boards-0000008.npy", "log.jsonl"])
def test_a_full_disk_ends_the_run_with_one_sentence_and_a_whole_checkpoint(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = replace(SMALL, sample_every=8)
    trainer(preset, tmp_path, stop_at=4).run()
    before = state(tmp_path)
    with monkeypatch.context() as patched:
        if name.startswith("state"):
            patched.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        elif not Path("/dev/full").exists():
            pytest.skip("this system has no /dev/full to write to")
        else:
            (tmp_path / name).unlink(missing_ok=True)
            (tmp_path / name).symlink_to("/dev/full")
        with pytest.raises(MaskobanError) as raised:
            trainer(preset, tmp_path).resume().run()
    assert str(raised.value) == f"{tmp_path / name}: cannot be written: No space left on device"
    assert state(tmp_path) == before
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    assert (tmp_path / "boards-0000008.npy").is_file() == name.startswith("state")

    if (tmp_path / name).is_symlink():
        (tmp_path / name).unlink()  # there is space again
    trainer(preset, tmp_path).resume().run()
    assert log(tmp_path)[-1]["step"] == preset.steps


# -- schedules, log, options


def test_a_run_takes_the_minutes_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that moves a second whenever it is read: two reads a step, the last of which starts the next step."""
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
    run = trainer(replace(SMALL, steps=10**9, validate_every=10**9), tmp_path, minutes=0.1)
    run.run()
    assert run.progress.seconds == 6
    assert run.progress.step == 6
    assert run.rate_factor() == 0


def test_every_epoch_shows_every_board_once_in_a_new_order(tmp_path: Path) -> None:
    run = trainer(SMALL, tmp_path)  # 64 boards, batches of 16
    epochs = [torch.cat([run.batches(step) for step in range(4 * e, 4 * e + 4)]) for e in (0, 1)]
    corpus = sorted(map(tuple, run.batches.corpus.tolist()))
    for epoch in epochs:
        assert sorted(map(tuple, epoch.tolist())) == corpus
    assert not torch.equal(*epochs)


def test_muon_takes_the_matrices_of_the_blocks_and_adamw_the_rest(tmp_path: Path) -> None:
    for preset, matrices in ((SMALL, {"qkv", "out", "up", "down"}), (RUNS["paper"], set())):
        run = trainer(preset, tmp_path)
        names = {p: n for n, p in run.network.named_parameters()}
        taken = {
            key: {names[p] for g in o.param_groups for p in g["params"]}
            for key, o in run.step.optimizers.items()
        }
        assert taken.get("muon", set()) == matrices
        assert taken["adamw"] == set(names.values()) - matrices


def test_the_log_tells_settings_versions_and_machine(tmp_path: Path) -> None:
    trainer(replace(SMALL, steps=4), tmp_path).run()
    start, *records, end = log(tmp_path)
    assert start["event"] == "start"
    assert start["settings"]["steps"] == 4
    assert start["parameters"] == sum(p.numel() for p in trainer(SMALL, tmp_path).network.parameters())
    assert (start["corpus"], start["held_out"]) == (64, 16)
    assert start["versions"]["torch"] == torch.__version__
    assert start["machine"]
    assert records[0].keys() == {"step", "minutes", "train", "valid", "rate"}
    assert records[1].keys() >= {"step", "boards", "walls"}
    assert np.load(tmp_path / records[1]["boards"]).shape == (4, 6, 6)
    assert (end["event"], end["step"]) == ("end", 4)


def test_mixed_precision_trains_and_resumes(tmp_path: Path) -> None:
    for precision in ("bf16", "fp16"):
        preset = replace(SMALL, precision=precision, steps=4, clip=1.0)
        trainer(preset, tmp_path / precision, stop_at=2).run()
        trainer(preset, tmp_path / precision).resume().run()
        assert all(np.isfinite(r["valid"]) for r in log(tmp_path / precision) if "valid" in r)


def test_tensorboard_gets_the_numbers_or_is_requested_for(tmp_path: Path) -> None:
    if find_spec("tensorboard") is None:
        with pytest.raises(MaskobanError) as refused:
            trainer(SMALL, tmp_path, tensorboard=True)
        assert str(refused.value) == "TensorBoard events need its package: pip install tensorboard"
        return
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trainer(replace(SMALL, steps=4), tmp_path, tensorboard=True).run()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    seen = next(r for r in log(tmp_path) if "valid" in r)
    for name in ("train", "valid", "rate"):
        (scalar,) = events.Scalars(name)
        assert (scalar.step, scalar.value) == (4, pytest.approx(seen[name], rel=1e-5))


# -- it learns


def test_held_out_loss_falls_and_solvability_rises(tmp_path: Path) -> None:
    """`tiny` on smaller boards with a smaller net, measured a tenth of the way and at the end."""
    pytest.importorskip(
        "maskoban._core", reason="the native solver is not built: nothing can judge the boards"
    )
    preset = replace(
        TINY, height=6, width=6, blocks=2, hidden=128, diffusion_steps=16, batch=64, steps=500, warmup=20,
        validate_every=50, validation_boards=512, sample_every=10_000, sample_boards=256,
    )  # fmt: skip
    made = synthesize(4512, height=6, width=6, boxes=1, seed=5, walls=0.4)
    early = Trainer(preset, made[:4000], made[4000:], tmp_path, replace(QUIET, stop_at=50))
    early.run()
    early.sample()
    Trainer(preset, made[:4000], made[4000:], tmp_path, QUIET).resume().run()
    valid = [r["valid"] for r in log(tmp_path) if "valid" in r]
    solvable = [r["solvable"] for r in log(tmp_path) if "solvable" in r]
    assert len(solvable) == 2
    assert valid[-1] < valid[0] - 0.1
    assert solvable[-1] > solvable[0] + 0.15
