"""Export: a trained run as the pair of files that ships.

``model.safetensors`` holds the weights once, in fp16. ``model.onnx`` is a small graph that names that file as its
external data, tensor by tensor, and widens each to fp32 when it is loaded: ONNX Runtime computes in fp32
and nobody stores the weights twice. torch reads the same safetensors file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK
from maskoban.diffusion.network import Network
from maskoban.diffusion.onnx_denoiser import OnnxDenoiser
from maskoban.diffusion.torch_denoiser import TorchDenoiser
from maskoban.training.checkpoint import build_network, load_checkpoint, restore_network
from maskoban.training.tensorfile import read_header, save_tensors

OPSET = 20

#: How far the exported graph's logits may lie from torch's on the same fp16 weights.
TOLERANCE = 1e-3


def export(run: Path, out: Path, name: str | None = None, int8: bool = False) -> dict[str, Any]:
    """Write ``model.safetensors`` and ``model.onnx`` (with ``int8``, also ``model.int8.onnx``) into ``out``.

    The graph is checked against torch before this returns; the facts that were written are returned.
    """
    tensors, preset, progress, _ = load_checkpoint(run)
    network = build_network(preset)
    prefix = "ema." if any(key.startswith("ema.") for key in tensors) else "net."
    with torch.no_grad():
        restore_network(network, tensors, prefix)
        for p in network.parameters():
            p.copy_(p.half().float())  # what ships is what is checked
    network.eval()
    facts: dict[str, Any] = {
        "name": name or preset.name,
        "height": preset.height,
        "width": preset.width,
        "margin": network.margin,
        "diffusion_steps": preset.diffusion_steps,
        "timed": network.timed,
        "parameters": sum(p.numel() for p in network.parameters()),
        "training_steps": progress.step,
        "training_minutes": round(progress.seconds / 60, 2),
    }
    out.mkdir(parents=True, exist_ok=True)
    weights = out / "model.safetensors"
    halves = {f"net.{key}": value.half() for key, value in network.state_dict().items()}
    settings = {
        "preset": json.dumps(dataclasses.asdict(preset)),
        "progress": json.dumps(dataclasses.asdict(progress)),
        "facts": json.dumps(facts),
    }
    save_tensors(weights, halves, settings)
    graph = _graph(network)
    plain = _with_facts(onnx.ModelProto.FromString(graph.SerializeToString()), facts)
    _write(_with_facts(_pointing_at(graph, weights), facts), out / "model.onnx")
    _check(network, preset.diffusion_steps, out / "model.onnx")
    if int8:
        _write_int8(plain, out / "model.int8.onnx")
    return facts


def _graph(network: Network) -> onnx.ModelProto:
    """The network as ONNX, weights inside, with free numbers of boards and of cells asked for."""
    boards, cells = torch.export.Dim("boards", min=1, max=65536), torch.export.Dim("cells", min=1, max=4096)
    tokens = torch.full((3, network.cells), MASK, dtype=torch.int64)
    where = torch.zeros((3, 2), dtype=torch.int64)
    t = torch.ones(3, dtype=torch.int64) if network.timed else None
    shapes: dict[str, Any] = {
        "tokens": {0: boards},
        "t": {0: boards} if network.timed else None,
        "cells": {0: boards, 1: cells},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's talk about its own internals
        program = torch.onnx.export(
            network, (tokens, t, where), dynamo=True, opset_version=OPSET, dynamic_shapes=shapes,
            input_names=["tokens", "t", "cells"] if network.timed else ["tokens", "cells"],
            output_names=["logits"], verbose=False,
        )  # fmt: skip
    assert program is not None
    program.optimize()
    model: onnx.ModelProto = program.model_proto
    for node in model.graph.node:  # where each line of Python was: nobody needs it at run time
        del node.metadata_props[:]
        node.doc_string = ""
    del model.graph.value_info[:]
    return model


def _pointing_at(model: onnx.ModelProto, weights: Path) -> onnx.ModelProto:
    """The graph with each weight replaced by (fp16 bytes in the safetensors file) -> Cast -> fp32."""
    header, start = read_header(weights)
    kept, casts = [], []
    for tensor in model.graph.initializer:
        entry = header.get(f"net.{tensor.name}")
        if entry is None or tensor.data_type != TensorProto.FLOAT:
            kept.append(tensor)
            continue
        begin, end = entry["data_offsets"]
        half = TensorProto(name=tensor.name + ".half", data_type=TensorProto.FLOAT16, dims=entry["shape"])
        half.data_location = TensorProto.EXTERNAL
        for key, value in (("location", weights.name), ("offset", start + begin), ("length", end - begin)):
            half.external_data.add(key=key, value=str(value))
        kept.append(half)
        casts.append(helper.make_node("Cast", [half.name], [tensor.name], to=TensorProto.FLOAT))
    nodes = list(model.graph.node)
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(kept)
    model.graph.node.extend(casts + nodes)
    return model


def _with_facts(model: onnx.ModelProto, facts: dict[str, Any]) -> onnx.ModelProto:
    del model.metadata_props[:]
    model.metadata_props.add(key="maskoban", value=json.dumps(facts))
    return model


def _write(model: onnx.ModelProto, path: Path) -> None:
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(model.SerializeToString())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise MaskobanError(f"{path}: cannot be written: {error.strerror}") from error


def _write_int8(model: onnx.ModelProto, path: Path) -> None:
    """Weights of the matrix products in int8, activations quantised on the fly: smaller and faster, a little off."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    partial = path.with_name(path.name + ".partial")
    quantize_dynamic(model, partial, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "Gemm"])
    os.replace(partial, path)


def _check(network: Network, steps: int, path: Path) -> None:
    """The exported graph must say what torch says, at batch sizes it was not exported with."""
    rng = np.random.default_rng(0)
    for n, k in ((1, 1), (5, 1), (4, network.cells)):
        tokens = rng.integers(0, MASK + 1, (n, network.cells)).astype(np.uint8)
        t = rng.integers(1, steps + 1, n)
        cells = np.stack([rng.permutation(network.cells)[:k] for _ in range(n)])
        ours = OnnxDenoiser(path).logits(tokens, t, cells)
        theirs = TorchDenoiser(network, steps, batch=n).logits(tokens, t, cells)
        off = float(np.abs(ours - theirs).max())
        if not off <= TOLERANCE:
            raise MaskobanError(f"{path}: the exported graph differs from torch by {off:.2g}")
