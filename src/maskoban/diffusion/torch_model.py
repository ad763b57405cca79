"""Loading a model into torch: exported weights or the checkpoint of a run, on any device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import torch

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.critic_network import load_critic
from maskoban.diffusion.network import Network, build_network, restore_network
from maskoban.diffusion.schedule import Schedule
from maskoban.diffusion.torch_critic import TorchCritic
from maskoban.diffusion.torch_denoiser import TorchDenoiser
from maskoban.diffusion.weight_files import load_folder


def load_torch(folder: Path, device: str) -> tuple[TorchDenoiser, dict[str, Any]]:
    """A denoiser on ``device``, in bf16 on CUDA and fp32 elsewhere, and the facts about it."""
    network, settings, facts = _network(folder, device)
    on_cuda = device.startswith("cuda")
    batch, schedule = 2048 if on_cuda else 64, settings.get("schedule", "linear")
    denoiser = TorchDenoiser(network, settings["diffusion_steps"], batch, compiled=on_cuda, schedule=schedule)
    return denoiser, facts


def load_torch_critic(folder: Path, device: str) -> TorchCritic:
    """The critic beside the model in ``folder``, on ``device`` and in the precision of :func:`load_torch`."""
    base, _, _ = _network(folder, device)
    critic, _ = load_critic(base, folder / "critic.safetensors")
    on_cuda = device.startswith("cuda")
    return TorchCritic(critic, 512 if on_cuda else 64, compiled=on_cuda)


def _network(folder: Path, device: str) -> tuple[Network, dict[str, Any], dict[str, Any]]:
    """The network of this folder on ``device``, the settings of its run, and the facts about it."""
    tensors, metadata = load_folder(folder)
    try:
        settings = json.loads(metadata["preset"])
        network = build_network(settings)
        facts = json.loads(metadata["facts"]) if "facts" in metadata else {"name": settings["name"]}
        known = isinstance(facts, dict) and settings.get("schedule", "linear") in get_args(Schedule)
        if not known or type(settings["diffusion_steps"]) is not int or settings["diffusion_steps"] < 1:
            raise ValueError("its settings are not those of a run")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # RuntimeError: too large, too deep
        raise MaskobanError(f"{folder}: not a model of maskoban's: {error}") from error
    try:
        restore_network(network, tensors)
    except MaskobanError as error:
        raise MaskobanError(f"{folder}: {error}") from None
    try:
        network = network.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        raise MaskobanError(f"no device {device!r} here that torch can use") from error
    if device.startswith("cuda"):
        network.compute_in(torch.bfloat16)
    return network, settings, facts
