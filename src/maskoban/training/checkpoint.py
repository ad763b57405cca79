"""Checkpoints: the state of a run on disk, complete enough to resume exactly.

A checkpoint is one safetensors file, ``state.safetensors``, or several where a largest size is given:
``state-5000-1-of-3.safetensors`` and so on for step 5000. Names inside: ``net.*``, ``ema.*``, and
``<optimiser>.<parameter>.<moment>``. The metadata of every file holds the preset, the step and the seconds trained.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from maskoban.diffusion.loading import shipped_folder
from maskoban.errors import MaskobanError
from maskoban.nn.networks import Network, build_network
from maskoban.nn.weight_files import load_folder, part_names, save_tensors
from maskoban.training.config import Preset, load_preset


@dataclass
class Progress:
    """How far a run is."""

    step: int = 0
    seconds: float = 0.0


def new_network(preset: Preset) -> Network:
    """The preset's network, initialised from its seed."""
    torch.manual_seed(preset.seed)
    return build_network(dataclasses.asdict(preset))


def save_checkpoint(
    folder: Path,
    preset: Preset,
    progress: Progress,
    network: nn.Module,
    ema: dict[str, Tensor] | None,
    optimizers: dict[str, torch.optim.Optimizer],
    extra: Mapping[str, object] | None = None,
    compact: bool = False,
    largest: int | None = None,
) -> None:
    """Write the whole state. ``compact`` stores moments in bf16, ``largest`` is the most bytes of a file.

    The old checkpoint is deleted when the new one is complete, so the folder holds a complete one at any time.
    """
    tensors: dict[str, Tensor] = {f"net.{name}": p for name, p in network.state_dict().items()}
    for name, value in (ema or {}).items():
        tensors[f"ema.{name}"] = value
    names: dict[Tensor, str] = {p: name for name, p in network.named_parameters()}
    for key, optimizer in optimizers.items():
        for p, state in optimizer.state.items():
            for moment, value in state.items():
                stored = value if torch.is_tensor(value) else torch.tensor(float(value))
                if compact and stored.ndim > 0:
                    stored = stored.bfloat16()
                tensors[f"{key}.{names[p]}.{moment}"] = stored
    metadata = {
        "preset": json.dumps(dataclasses.asdict(preset)),
        "progress": json.dumps(dataclasses.asdict(progress)),
        "extra": json.dumps(extra or {}),
    }
    parts = split_by_size(tensors, largest)
    old = set(folder.glob("state*.safetensors"))
    new = [folder / name for name in part_names(progress.step, len(parts))]
    try:
        for path, part in zip(new, parts, strict=True):
            save_tensors(path, part, metadata)
    except MaskobanError:
        for path in set(new) - old:
            path.unlink(missing_ok=True)
        raise
    for path in old - set(new):
        path.unlink()


def split_by_size(tensors: dict[str, Tensor], largest: int | None) -> list[dict[str, Tensor]]:
    """The tensors in order, with a new part whenever the next would not fit."""
    parts: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        bytes_ = tensor.numel() * tensor.element_size()
        if largest is not None and parts[-1] and size + bytes_ > largest:
            parts.append({})
            size = 0
        parts[-1][name] = tensor
        size += bytes_
    return parts


def load_checkpoint(place: Path) -> tuple[dict[str, Tensor], Preset, Progress, dict[str, Any]]:
    """The tensors of a checkpoint folder or weights file, its preset, its progress, and the trainer's own state."""
    tensors, metadata = load_folder(place)
    try:
        preset = load_preset(json.loads(metadata["preset"]))
        progress = Progress(**json.loads(metadata["progress"]))
        extra = json.loads(metadata.get("extra", "{}"))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise MaskobanError(f"{place}: not a maskoban checkpoint: {error}") from error
    return tensors, preset, progress, extra


def named_folder(model: str | Path) -> Path:
    """The folder of a shipped model by its bare name, or the path itself.

    >>> named_folder("best").parent.name, named_folder("./best").parent.name
    ('weights', '')
    """
    return shipped_folder(model) or Path(model)


def restore_optimizer(
    key: str, optimizer: torch.optim.Optimizer, network: nn.Module, tensors: dict[str, Tensor]
) -> None:
    """Restore an optimiser's moments in fp32."""
    for name, p in network.named_parameters():
        start = f"{key}.{name}."
        for full, value in tensors.items():
            if full.startswith(start):
                on_device = value.ndim > 0 or optimizer.defaults.get("capturable", False)
                optimizer.state[p][full.removeprefix(start)] = value.float().to(
                    p.device if on_device else "cpu"
                )
