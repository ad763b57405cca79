"""The paper's recipe written down a second time, plainly, from its text: the trainer takes the very same steps."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskoban.boards.synth import synthesize
from maskoban.boards.tiles import MASK
from maskoban.training.config import PAPER, parse_settings
from maskoban.training.options import TrainOptions
from maskoban.training.trainer import Trainer
from tests.nn.test_networks import Reference

STEPS, SMALL = 24, {"height": 5, "width": 5, "d": 16, "blocks": 2, "heads": 2, "hidden": 32}


def alpha(t: int, schedule: str) -> float:
    """The share of visible cells at time t of 25."""
    return 1 - t / 25 if schedule == "linear" else math.cos(math.pi * t / 50)


def loss(
    network: nn.Module, boards: Tensor, times: Tensor, noise: Tensor, schedule: str, cap: float, average: str
) -> Tensor:
    """E[w(t) / |M| sum over M of -log p(x_i)] or E[w(t) sum over M of -log p(x_i)] / E[|M|], a board at a time."""
    total, cells = torch.zeros(()), 0
    for board, t, numbers in zip(boards, times.tolist(), noise, strict=True):
        share = 1 - alpha(t, schedule)
        hidden = numbers < share
        if not hidden.any():
            continue
        logits = network(torch.where(hidden, MASK, board)[None], torch.tensor([t]))[0]
        mean = min(1 / share, cap) * F.cross_entropy(logits[hidden], board[hidden])
        total = total + mean * (int(hidden.sum()) if average == "batch" else 1)
        cells += int(hidden.sum())
    return total / (cells if average == "batch" else len(boards))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("schedule", "cap", "probe"),
    [
        ("linear", 10.0, []),
        ("cosine", 50.0, []),
        ("linear", 10.0, ["average=batch"]),
        ("linear", 10.0, ["final_norm=true", "activation=relu"]),
    ],
)
def test_the_trainer_takes_the_steps_of_the_paper(
    schedule: str, cap: float, probe: list[str], tmp_path: Path
) -> None:
    preset = replace(
        PAPER, **SMALL, schedule=schedule, weight_cap=cap, diffusion_steps=25, dropout=0.0, batch=8, steps=STEPS,
        warmup=5, precision="fp32", validate_every=1000, sample_every=1000, seed=3, **parse_settings(probe),
    )  # fmt: skip
    levels = synthesize(64, height=5, width=5, boxes=1, seed=1)
    trainer = Trainer(
        preset, levels[:48], levels[48:], tmp_path, TrainOptions(device="cpu", compile=False, quiet=True)
    )
    plain = Reference(deepcopy(trainer.network), hidden=32)  # type: ignore[arg-type]
    optimizer = torch.optim.AdamW(plain.parameters(), 1.0, (0.9, 0.999), weight_decay=0.01)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = (
            2.45e-4 * min((step + 1) / 5, 1) * (1 + math.cos(math.pi * step / STEPS)) / 2
        )
        torch.manual_seed(3 * 1_000_003 + step)  # the numbers that the trainer will roll
        boards = trainer.batches(step)
        times = (torch.rand(8) * 25).long() + 1
        wanted = loss(plain, boards, times, torch.rand(8, 25), schedule, cap, preset.average)
        optimizer.zero_grad()
        wanted.backward()
        used = [p for p in plain.parameters() if p.grad is not None]
        torch.nn.utils.clip_grad_norm_(used, 1.0)
        optimizer.step()
        found = trainer.train_step()
        assert found.item() == pytest.approx(wanted.item(), rel=1e-4), step
    ours = Reference(trainer.network, hidden=32)  # type: ignore[arg-type]
    for (name, mine), theirs in zip(ours.named_parameters(), plain.parameters(), strict=True):
        if (
            theirs.grad is not None and "in_proj_bias" not in name
        ):  # of the keys' bias the gradient is rounding alone
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=2e-5)
