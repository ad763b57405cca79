"""Loading a model into torch: exported weights or the checkpoint of a run, on any device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.network import build_network, restore_network
from maskoban.diffusion.tensorfile import load_folder
from maskoban.diffusion.torch_denoiser import TorchDenoiser


def load_torch(folder: Path, device: str) -> tuple[TorchDenoiser, dict[str, Any]]:
    """A denoiser on ``device``, in bf16 on CUDA and fp32 elsewhere, and the facts about it."""
    tensors, metadata = load_folder(folder)
    try:
        settings = json.loads(metadata["preset"])
        network = build_network(settings)
    except (KeyError, TypeError, ValueError) as error:
        raise MaskobanError(f"{folder}: not a model of maskoban's: {error}") from error
    restore_network(network, tensors)
    try:
        network = network.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        raise MaskobanError(f"no device {device!r} here that torch can use") from error
    on_cuda = device.startswith("cuda")
    if on_cuda:
        network.compute_in(torch.bfloat16)
    facts = json.loads(metadata["facts"]) if "facts" in metadata else {"name": settings["name"]}
    return TorchDenoiser(
        network, settings["diffusion_steps"], 2048 if on_cuda else 64, compiled=on_cuda
    ), facts
