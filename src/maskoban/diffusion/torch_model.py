"""Loading a model into torch: exported weights or the checkpoint of a run, on any device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.critic_network import CriticNetwork
from maskoban.diffusion.network import InteriorNetwork, Network, build_network, load_weights, restore_network
from maskoban.diffusion.tensorfile import load_folder, load_tensors
from maskoban.diffusion.torch_critic import TorchCritic
from maskoban.diffusion.torch_denoiser import TorchDenoiser


def load_torch(folder: Path, device: str) -> tuple[TorchDenoiser, dict[str, Any]]:
    """A denoiser on ``device``, in bf16 on CUDA and fp32 elsewhere, and the facts about it."""
    network, metadata = _network(folder, device)
    settings = json.loads(metadata["preset"])
    facts = json.loads(metadata["facts"]) if "facts" in metadata else {"name": settings["name"]}
    on_cuda = device.startswith("cuda")
    return TorchDenoiser(
        network, settings["diffusion_steps"], 2048 if on_cuda else 64, compiled=on_cuda
    ), facts


def load_torch_critic(folder: Path, device: str) -> TorchCritic:
    """The critic beside the model in ``folder``, on ``device`` and in the precision of :func:`load_torch`."""
    base, _ = _network(folder, device)
    if not isinstance(base, InteriorNetwork):
        raise MaskobanError(f"{folder}: a critic belongs to an interior network, and this is the paper's")
    file = folder / "critic.safetensors"
    added, _ = load_tensors(file)
    on_cuda = device.startswith("cuda")
    try:
        critic = CriticNetwork(base, rank=added["narrow.qkv"].shape[1])
        load_weights(critic, {f"base.{name}": value for name, value in base.state_dict().items()} | added, "")
    except (KeyError, IndexError, MaskobanError) as error:
        raise MaskobanError(f"{file}: not a critic of this model: {error}") from error
    return TorchCritic(critic.to(device), 512 if on_cuda else 64, compiled=on_cuda)


def _network(folder: Path, device: str) -> tuple[Network, dict[str, str]]:
    """The network of this folder on ``device``, and what is told about it."""
    tensors, metadata = load_folder(folder)
    try:
        network = build_network(json.loads(metadata["preset"]))
    except (KeyError, TypeError, ValueError) as error:
        raise MaskobanError(f"{folder}: not a model of maskoban's: {error}") from error
    restore_network(network, tensors)
    try:
        network = network.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        raise MaskobanError(f"no device {device!r} here that torch can use") from error
    if device.startswith("cuda"):
        network.compute_in(torch.bfloat16)
    return network, metadata
