"""Export: a trained run as the pair of files that ships.

``model.safetensors`` holds the weights once, in fp16. ``model.onnx`` is a small graph that names that file as its
external data, tensor by tensor, and widens each to fp32 when it is loaded: ONNX Runtime computes in fp32
and nobody stores the weights twice. ``model.int8.onnx`` is the same with its products in int8. torch reads the
same safetensors file.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK
from maskoban.diffusion.network import Network, build_network, restore_network
from maskoban.diffusion.onnx_denoiser import OnnxDenoiser
from maskoban.diffusion.tensorfile import read_header, save_tensors
from maskoban.diffusion.torch_denoiser import TorchDenoiser
from maskoban.training.checkpoint import load_checkpoint

OPSET = 20

#: How far the exported graph's logits may lie from torch's on the same fp16 weights.
TOLERANCE = 1e-3


def export(run: Path, out: Path, name: str | None = None) -> dict[str, Any]:
    """Write ``model.safetensors``, ``model.onnx`` and ``model.int8.onnx`` into ``out``.

    The fp32 graph is checked against torch before this returns; the facts that were written are returned.
    """
    tensors, preset, progress, _ = load_checkpoint(run)
    network = build_network(dataclasses.asdict(preset))
    restore_network(network, tensors)
    with torch.no_grad():
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
    graph = _with_facts(_pointing_at(_graph(network), weights), facts)
    _write(graph, out / "model.onnx")
    _check(network, preset.diffusion_steps, out / "model.onnx")
    _write(_in_int8(graph), out / "model.int8.onnx")
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
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # the exporter talks about its own internals
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
    model.graph.initializer.extend(_without_copies(kept, nodes))
    model.graph.node.extend(casts + nodes)
    return model


def _without_copies(tensors: list[TensorProto], nodes: list[onnx.NodeProto]) -> list[TensorProto]:
    """One of each constant: the exporter repeats the rotary table in every block."""
    first: dict[tuple[Any, ...], str] = {}
    renamed: dict[str, str] = {}
    kept = []
    for tensor in tensors:
        key = (tensor.data_type, tuple(tensor.dims), tensor.raw_data)
        if tensor.data_location != TensorProto.EXTERNAL and tensor.raw_data and key in first:
            renamed[tensor.name] = first[key]
            continue
        first.setdefault(key, tensor.name)
        kept.append(tensor)
    for node in nodes:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
    return kept


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


def _in_int8(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with every product of an activation and a weight taken in int8.

    A row x of activations becomes the whole numbers x / s + 128 with s = max|x| / 127 (x / s with s = max x / 255
    where x is a square), a column of weights likewise with its own scale; the integer product is exact, so a board's
    logits do not depend on the batch it is in. The weights are still the fp16 ones beside the graph: quantising them is
    part of the graph, done once when it is loaded.
    """
    fixed = {tensor.name for tensor in model.graph.initializer}
    squares = {n.output[0] for n in model.graph.node if n.op_type == "Mul" and n.input[0] == n.input[1]}
    constants: dict[str, Any] = {
        "q.half": np.float32(0.5), "q.127": np.float32(127), "q.255": np.float32(255), "q.128.5": np.float32(128.5),
        "q.tiny": np.float32(1e-12), "q.one": np.float32(1), "q.zero": np.uint8(0), "q.128": np.uint8(128),
        "q.last": np.array([-1], np.int64), "q.first": np.array([0], np.int64),
    }  # fmt: skip
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if all(name in fixed for name in node.input if name):
            fixed.update(node.output)
        if node.op_type != "MatMul" or node.input[1] not in fixed or node.input[0] in fixed:
            nodes.append(node)
            continue
        x, w, y = node.input[0], node.input[1], node.output[0]

        def add(op: str, inputs: list[str], output: str, y: str = y, **attributes: Any) -> str:
            nodes.append(helper.make_node(op, inputs, [f"{y}.{output}"], **attributes))
            return f"{y}.{output}"

        # Weights, folded away when the graph is loaded.
        largest = add("ReduceMax", [add("Abs", [w], "w.abs"), "q.first"], "w.max", keepdims=0)
        w_scale = add("Max", [add("Div", [largest, "q.127"], "w.div"), "q.tiny"], "w.scale")
        whole = add("Round", [add("Div", [w, w_scale], "w.over")], "w.round")
        w_int = add("Cast", [whole], "w.int", to=TensorProto.INT8)
        # Activations: a cast to whole numbers cuts off, so half is added first.
        square = x in squares
        size = x if square else add("Abs", [x], "x.abs")
        largest = add("Max", [add("ReduceMax", [size, "q.last"], "x.max", keepdims=1), "q.tiny"], "x.most")
        per_unit = add("Div", ["q.255" if square else "q.127", largest], "x.per")
        raised = add("Add", [add("Mul", [x, per_unit], "x.times"), "q.half" if square else "q.128.5"], "x.up")
        x_int = add("Cast", [raised], "x.int", to=TensorProto.UINT8)
        zero = "q.zero" if square else "q.128"
        product = add(
            "MatMulIntegerToFloat", [x_int, w_int, "q.one", w_scale, zero], "product", domain="com.microsoft"
        )
        nodes.append(helper.make_node("Div", [product, per_unit], [y]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items())
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


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
