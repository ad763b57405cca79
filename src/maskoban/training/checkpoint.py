"""Training state on disk: everything an interrupted run needs to go on as if nothing had happened.

A checkpoint is one safetensors file, or several when a largest size is asked for: ``state.safetensors`` or
``state-1-of-3.safetensors`` and so on. Names inside: ``net.*``, ``ema.*``, and ``<optimiser>.<parameter>.<moment>``. The
metadata of every file holds the preset, the step and the seconds trained.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.network import Network, build_network
from maskoban.diffusion.tensorfile import load_folder, part_name, save_tensors
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
    """Write the whole state, atomically; ``compact`` keeps moments in bf16, ``largest`` splits by bytes."""
    tensors: dict[str, Tensor] = {f"net.{name}": p for name, p in network.state_dict().items()}
    for name, value in (ema or {}).items():
        tensors[f"ema.{name}"] = value
    names = {p: name for name, p in network.named_parameters()}
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
    for old in folder.glob("state*.safetensors"):
        if len(parts) > 1 or old.name != "state.safetensors":
            old.unlink()
    for i, part in enumerate(parts):
        save_tensors(folder / part_name(i, len(parts)), part, metadata)


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


def load_checkpoint(place: Path) -> tuple[dict[str, Tensor], Preset, Progress, dict[str, object]]:
    """All tensors of a checkpoint folder (or of one weights file), its preset and how far it is."""
    tensors, metadata = load_folder(place)
    try:
        settings = json.loads(metadata["preset"])
        settings["betas"] = tuple(settings["betas"])
        preset = Preset(**settings)
        progress = Progress(**json.loads(metadata["progress"]))
        extra = json.loads(metadata.get("extra", "{}"))
    except (KeyError, TypeError, ValueError) as error:
        raise MaskobanError(f"{place}: not a maskoban checkpoint: {error}") from error
    return tensors, preset, progress, extra


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
