"""Loading a model into torch: exported weights or the checkpoint of a run, on any device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.torch_denoiser import TorchDenoiser


def load_torch(folder: Path, device: str) -> tuple[TorchDenoiser, dict[str, Any]]:
    """A denoiser on ``device``, and the facts about it. Half the weights' width, full-width draws."""
    # The network's shape is the run's preset, which lives with training; nothing else here needs that folder.
    from maskoban.training.checkpoint import build_network, load_checkpoint, restore_network

    exported = folder / "model.safetensors"
    tensors, preset, progress, _ = load_checkpoint(exported if exported.is_file() else folder)
    network = build_network(preset)
    prefix = "ema." if any(name.startswith("ema.") for name in tensors) else "net."
    with torch.no_grad():
        restore_network(network, tensors, prefix)
    try:
        network = network.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        raise MaskobanError(f"no device {device!r} here: {str(error).splitlines()[0]}") from error
    on_cuda = network.token.weight.is_cuda
    if on_cuda:
        network.compute_in(torch.bfloat16)
    facts = {"name": preset.name, "training_steps": progress.step, "preset": json.loads(json.dumps(preset.__dict__))}
    return TorchDenoiser(network, preset.diffusion_steps, batch=2048 if on_cuda else 64, compiled=on_cuda), facts
