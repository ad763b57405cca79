"""Export: a trained run as the pair of files that ships.

``model.safetensors`` holds the weights once, in fp16, or the large matrices in 8 bits: half the size, and rounded a
little more. ``model.onnx`` is a small graph that names that file as its external data, tensor by tensor, and widens
each to fp32 when it is loaded: ONNX Runtime computes in fp32 and nobody stores the weights twice. ``model.int8.onnx``
is the same with its large products in int8. torch reads the same safetensors file.

A model may have a critic: ``critic.safetensors`` holds what it adds to the weights, large matrices always in 8
bits, and ``critic.onnx`` is a graph over both files.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK, Tokens
from maskoban.boards.writing import said
from maskoban.diffusion.critic_network import CriticNetwork, fingerprint, load_critic
from maskoban.diffusion.eight_bits import in_eight_bits, widened
from maskoban.diffusion.network import (
    InteriorNetwork,
    Network,
    build_network,
    load_weights,
    restore_network,
)
from maskoban.diffusion.onnx_critic import OnnxCritic
from maskoban.diffusion.onnx_denoiser import OnnxDenoiser
from maskoban.diffusion.tensorfile import read_header, save_tensors
from maskoban.diffusion.torch_denoiser import TorchDenoiser
from maskoban.interrupting import uninterrupted
from maskoban.training.checkpoint import Progress, load_checkpoint, named_folder
from maskoban.training.critic_trainer import FILE
from maskoban.training.network_graphs import critic_graph, network_graph
from maskoban.training.presets import Preset
from maskoban.training.pruning import leave_out_idle

#: How far an exported graph's logits or scores may lie from torch's on the same weights.
TOLERANCE = 1e-3


def export(
    run: str | Path,
    out: Path,
    name: str | None = None,
    polish: int | None = None,
    critic: str | Path | None = None,
    cutoff: float | None = None,
    bits: int | None = None,
    levels: Tokens | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write ``model.safetensors``, ``model.onnx`` and ``model.int8.onnx`` into ``out``.

    ``run`` may also be a model that was exported before, a shipped one by its name: what it is called, its sweeps, bits
    and critic stay where nothing else is said.
    ``bits`` of a weight are 16, or 8. ``polish`` is how many sweeps the model draws with where nothing else is asked.
    ``critic`` is the folder of a critic's run, or of a model that has one: ``critic.safetensors`` and ``critic.onnx``
    are written too, and drawings are kept with probability min(1, exp(score) / ``cutoff``): that folder's, or 1.
    ``levels`` are boards to look at: hidden units that never open for them are left out. ``progress`` is told how many
    of them were looked at, and of how many.
    The fp32 graphs are checked against torch before this returns; the facts that were written are returned.

    >>> export(Path("runs/best"), Path("best"), polish=1)["parameters"]  # doctest: +SKIP
    9457408
    """
    if cutoff is not None and not 0 < cutoff < math.inf:
        raise MaskobanError(f"the critic's cutoff must be a number above 0, not {cutoff:g}")
    run, critic = named_folder(run), None if critic is None else named_folder(critic)
    if any(out.glob("state*.safetensors")):
        raise MaskobanError(f"{out}: the folder of a training run; a model needs one of its own")
    if (out / FILE).is_file() and not (out / "model.safetensors").is_file():
        raise MaskobanError(f"{out}: the folder of a critic's run; a model needs one of its own")
    tensors, preset, trained, extra = load_checkpoint(run)
    before = Progress(**extra.get("before", {}))
    trained = Progress(trained.step + before.step, trained.seconds + before.seconds)
    known = _known(run)
    home = run if run.is_dir() else run.parent
    if critic is None and known.get("critic") is not None and (home / FILE).is_file():
        critic = home
    if cutoff is not None and critic is None:
        raise MaskobanError("a critic's cutoff was given, but there is no critic")
    bits = known.get("bits", 16) if bits is None else bits
    if bits not in (8, 16):
        raise MaskobanError(f"weights are kept in 8 or 16 bits, not {bits}")
    network = build_network(dataclasses.asdict(preset))
    restore_network(network, tensors)
    network.eval()
    judge, told = (None, {}) if critic is None else load_critic(network, critic / FILE)
    if levels is not None:
        leave_out_idle(network, levels, judge, progress)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MaskobanError(f"{out}: cannot be made a folder: {error.strerror}") from None
    kept, added = _kept(network, judge, bits)
    load_weights(network, widened(kept), "net.")  # what ships is what is checked
    polish = known.get("polish", 0) if polish is None else polish
    if critic is not None and cutoff is None:
        cutoff = _known(critic).get("critic", 1.0)
    facts = _facts(preset, trained, network, name or known.get("name", preset.name), polish, bits, cutoff)
    settings = {
        "preset": json.dumps(dataclasses.asdict(preset)),
        "progress": json.dumps(dataclasses.asdict(trained)),
        "facts": json.dumps(facts),
    }
    with _aside(out) as fresh:
        _write_model(fresh, network, kept, settings, facts)
        if judge is not None:
            _write_critic(fresh, network, judge, added, told, facts)
    return facts


def _kept(
    network: Network, critic: CriticNetwork | None, bits: int
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What is kept of the network, and of what its critic adds: no units without weights, and in few bits."""
    kept = {f"net.{key}": value for key, value in network.state_dict().items()}
    added = {} if critic is None else critic.added()
    if isinstance(network, InteriorNetwork):
        units = _units(network, critic)
        kept = _cut(kept, {"net.up": 0, "net.down": 1}, units)
        added = _cut(added, {"wide.up": 0, "narrow.down": 1}, units)
    kept = in_eight_bits(kept) if bits == 8 else {key: value.half() for key, value in kept.items()}
    return kept, in_eight_bits(added)


def _facts(
    preset: Preset,
    trained: Progress,
    network: Network,
    name: str,
    polish: int,
    bits: int,
    cutoff: float | None,
) -> dict[str, Any]:
    """What a model says of itself, in its weights and in its graphs."""
    facts: dict[str, Any] = {
        "name": name,
        "height": preset.height,
        "width": preset.width,
        "margin": network.margin,
        "diffusion_steps": preset.diffusion_steps,
        "timed": network.timed,
        "parameters": sum(p.numel() for p in network.parameters()),
        "training_steps": trained.step,
        "training_minutes": round(trained.seconds / 60, 2),
        "polish": polish,
        "bits": bits,
    }
    if preset.schedule != "linear":
        facts["schedule"] = preset.schedule
    if cutoff is not None:
        facts["critic"] = cutoff
    return facts


@contextmanager
def _aside(out: Path) -> Iterator[Path]:
    """A folder to write and check a model in: what ``out`` has is replaced by one that is whole, or not at all."""
    with said(out, "written"):
        aside = tempfile.TemporaryDirectory(prefix=".export-", dir=out)
    with aside:
        fresh = Path(aside.name)
        yield fresh
        written = {file.name for file in fresh.iterdir()}
        with uninterrupted():
            for name in written:
                os.replace(fresh / name, out / name)
            for left in {FILE, "critic.onnx"} - written:  # of a model that was here before
                (out / left).unlink(missing_ok=True)


def _write_model(
    fresh: Path, network: Network, kept: dict[str, Tensor], settings: dict[str, str], facts: dict[str, Any]
) -> None:
    weights = fresh / "model.safetensors"
    save_tensors(weights, kept, settings)
    _write(_with_facts(network_graph(network, weights, "fp32"), facts), fresh / "model.onnx")
    _check(network, facts["diffusion_steps"], fresh / "model.onnx")
    _write(_with_facts(network_graph(network, weights, "int8"), facts), fresh / "model.int8.onnx")


def _write_critic(
    fresh: Path,
    network: Network,
    critic: CriticNetwork,
    added: dict[str, Tensor],
    told: dict[str, str],
    facts: dict[str, Any],
) -> None:
    """Beside the model, over whose weights its graph is."""
    base = {f"base.{key}": value for key, value in network.state_dict().items()}
    load_weights(critic, base | widened(added), "")
    save_tensors(fresh / FILE, added, told | {"model": fingerprint(network)})
    graph = critic_graph(critic, fresh / "model.safetensors", fresh / FILE)
    _write(_with_facts(graph, facts), fresh / "critic.onnx")
    _check_critic(critic, fresh / "critic.onnx")


def _units(network: InteriorNetwork, critic: CriticNetwork | None) -> list[int]:
    """How many hidden units of each block are to be kept: up to the last with weights, in sixteens."""
    there = network.up.ne(0).any(-1)
    if critic is not None:
        there = there | critic.wide["up"].ne(0).any(-1)
    last = (there * torch.arange(1, there.shape[1] + 1)).amax(1)
    return [min(-(-max(n, 1) // 16) * 16, there.shape[1]) for n in last.tolist()]


def _cut(tensors: dict[str, Tensor], axes: dict[str, int], units: list[int]) -> dict[str, Tensor]:
    """Stacks block by block, each with so many units along its axis; as they are where that is all of them."""
    cut: dict[str, Tensor] = {}
    for name, stack in tensors.items():
        axis = axes.get(name)
        if axis is None or all(n == stack.shape[1 + axis] for n in units):
            cut[name] = stack
        else:
            cut |= {f"{name}.{i}": stack[i].narrow(axis, 0, n) for i, n in enumerate(units)}
    return cut


def _known(run: Path) -> dict[str, Any]:
    """What an exported model says of itself; nothing where it is a run."""
    weights = run / "model.safetensors" if run.is_dir() else run
    if not weights.is_file():
        return {}
    facts: dict[str, Any] = json.loads(read_header(weights)[0].get("__metadata__", {}).get("facts", "{}"))
    return facts


def _with_facts(model: onnx.ModelProto, facts: dict[str, Any]) -> onnx.ModelProto:
    model.metadata_props.add(key="maskoban", value=json.dumps(facts))
    return model


def _write(model: onnx.ModelProto, path: Path) -> None:
    with said(path, "written"):
        path.write_bytes(model.SerializeToString())


def _check(network: Network, steps: int, path: Path) -> None:
    """The exported graph must say what torch says, at batch sizes it was not exported with."""
    rng = np.random.default_rng(0)
    for n, k in ((1, 1), (5, 1), (4, network.cells)):
        tokens = rng.integers(0, MASK + 1, (n, network.cells)).astype(np.uint8)
        t = rng.integers(1, steps + 1, n)
        cells = np.stack([rng.permutation(network.cells)[:k] for _ in range(n)])
        ours = OnnxDenoiser(path).logits(tokens, t, cells)
        theirs = TorchDenoiser(network, steps, batch=n).logits(tokens, t, cells)
        _compare(ours, theirs, path)


@torch.no_grad()
def _check_critic(critic: CriticNetwork, path: Path) -> None:
    """The exported critic must say what torch says, of finished boards and, to see every token, of masked ones."""
    rng, exported = np.random.default_rng(0), OnnxCritic(path)
    for n, tiles in ((1, MASK), (5, MASK), (4, MASK + 1)):
        tokens = rng.integers(0, tiles, (n, critic.base.cells)).astype(np.uint8)
        theirs = critic(torch.from_numpy(tokens).long()).numpy()
        _compare(exported.scores(tokens), theirs, path)


def _compare(ours: NDArray[np.float32], theirs: NDArray[np.float32], path: Path) -> None:
    off = float(np.abs(ours - theirs).max())
    if not off <= TOLERANCE:
        raise MaskobanError(f"{path}: the exported graph differs from torch by {off:.2g}")
