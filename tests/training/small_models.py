"""Small models and critics for the tests: untrained, but with no part left at zero, where a mistake would not show."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

from maskoban.boards.synth import synthesize
from maskoban.boards.tiles import BOX, BOX_ON_GOAL
from maskoban.nn.critic import CriticNetwork
from maskoban.nn.networks import InteriorNetwork
from maskoban.nn.weight_files import save_tensors
from maskoban.training.checkpoint import Progress, new_network, save_checkpoint
from maskoban.training.config import PAPER, TINY, Preset
from maskoban.training.export import export
from maskoban.training.options import TrainOptions
from maskoban.training.run import train

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


#: The sizes and settings of the small conditional model.
SIZES = ((6, 6), (6, 8), (7, 5))
SETTINGS = {"d": 32, "blocks": 2, "heads": 2, "hidden": 64, "passes": 2, "batch": 32, "precision": "fp32",
            "diffusion_steps": 120, "warmup": 5, "steps": 120, "learning_rate": 2e-3, "muon_learning_rate": 0.02,
            "validate_every": 60, "sample_every": 60, "sample_boards": 4}  # fmt: skip


def make_corpus(folder: Path, boards_each: int = 120) -> Path:
    """Boards of three sizes with one or two boxes; half of their difficulties are unknown."""
    folder.mkdir()
    for height, width in SIZES:
        boards = np.concatenate([synthesize(boards_each, height, width, boxes, seed=3) for boxes in (1, 2)])
        boxes = np.isin(boards, (BOX, BOX_ON_GOAL)).sum((1, 2)).astype(np.uint8)
        difficulty = np.where(np.arange(len(boards)) % 2, 255, boxes - 1).astype(np.uint8)
        kind = np.zeros(len(boards), np.uint8)
        order = np.random.default_rng(0).permutation(len(boards))
        arrays = {"boards": boards, "boxes": boxes, "difficulty": difficulty, "kind": kind}
        np.savez(folder / f"{height}x{width}.npz", **{name: each[order] for name, each in arrays.items()})
    files = {path.name: 2 * boards_each for path in folder.iterdir()}
    (folder / "corpus.json").write_text(json.dumps({"kinds": ["synth", "boxoban"], "files": files}))
    return folder


def train_conditional(place: Path) -> Path:
    """A folder with a corpus of three sizes, a run of a conditional model and its exported model."""
    corpus = make_corpus(place / "corpus")
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    train(TrainOptions(preset="any", corpus=str(corpus), out=str(place / "run"), settings=settings,
                       device="cpu", quiet=True))  # fmt: skip
    export(place / "run", place / "model")
    return place
