"""Checkpoints: everything comes back, in one file or several, and a failed save loses nothing."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from maskoban.boards.tiles import MASK
from maskoban.diffusion.loading import load
from maskoban.errors import MaskobanError
from maskoban.nn.weight_files import save_tensors
from maskoban.training.checkpoint import (
    Progress,
    load_checkpoint,
    new_network,
    restore_optimizer,
    save_checkpoint,
    split_by_size,
)
from maskoban.training.config import TINY
from maskoban.training.options import TrainOptions
from maskoban.training.trainer import Trainer

PRESET = replace(TINY, height=5, width=5, d=16, blocks=2, heads=2, hidden=32)


class Run:
    """A network and an optimiser that have taken a step."""

    def __init__(self, seed: int = 0) -> None:
        self.network = new_network(replace(PRESET, seed=seed))
        self.adam = torch.optim.AdamW(self.network.parameters())
        self.network(torch.full((1, 9), 7)).logsumexp(-1).sum().backward()
        self.adam.step()

    def save(self, folder: Path, step: int, **how: object) -> None:
        ema = {name: p + 1 for name, p in self.network.named_parameters()}
        save_checkpoint(
            folder, PRESET, Progress(step, 1.5), self.network, ema, {"adamw": self.adam}, {"x": 1}, **how
        )  # type: ignore[arg-type]


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_everything_comes_back(tmp_path: Path) -> None:
    run = Run()
    run.save(tmp_path, 7)
    assert names(tmp_path) == ["state.safetensors"]
    tensors, preset, progress, extra = load_checkpoint(tmp_path)
    assert (preset, progress, extra) == (PRESET, Progress(7, 1.5), {"x": 1})
    for name, p in run.network.named_parameters():
        assert torch.equal(tensors[f"net.{name}"], p)
        assert torch.equal(tensors[f"ema.{name}"], p + 1)

    fresh = new_network(PRESET)
    adam = torch.optim.AdamW(fresh.parameters())
    restore_optimizer("adamw", adam, fresh, tensors)
    for mine, theirs in zip(fresh.parameters(), run.network.parameters(), strict=True):
        assert adam.state[mine].keys() == run.adam.state[theirs].keys() == {"step", "exp_avg", "exp_avg_sq"}
        for moment, value in adam.state[mine].items():
            assert torch.equal(value, run.adam.state[theirs][moment])


def test_one_file_can_be_named_in_place_of_its_folder(tmp_path: Path) -> None:
    Run().save(tmp_path, 7)
    assert load_checkpoint(tmp_path / "state.safetensors")[2].step == 7


def test_parts_stay_below_the_largest_size_and_hold_the_same(tmp_path: Path) -> None:
    run = Run()
    run.save(tmp_path, 7)
    whole = load_checkpoint(tmp_path)[0]
    run.save(tmp_path, 8, largest=16_000)
    parts = names(tmp_path)
    assert len(parts) > 2
    assert all(name.startswith("state-8-") for name in parts)  # the single file is gone
    assert all((tmp_path / name).stat().st_size < 16_000 + 4_000 for name in parts)  # with its header
    tensors, _, progress, _ = load_checkpoint(tmp_path)
    assert progress.step == 8
    assert tensors.keys() == whole.keys()
    assert all(torch.equal(tensors[name], whole[name]) for name in whole)

    run.save(tmp_path, 9, largest=16_000)
    assert all(name.startswith("state-9-") for name in names(tmp_path))
    run.save(tmp_path, 10)
    assert names(tmp_path) == ["state.safetensors"]
    assert load_checkpoint(tmp_path)[2].step == 10


def test_a_tensor_above_the_largest_size_gets_its_own_part() -> None:
    tensors = {name: torch.zeros(n) for name, n in (("a", 1), ("b", 100), ("c", 1), ("d", 1))}
    assert [list(part) for part in split_by_size(tensors, 8)] == [["a"], ["b"], ["c", "d"]]
    assert [list(part) for part in split_by_size(tensors, None)] == [["a", "b", "c", "d"]]


def test_compact_halves_the_moments_and_leaves_the_weights(tmp_path: Path) -> None:
    run = Run()
    run.save(tmp_path, 7)
    full = (tmp_path / "state.safetensors").stat().st_size
    run.save(tmp_path, 7, compact=True)
    tensors = load_checkpoint(tmp_path)[0]
    assert (tmp_path / "state.safetensors").stat().st_size < 0.8 * full
    for name, p in run.network.named_parameters():
        assert torch.equal(tensors[f"net.{name}"], p)
        saved = tensors[f"adamw.{name}.exp_avg"]
        assert saved.dtype == torch.bfloat16
        torch.testing.assert_close(saved.float(), run.adam.state[p]["exp_avg"], rtol=0.01, atol=0)
        assert tensors[f"adamw.{name}.step"].dtype == torch.float32


@pytest.mark.parametrize("before", [None, 16_000])
@pytest.mark.parametrize("after", [None, 16_000])
def test_a_disk_that_fills_up_while_saving_leaves_the_old_checkpoint_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int | None, after: int | None
) -> None:
    """The last file of the new checkpoint finds no space any more."""
    run = Run()
    run.save(tmp_path, 7, largest=before)
    old = names(tmp_path)
    parts = 1 if after is None else len(split_by_size(load_checkpoint(tmp_path)[0], after))
    written = 0

    def filling_up(_: int) -> None:
        nonlocal written
        written += 1
        if written == parts:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", filling_up)
    with pytest.raises(MaskobanError, match=r"safetensors: cannot be written: No space left on device$"):
        run.save(tmp_path, 8, largest=after)
    assert names(tmp_path) == old
    assert load_checkpoint(tmp_path)[2].step == 7


def test_a_weights_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    for metadata in ({}, {"preset": "{}"}, {"preset": "[", "progress": "{}"}):
        save_tensors(tmp_path / "state.safetensors", {"a": torch.ones(1)}, metadata)
        with pytest.raises(MaskobanError, match="not a maskoban checkpoint"):
            load_checkpoint(tmp_path)


# -- checkpoints of version 0.1.0, written before the settings objective and average existed

OLD = Path(__file__).parent / "old_runs"


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("name", "held_out_loss"), [("interior", 1.86632), ("paper", 16.49853)])
def test_an_old_run_resumes_and_ends_as_it_would_have(
    tmp_path: Path, name: str, held_out_loss: float
) -> None:
    """The loss is that of the run's uninterrupted end, in the version that began it."""
    run = Path(shutil.copytree(OLD / name, tmp_path / name))
    _, preset, progress, _ = load_checkpoint(run)
    assert (preset.objective, preset.average, preset.steps) == ("cross_entropy", "board", 8)
    assert progress.step == 4
    boards = np.load(OLD / "boards.npy")
    options = TrainOptions(device="cpu", compile=False, quiet=True)
    Trainer(preset, boards[:16], boards[16:], run, options).resume().run()
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    (found,) = [entry["valid"] for entry in entries if "valid" in entry]
    assert found == pytest.approx(held_out_loss, rel=2e-3)


@pytest.mark.parametrize("name", ["interior", "paper"])
def test_an_old_run_is_a_model(tmp_path: Path, name: str) -> None:
    pytest.importorskip("onnx", reason="exporting needs onnx")
    from maskoban.training.export import export

    assert load(OLD / name).sample(3, seed=1).shape == (3, 5, 5)
    assert export(OLD / name, tmp_path)["training_steps"] == 4
    assert (load(tmp_path).sample(3, seed=1) != MASK).all()
