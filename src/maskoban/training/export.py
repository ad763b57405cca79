"""Exporting: a trained run as a model that needs no torch.

``model.safetensors`` holds the weights once, in fp16, or the large matrices in int8: half the size, with a little more
rounding. ``model.onnx`` is a small graph that names that file as its external data and converts each tensor to fp32
when it is loaded, so the weights are stored once. ``model.int8.onnx`` is the same with its large products in int8.

A model may have a critic: ``critic.safetensors`` holds the weights it adds, large matrices in int8, and ``critic.onnx``
is a graph over both files.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskoban._util.files import file_errors
from maskoban._util.progress import OnProgress
from maskoban._util.signals import defer_interrupt
from maskoban.boards.tiles import MASK, Tokens
from maskoban.diffusion.card import Card
from maskoban.diffusion.conditions import MOST_SIDE, ConditionalNet, Conditioned, Conditions
from maskoban.diffusion.onnx import OnnxCritic, OnnxDenoiser
from maskoban.errors import MaskobanError
from maskoban.nn.conditional import ConditionalNetwork, TorchConditional
from maskoban.nn.critic import CriticNetwork, cut_rank, fingerprint, load_critic
from maskoban.nn.networks import InteriorNetwork, Network, build_network
from maskoban.nn.runtime import TorchConditionalCritic, TorchDenoiser
from maskoban.nn.weight_files import (
    dequantize,
    half,
    load_weights,
    quantize,
    read_header,
    restore_network,
    save_tensors,
)
from maskoban.training.checkpoint import Progress, load_checkpoint, named_folder
from maskoban.training.critic import FILE
from maskoban.training.onnx_graphs import critic_graph, has_int8, network_graph
from maskoban.training.pruning import cut, idle_units, leave_out, units_kept

#: The largest difference between the outputs of an exported graph and of torch on the same weights.
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
    passes: int | None = None,
    critic_rank: int | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Write ``model.safetensors``, ``model.onnx`` and ``model.int8.onnx`` into ``out``; returns the metadata.

    ``run``: the folder of a run, or a model that was exported before; then its name, sweeps, bits and critic stay where
    nothing else is given.
    ``polish``: Gibbs sweeps that the model samples with by default.
    ``critic``: the folder of a critic's run, or a model that has one. Samples are then accepted with probability
    min(1, exp(score) / ``cutoff``); the default cutoff is that of the folder, or 1.
    ``critic_rank``: cut the LoRA matrices of the critic to this rank, which makes it smaller.
    ``bits``: of a stored weight, 8 or 16.
    ``levels``: boards to prune with; hidden units that never open for them are left out.
    ``passes``: how many times a looped network runs its blocks; as in training by default.
    The fp32 graphs are compared with torch.

    >>> export(Path("runs/best"), Path("best"), polish=1)["parameters"]  # doctest: +SKIP
    9457408
    """
    if cutoff is not None and not 0 < cutoff < math.inf:
        raise MaskobanError(f"the critic's cutoff: expected a number above 0, got {cutoff:g}")
    run, critic = named_folder(run), None if critic is None else named_folder(critic)
    if any(out.glob("state*.safetensors")):
        raise MaskobanError(f"{out}: is the folder of a training run; expected another one for the model")
    if (out / FILE).is_file() and not (out / "model.safetensors").is_file():
        raise MaskobanError(f"{out}: is the folder of a critic's run; expected another one for the model")
    tensors, preset, trained, extra = load_checkpoint(run)
    before = Progress(**extra.get("before", {}))
    trained = Progress(trained.step + before.step, trained.seconds + before.seconds)
    known = _facts(run)
    home = run if run.is_dir() else run.parent
    if critic is None and known.get("critic") is not None and (home / FILE).is_file():
        critic = home
    if critic is None and cutoff is not None:
        raise MaskobanError("the critic's cutoff: expected a critic too")
    if critic_rank is not None and (critic is None or critic_rank < 1):
        raise MaskobanError(
            f"the critic's rank: expected a critic and a rank of at least 1, got {critic_rank}"
        )
    if critic is not None and cutoff is None:
        cutoff = _facts(critic).get("critic", 1.0)
    if passes is not None and preset.passes == 1 and passes > 1:
        raise MaskobanError(f"passes: expected 1 for a network that is not looped, got {passes}")
    preset = dataclasses.replace(preset, passes=passes or preset.passes, least_passes=None)
    network = build_network(dataclasses.asdict(preset))
    restore_network(network, tensors)
    network.eval()
    card = Card(
        name=name or known.get("name", preset.name),
        height=network.height,
        width=network.width,
        margin=network.margin,
        diffusion_steps=preset.diffusion_steps,
        timed=network.timed,
        parameters=sum(p.numel() for p in network.parameters()),
        training_steps=trained.step,
        training_minutes=round(trained.seconds / 60, 2),
        polish=known.get("polish", 0) if polish is None else polish,
        bits=known.get("bits", 16) if bits is None else bits,
        schedule=preset.schedule,
        critic=cutoff,
        corpora=preset.corpora or None,
    )
    judge, critic_metadata = (None, {}) if critic is None else load_critic(network, critic / FILE)
    if judge is not None and critic_rank is not None:
        cut_rank(judge, critic_rank)
    if levels is not None:
        if not isinstance(network, InteriorNetwork):
            raise MaskobanError(f"pruning: expected the interior network, got {preset.network!r}")
        leave_out(network, idle_units(network, levels, judge, on_progress), judge)
    with file_errors(out, "written"):
        out.mkdir(parents=True, exist_ok=True)
    stored, added = _stored(network, judge, card.bits)
    load_weights(network, dequantize(stored), "net.")  # what is written is what is checked
    metadata = {
        "preset": json.dumps(dataclasses.asdict(preset)),
        "progress": json.dumps(dataclasses.asdict(trained)),
        "facts": json.dumps(card.facts()),
    }
    with _replacing(out) as fresh:
        _write_model(fresh, network, stored, metadata, card)
        if judge is not None:
            _write_critic(fresh, network, judge, added, critic_metadata, card)
    return card.facts()


def _facts(place: Path) -> dict[str, Any]:
    """The metadata of an exported model; empty for a run."""
    weights = place / "model.safetensors" if place.is_dir() else place
    if not weights.is_file():
        return {}
    facts = json.loads(read_header(weights)[0].get("__metadata__", {}).get("facts", "{}"))
    return Card.from_facts(facts).facts() if facts else {}


def _stored(
    network: Network, critic: CriticNetwork | None, bits: int
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The tensors to store of the network and of its critic: without pruned units, in fp16 or int8."""
    stored = {f"net.{key}": value for key, value in network.state_dict().items()}
    added = {} if critic is None else critic.added()
    if isinstance(network, InteriorNetwork | ConditionalNetwork):
        units = units_kept(network, critic)
        stored = cut(stored, {"net.up": 0, "net.down": 1}, units)
        added = cut(added, {"wide.up": 0, "narrow.down": 1}, units)
    stored = quantize(stored) if bits == 8 else {key: half(value) for key, value in stored.items()}
    return stored, quantize(added)


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """A folder to write and check a model in. At the end its files replace those in ``out``, all or none."""
    with file_errors(out, "written"):
        aside = tempfile.TemporaryDirectory(prefix=".export-", dir=out)
    with aside:
        fresh = Path(aside.name)
        yield fresh
        written = {file.name for file in fresh.iterdir()}
        with defer_interrupt():
            for name in written:
                os.replace(fresh / name, out / name)
            for left in {FILE, "critic.onnx", "model.int8.onnx"} - written:  # of an earlier model
                (out / left).unlink(missing_ok=True)


def _write_model(
    fresh: Path, network: Network, stored: dict[str, Tensor], metadata: dict[str, str], card: Card
) -> None:
    weights = fresh / "model.safetensors"
    save_tensors(weights, stored, metadata)
    _write(network_graph(network, weights), card, fresh / "model.onnx")
    _check(network, card.diffusion_steps, fresh / "model.onnx")
    if has_int8(network):
        _write(network_graph(network, weights, "int8"), card, fresh / "model.int8.onnx")


def _write_critic(
    fresh: Path,
    network: Network,
    critic: CriticNetwork,
    added: dict[str, Tensor],
    metadata: dict[str, str],
    card: Card,
) -> None:
    """The critic beside the model, whose weights its graph uses too."""
    base = {f"base.{key}": value for key, value in network.state_dict().items()}
    load_weights(critic, base | dequantize(added), "")
    save_tensors(fresh / FILE, added, metadata | {"model": fingerprint(network)})
    _write(critic_graph(critic, fresh / "model.safetensors", fresh / FILE), card, fresh / "critic.onnx")
    _check_critic(critic, fresh / "critic.onnx")


def _write(model: onnx.ModelProto, card: Card, path: Path) -> None:
    model.metadata_props.add(key="maskoban", value=json.dumps(card.facts()))
    with file_errors(path, "written"):
        path.write_bytes(model.SerializeToString())


def _check(network: Network, steps: int, path: Path) -> None:
    """Compare the graph with torch, at batch sizes it was not exported with."""
    rng = np.random.default_rng(0)
    if isinstance(network, ConditionalNetwork):
        nets: tuple[ConditionalNet, ...] = OnnxDenoiser(path), TorchConditional(network, steps)
        for size in _sizes(network):
            one, other = (Conditioned(net, Conditions(*size, boxes=2)) for net in nets)
            cells = np.tile(np.arange((size[0] - 2) * (size[1] - 2)), (3, 1))
            tokens = rng.integers(0, MASK + 1, cells.shape).astype(np.uint8)
            t = np.ones(3, np.int64)
            _compare(one.logits(tokens, t, cells), other.logits(tokens, t, cells), path)
        return
    for n, k in ((1, 1), (5, 1), (4, network.cells)):
        tokens = rng.integers(0, MASK + 1, (n, network.cells)).astype(np.uint8)
        t = rng.integers(1, steps + 1, n)
        cells = np.stack([rng.permutation(network.cells)[:k] for _ in range(n)])
        found = OnnxDenoiser(path).logits(tokens, t, cells)
        _compare(found, TorchDenoiser(network, steps, batch=n).logits(tokens, t, cells), path)


def _sizes(network: ConditionalNetwork) -> list[tuple[int, int]]:
    """The sizes of board that the graphs of a conditional network are compared for."""
    return [(network.height, network.width), (6, 8), (9, 5), (MOST_SIDE, MOST_SIDE)]


@torch.no_grad()
def _check_critic(critic: CriticNetwork, path: Path) -> None:
    """Compare the critic's graph with torch, on finished boards and, to cover every token, on masked ones."""
    rng, exported = np.random.default_rng(0), OnnxCritic(path)
    if isinstance(network := critic.base, ConditionalNetwork):
        net, judge = TorchConditional(network, 1), TorchConditionalCritic(critic)
        for size in _sizes(network):
            told = Conditioned(net, Conditions(*size, boxes=2))
            boards = rng.integers(0, MASK + 1, (3, (size[0] - 2) * (size[1] - 2))).astype(np.uint8)
            _compare(told.critic(exported).scores(boards), told.critic(judge).scores(boards), path)
        return
    for n, tiles in ((1, MASK), (5, MASK), (4, MASK + 1)):
        tokens = rng.integers(0, tiles, (n, critic.base.cells)).astype(np.uint8)
        _compare(exported.scores(tokens), critic(torch.from_numpy(tokens).long()).numpy(), path)


def _compare(found: NDArray[np.float32], expected: NDArray[np.float32], path: Path) -> None:
    off = float(np.abs(found - expected).max())
    if not off <= TOLERANCE:
        raise MaskobanError(f"{path}: the exported graph differs from torch by {off:.2g}")
