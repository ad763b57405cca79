"""Training state on disk: everything an interrupted run needs to go on as if nothing had happened.

A checkpoint is one safetensors file, ``state.safetensors``, or several when a largest size is asked for:
``state-5000-1-of-3.safetensors`` and so on for step 5000. Names inside: ``net.*``, ``ema.*``, and
``<optimiser>.<parameter>.<moment>``. The metadata of every file holds the preset, the step and the seconds trained.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.network import Network, build_network
from maskoban.diffusion.shipped import shipped_folder
from maskoban.diffusion.tensorfile import save_tensors
from maskoban.diffusion.weight_files import load_folder, part_names
from maskoban.training.presets import Preset


@dataclass
class Progress:
    """How far a run is."""

    step: int = 0
    seconds: float = 0.0


def new_network(preset: Preset) -> Network:
    """The preset's network, freshly initialised from the preset's seed."""
    torch.manual_seed(preset.seed)
    return build_network(dataclasses.asdict(preset))


def save_checkpoint(
    folder: Path,
    preset: Preset,
    progress: Progress,
    network: nn.Module,
    ema: dict[str, Tensor] | None,
    optimizers: dict[str, torch.optim.Optimizer],
    extra: dict[str, object] | None = None,
    compact: bool = False,
    largest: int | None = None,
) -> None:
    """Write the whole state; ``compact`` keeps moments in bf16, ``largest`` splits by bytes.

    Whatever goes wrong on the way, the folder holds a whole checkpoint: the old one goes when the new one is there.
    """
    tensors: dict[str, Tensor] = {f"net.{name}": p for name, p in network.state_dict().items()}
    for name, value in (ema or {}).items():
        tensors[f"ema.{name}"] = value
    names: dict[Tensor, str] = {p: name for name, p in network.named_parameters()}
    for key, optimizer in optimizers.items():
        for p, state in optimizer.state.items():
            for moment, value in state.items():
                kept = value if torch.is_tensor(value) else torch.tensor(float(value))
                if compact and kept.ndim > 0:
                    kept = kept.bfloat16()
                tensors[f"{key}.{names[p]}.{moment}"] = kept
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
    """Greedy: tensors in order, a new part whenever the next would not fit."""
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
    """All tensors of a checkpoint folder (or of one weights file), its preset and how far it is."""
    tensors, metadata = load_folder(place)
    try:
        settings = json.loads(metadata["preset"])
        settings["betas"] = tuple(settings["betas"])
        settings.setdefault("time_power", 1.0)  # runs from before there was a choice
        preset = Preset(**settings)
        progress = Progress(**json.loads(metadata["progress"]))
        extra = json.loads(metadata.get("extra", "{}"))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise MaskobanError(f"{place}: not a maskoban checkpoint: {error}") from error
    return tensors, preset, progress, extra


def named_folder(model: str | Path) -> Path:
    """The folder of a model in the package by its bare name, or the place itself.

    >>> named_folder("best").parent.name, named_folder("./best").parent.name
    ('weights', '')
    """
    return shipped_folder(model) or Path(model)


def restore_optimizer(
    key: str, optimizer: torch.optim.Optimizer, network: nn.Module, tensors: dict[str, Tensor]
) -> None:
    """Put back an optimiser's moments, in the dtype the optimiser keeps them in."""
    for name, p in network.named_parameters():
        start = f"{key}.{name}."
        for full, value in tensors.items():
            if full.startswith(start):
                moment = full.removeprefix(start)
                on_device = value.ndim > 0 or optimizer.defaults.get("capturable", False)
                optimizer.state[p][moment] = value.float().to(p.device if on_device else "cpu")
