"""Small models and critics for the tests: untrained, but with no part left at zero, where a mistake would not show."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch
from torch import nn

from maskoban.nn.critic import CriticNetwork
from maskoban.nn.networks import InteriorNetwork
from maskoban.nn.weight_files import save_tensors
from maskoban.training.checkpoint import Progress, new_network, save_checkpoint
from maskoban.training.config import PAPER, TINY, Preset

SMALL_PAPER = dataclasses.replace(PAPER, height=6, width=7, d=32, blocks=2, heads=2, hidden=64)
SMALL = dataclasses.replace(TINY, height=6, width=7, d=32, blocks=2, heads=2, hidden=64)

#: Large enough that matrices are kept in 8 bits with bits=8.
WIDE_PAPER = dataclasses.replace(SMALL_PAPER, d=128, hidden=256)
WIDE = dataclasses.replace(SMALL, d=128, hidden=256)


def save_run(folder: Path, preset: Preset = SMALL) -> Path:
    """A run of the preset's network, 12 steps and 34 seconds long."""
    network = new_network(preset)
    _stir(network, 0.05)
    folder.mkdir(exist_ok=True)
    save_checkpoint(folder, preset, Progress(12, 34.0), network, None, {})
    return folder


def save_critic(folder: Path, preset: Preset = SMALL, rank: int = 3) -> Path:
    """The run of a critic of that model."""
    network = new_network(preset)
    assert isinstance(network, InteriorNetwork)
    critic = CriticNetwork(network, rank)
    _stir(critic, 0.2)
    folder.mkdir(exist_ok=True)
    halves = {name: value.half() for name, value in critic.added().items()}
    save_tensors(folder / "critic.safetensors", halves, {"facts": '{"auc": 0.5}'})
    return folder


@torch.no_grad()
def _stir(module: nn.Module, much: float) -> None:
    for p in module.parameters():
        p.add_(torch.randn_like(p) * much)
