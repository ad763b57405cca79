"""The networks and the critic as ONNX graphs over the weights of safetensors files.

Our networks are written by hand in ONNX Runtime's own operators: an exporter cannot know which operators exist as a
whole, nor where the scale of an int8 row cancels. Networks of others are traced by torch. ``export`` compares every
graph with torch.

With int8 products, a row x of activations becomes round(x / s) + 128 with s = max|x| / 127 (round(x / s) with
s = max x / 255 where x is not negative), and a column of weights likewise with its own scale. The integer sums are
exact, so the logits of a board do not depend on its batch. The graph stores no weights: it converts and quantizes those
of the file once, when it is loaded.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from maskoban.boards.tiles import MASK, TILES
from maskoban.diffusion.conditions import GRID, NOWHERE
from maskoban.diffusion.sampler import Precision
from maskoban.errors import MaskobanError
from maskoban.nn.conditional import CONDITIONS, ConditionalNetwork
from maskoban.nn.critic import STACKS, CriticNetwork
from maskoban.nn.networks import InteriorNetwork, Network, PaperNetwork
from maskoban.nn.weight_files import SCALE, read_header

#: The first opset with the norm, the rotation and the attention as operators, and its file format.
OPSET, FORMAT = 23, 11

#: The inputs of a conditional network beside the cells that are asked for, with their shapes.
CONDITIONAL_INPUTS: dict[str, tuple[str | int, ...]] = {
    "tokens": ("boards", "all"),
    "where": ("boards", "all"),
    "conditions": ("boards", CONDITIONS),
}

#: The types of stored tensors.
_TYPES = {"F16": TensorProto.FLOAT16, "BF16": TensorProto.BFLOAT16, "I8": TensorProto.INT8}


def network_graph(network: Network, weights: Path, precision: Precision = "fp32") -> onnx.ModelProto:
    """The network over this weights file, for any number of boards and of cells a board.

    >>> graph = network_graph(network, Path("model.safetensors"), "int8")  # doctest: +SKIP
    """
    if not has_int8(network):
        return _traced(network, weights)
    g = Graph(weights, precision)
    inputs: dict[str, tuple[str | int, ...]] = {
        "tokens": ("boards", network.cells),
        "cells": ("boards", "chosen"),
    }
    if isinstance(network, InteriorNetwork | ConditionalNetwork):
        blocks = [
            Block(*(g.weight("qkv", i, j) for j in range(3)), *(g.weight(name, i) for name in STACKS[1:]))
            for i in range(len(network.qkv))
        ]
        if isinstance(network, ConditionalNetwork):
            inputs |= CONDITIONAL_INPUTS
            x = _features(g, network, _conditional_input(g, network), blocks, "cells")
        else:
            x = _features(g, network, _interior_input(g, network, _places(g, network)), blocks, "cells")
        y = g("MatMul", x, g("Transpose", g.weight("head"), perm=[1, 0]))
    else:
        assert isinstance(network, PaperNetwork)
        inputs["t"] = ("boards",)
        y = _paper(g, network)
    y = g("Reshape", y, g("Concat", g("Shape", "cells"), g.constant([TILES]), axis=0))
    return g.finish(inputs, "logits", ("boards", "chosen", TILES), y)


def has_int8(network: Network) -> bool:
    """Whether a graph of this network can have int8 products: those written by hand can."""
    return isinstance(network, InteriorNetwork | ConditionalNetwork | PaperNetwork)


def _traced(network: Network, weights: Path) -> onnx.ModelProto:
    """The graph of a network of others, traced by torch, with its parameters replaced by those of the file."""
    k = min(3, network.cells)
    t = torch.ones(2, dtype=torch.int64) if network.timed else None
    inputs = [torch.full((2, network.cells), MASK), t, torch.arange(k).repeat(2, 1)]
    names = ["tokens", *(["t"] if network.timed else []), "cells"]
    axes = {name: {0: "boards"} for name in ("tokens", "t")}
    axes |= {name: {0: "boards", 1: "chosen"} for name in ("cells", "logits")}
    file = io.BytesIO()
    try:
        with warnings.catch_warnings():
            # The tracing exporter is deprecated; the other one needs one more package.
            warnings.simplefilter("ignore")
            torch.onnx.export(network, tuple(inputs), file, input_names=names, output_names=["logits"],  # type: ignore[arg-type]
                              dynamic_axes=axes, do_constant_folding=False, dynamo=False)  # fmt: skip
    except Exception as error:  # an exporter has many ways to fail
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MaskobanError(f"{type(network).__name__} cannot be exported to ONNX: {reason}") from error
    model = onnx.load_model_from_string(file.getvalue())
    Graph(weights, "fp32").replace_initializers(model)
    return model


def critic_graph(critic: CriticNetwork, weights: Path, added: Path) -> onnx.ModelProto:
    """The critic over the weights of its model and those it adds, for boards that are not turned.

    The matrices with their LoRA, W + B A, depend on constants alone, so they are computed once, at loading.

    >>> graph = critic_graph(critic, Path("model.safetensors"), Path("critic.safetensors"))  # doctest: +SKIP
    """
    g, n = Graph(weights, "fp32", added), critic.base

    def merged(name: str, i: int) -> str:
        lora = g("MatMul", g.weight(f"critic.wide.{name}", i), g.weight(f"critic.narrow.{name}", i))
        if name == "qkv":
            lora = g("Reshape", lora, g.constant(n.qkv[i].shape))
        return g("Add", g.weight(name, i), lora)

    def block(i: int) -> Block:
        qkv = merged("qkv", i)
        return Block(
            *(g("Gather", qkv, g.constant(j)) for j in range(3)), *(merged(name, i) for name in STACKS[1:])
        )

    inputs: dict[str, tuple[str | int, ...]] = {"tokens": ("boards", n.cells)}
    if isinstance(n, ConditionalNetwork):
        given, inputs = _conditional_input(g, n), dict(CONDITIONAL_INPUTS)
    else:
        given = _interior_input(g, n, g("Add", _places(g, n), g.weight("critic.turns", 0)))
    x = _features(g, n, given, [block(i) for i in range(len(n.qkv))])
    cells = g("Reshape", x, given.shape)
    if given.first:
        cells = g("Slice", cells, *(g.constant([i]) for i in (given.first, 1 << 30, 1)))
    mean = g("ReduceMean", cells, g.constant([1]), keepdims=0)
    y = g("ReduceSum", g("Mul", mean, g.weight("critic.head")), g.constant([1]), keepdims=0)
    return g.finish(inputs, "scores", ("boards",), g("Add", y, g.weight("critic.bias")))


class Block(NamedTuple):
    """The matrices of an interior block."""

    q: str
    k: str
    v: str
    out: str
    up: str
    down: str


def _places(g: Graph, n: InteriorNetwork) -> str:
    """The table of places, with the label of boards that are not turned."""
    return g.weight("place") if n.turns is None else g("Add", g.weight("place"), g.weight("turns", 0))


class Input(NamedTuple):
    """What enters the first block: a row for each token, behind those of the condition tokens."""

    tokens: str  # (boards, tokens, d), not yet normalised
    shape: str  # of the tokens: [-1, tokens, d]
    turns: str  # (boards, tokens): the row of the rotary table
    where: str | None = None  # (boards, cells): that of the cells, where it is not their number
    first: int = 0  # the number of condition tokens


def _interior_input(g: Graph, n: InteriorNetwork, place: str) -> Input:
    """The tokens of the interior network, with ``place`` added."""
    everywhere = g("Expand", g.constant(np.arange(n.cells)), g("Shape", "tokens"))
    tokens = g("Add", g("Gather", g.weight("token.weight"), "tokens"), place)
    return Input(tokens, g.constant([-1, n.cells, n.d]), everywhere)


def _conditional_input(g: Graph, n: ConditionalNetwork) -> Input:
    """The condition tokens and the cells. The graph is for boards that are not filled up: every token is a cell."""
    given = g("Gather", g.weight("condition"), g("Add", "conditions", g.constant(n.first.cpu())))
    row, column = g("Div", "where", g.constant(GRID)), g("Mod", "where", g.constant(GRID))
    last = [g("ReduceMax", each, g.constant([1])) for each in (row, column)]
    distances = [row, column, g("Sub", last[0], row), g("Sub", last[1], column)]
    cells = g("Gather", g.weight("token.weight"), "tokens")
    for side, distance in enumerate(distances):
        cells = g("Add", cells, g("Gather", g.weight("sides", side), distance))
    tokens = g("Concat", given, cells, axis=1)
    nowhere = g("Expand", g.constant([NOWHERE]), g("Shape", "conditions"))
    return Input(tokens, g("Shape", tokens), g("Concat", nowhere, "where", axis=1), "where", CONDITIONS)


def _features(
    g: Graph,
    n: InteriorNetwork | ConditionalNetwork,
    given: Input,
    blocks: Sequence[Block],
    chosen: str | None = None,
) -> str:
    """The input of the head, for the given cells or all.

    The passes of a looped network are unrolled, over the same weights. The scale of int8 rows is applied as late as
    possible. Queries and keys are normalised, so there it cancels; relu(s h)^2 = s^2 relu(h)^2, so there it waits
    until the rows are narrow again.
    """
    head_width, last = n.d // n.heads, n.passes * len(blocks) - 1
    rows_shape = g.constant([-1, n.d])
    # ONNX Runtime wants as many rows as there are tokens, however few places they name.
    tables = torch.nn.functional.pad(n.rotary.cpu(), (0, 0, 0, given.first))
    cos, sin = (g.constant(table, np.float32) for table in tables)

    def norm(x: str, width: int = n.d) -> str:
        return g("RMSNormalization", x, g.constant(np.ones(width), np.float32), epsilon=1e-6)

    def turned(x: str, shape: str, turns: str) -> str:
        heads = norm(g("Reshape", x, g.constant([-1, head_width])), head_width)
        return g("RotaryEmbedding", g("Reshape", heads, shape), cos, sin, turns, num_heads=n.heads)

    x = start = g("Reshape", norm(given.tokens), rows_shape)
    shape, turns = given.shape, given.turns
    for i, block in enumerate(n.passes * list(blocks)):
        if i and i % len(blocks) == 0:
            x = g("Add", x, g("Mul", start, g.weight("gain")))
        rows = g.rows(norm(x))
        k = turned(g.product(rows, block.k), given.shape, given.turns)
        v = g.scaled(g.product(rows, block.v), rows.scale)
        if i == last and chosen is not None:
            turns = g("GatherElements", given.where, chosen, axis=1) if given.where else chosen
            token = g("Add", chosen, g.constant(given.first)) if given.first else chosen
            x = _picked(g, x, token, given.shape, rows_shape)
            shape = g("Concat", g("Shape", chosen), g.constant([n.d]), axis=0)
            rows = g.rows(norm(x))
        q = turned(g.product(rows, block.q), shape, turns)
        y = g("Attention", q, k, g("Reshape", v, given.shape), q_num_heads=n.heads, kv_num_heads=n.heads)
        rows = g.rows(g("Reshape", y, rows_shape))
        x = g("Add", x, g.scaled(g.product(rows, block.out), rows.scale))
        rows = g.rows(norm(x))
        h = g.product(rows, block.up)
        if getattr(n, "unit", "squared_relu") == "gelu":
            rows = g.rows(g("Gelu", g.scaled(h, rows.scale), approximate="tanh"))
            x = g("Add", x, g.scaled(g.product(rows, block.down), rows.scale))
            continue
        h = g("Relu", h)
        squares = g.rows(g("Mul", h, h), positive=True)
        y = g.product(squares, block.down)
        x = g("Add", x, g.scaled(y, squares.scale, rows.scale, rows.scale))
    return norm(x)


def _paper(g: Graph, n: PaperNetwork) -> str:
    """The paper's encoder."""
    rows_shape, board_shape = g.constant([-1, n.d]), g.constant([-1, n.cells, n.d])

    def dense(x: str, name: str) -> str:
        return g("Gemm", x, g.weight(f"{name}.weight"), g.weight(f"{name}.bias"), transB=1)

    def linear(x: str, *weights_and_biases: tuple[str, str]) -> list[str]:
        rows = g.rows(x)
        return [g("Add", g.scaled(g.product(rows, w), rows.scale), b) for w, b in weights_and_biases]

    def norm(x: str, weight: str, bias: str) -> str:
        return g("LayerNormalization", x, weight, bias, epsilon=1e-5)

    def block_norm(x: str, i: int, j: int) -> str:
        return norm(x, g.weight("norm_weight", i, j), g.weight("norm_bias", i, j))

    frequency = g.constant(10000.0 ** (-np.arange(0, n.d, 2) / n.d), np.float32)
    angle = g("Mul", g("Unsqueeze", g("Cast", "t", to=onnx.TensorProto.FLOAT), g.constant([1])), frequency)
    waves = [g("Unsqueeze", g(wave, angle), g.constant([2])) for wave in ("Sin", "Cos")]
    time = dense(g("Reshape", g("Concat", *waves, axis=2), rows_shape), "time.0")
    time = dense(g("Mul", time, g("Sigmoid", time)), "time.2")
    rows = g("Unsqueeze", g.weight("row.weight"), g.constant([1]))
    place = g("Reshape", g("Add", rows, g.weight("column.weight")), g.constant([n.cells, n.d]))
    x = g("Add", g("Gather", g.weight("token.weight"), "tokens"), place)
    x = g("Reshape", g("Add", x, g("Unsqueeze", time, g.constant([1]))), rows_shape)
    for i in range(len(n.qkv)):
        biases = g("Reshape", g.weight("qkv_bias", i), g.constant([3, n.d]))
        qkv = [(g.weight("qkv", i, j), g("Gather", biases, g.constant(j))) for j in range(3)]
        heads = [g("Reshape", y, board_shape) for y in linear(block_norm(x, i, 0), *qkv)]
        y = g("Reshape", g("Attention", *heads, q_num_heads=n.heads, kv_num_heads=n.heads), rows_shape)
        x = g("Add", x, *linear(y, (g.weight("out", i), g.weight("out_bias", i))))
        (y,) = linear(block_norm(x, i, 1), (g.weight("up", i), g.weight("up_bias", i)))
        y = g("Relu", y) if n.activation == "relu" else g("Gelu", y, approximate="tanh")
        x = g("Add", x, *linear(y, (g.weight("down", i), g.weight("down_bias", i))))
    x = _picked(g, x, "cells", board_shape, rows_shape)
    if n.final_norm is not None:
        x = norm(x, g.weight("final_norm.weight"), g.weight("final_norm.bias"))
    return dense(x, "head")


def _picked(g: Graph, x: str, cells: str, board_shape: str, rows_shape: str) -> str:
    """The rows of the chosen cells."""
    where = g("Unsqueeze", cells, g.constant([2]))
    return g("Reshape", g("GatherND", g("Reshape", x, board_shape), where, batch_dims=1), rows_shape)


class Stored(NamedTuple):
    """Where a tensor lies in a file."""

    file: str
    dtype: str
    shape: list[int]
    begin: int
    length: int


class Rows(NamedTuple):
    """Rows of activations as inputs of a product; the product must be multiplied with ``scale``, if there is one."""

    numbers: str
    scale: str | None = None  # (rows, 1)
    zero: str = ""


class Graph:
    """A graph under construction: a call adds a node and returns the name of its output, its number.

    Tensors of the model keep their names; those of a critic's file get the prefix ``critic.``.

    >>> g = Graph(Path("model.safetensors"), "int8")  # doctest: +SKIP
    >>> g("Relu", g("Gather", g.weight("token.weight"), "tokens"))  # doctest: +SKIP
    '2'
    """

    def __init__(self, weights: Path, precision: Precision, critic: Path | None = None) -> None:
        self._int8 = precision == "int8"
        self._stored = {name.removeprefix("net."): place for name, place in _stored(weights).items()}
        if critic is not None:
            self._stored |= {f"critic.{name}": place for name, place in _stored(critic).items()}
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[TensorProto] = []
        self._constants: dict[tuple[Any, ...], str] = {}
        self._made: dict[tuple[Any, ...], str] = {}

    def __call__(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """The output of this node. The same node is there once: a looped network uses its weights in every pass."""
        key = (op, inputs, domain, repr(attributes))
        if key not in self._made:
            self._made[key] = result = str(len(self._nodes))
            self._nodes.append(helper.make_node(op, inputs, [result], domain=domain, **attributes))
        return self._made[key]

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """A constant tensor, stored once however often it is used."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = f"constant.{len(self._constants)}"
            self._tensors.append(numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def weight(self, name: str, *index: int) -> str:
        """A tensor of the weights, or the part of a stacked one at this index, converted to fp32."""
        if index and f"{name}.{index[0]}" in self._stored:  # stored block by block
            return self.weight(f"{name}.{index[0]}", *index[1:])
        file, dtype, shape, begin, length = self._stored[name]
        for size, i in zip(shape, index, strict=False):
            length //= size
            begin += i * length
        stored = TensorProto(name=".".join([name, *map(str, index)]), dims=shape[len(index) :])
        stored.data_type, stored.data_location = _TYPES[dtype], TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", begin), ("length", length)):
            stored.external_data.add(key=key, value=str(value))
        if all(tensor.name != stored.name for tensor in self._tensors):
            self._tensors.append(stored)
        wide = self("Cast", stored.name, to=TensorProto.FLOAT)
        return self("Mul", wide, self.weight(name + SCALE, *index)) if dtype == "I8" else wide

    def rows(self, x: str, positive: bool = False) -> Rows:
        """The rows of x (rows, width) in the precision of the graph; ``positive``: no value is negative."""
        if not self._int8:
            return Rows(x)
        last, levels = self.constant([-1]), 255 if positive else 127
        most = [self("ReduceMax", x, last)]
        if not positive:
            most.append(self("Neg", self("ReduceMin", x, last)))
        largest = self("Max", *most, self.constant(1e-12, np.float32))
        scale = self("Mul", largest, self.constant(1 / levels, np.float32))
        flat = self("Squeeze", scale, last)
        zero = self.constant(0 if positive else 128, np.uint8)
        zeros = self("Expand", zero, self("Shape", flat))
        whole = self("QuantizeLinear", x, flat, zeros, axis=0, domain="com.microsoft")
        return Rows(whole, scale, zero)

    def product(self, rows: Rows, weight: str) -> str:
        """rows W^T for a weight W (out, in), still to be multiplied with the rows' scale.

        An x86 CPU without VNNI adds the products of two neighbours in 16 bits, with saturation. A column's scale is
        therefore its largest sum of two neighbours / 127: rounded they sum to at most 128, and 255 * 128 fits.
        """
        if not self._int8:
            return self("MatMul", rows.numbers, self("Transpose", weight, perm=[1, 0]))
        neighbours = self("Reshape", self("Abs", weight), self.constant([0, -1, 2]))
        sums = self("ReduceSum", neighbours, self.constant([2]), keepdims=0)
        largest = self("Max", self("ReduceMax", sums, self.constant([1])), self.constant(1e-12, np.float32))
        scale = self("Mul", largest, self.constant(1 / 127, np.float32))
        whole = self("Cast", self("Round", self("Div", weight, scale)), to=TensorProto.INT8)
        return self(
            "MatMulIntegerToFloat", rows.numbers, self("Transpose", whole, perm=[1, 0]),
            self.constant(1, np.float32), self("Squeeze", scale, self.constant([1])), rows.zero,
            domain="com.microsoft",
        )  # fmt: skip

    def scaled(self, y: str, *scales: str | None) -> str:
        """y (rows, width) times every scale (rows, 1) that is not None, in one pass over y."""
        there = [scale for scale in scales if scale is not None]
        return self("Mul", y, reduce(lambda a, b: self("Mul", a, b), there)) if there else y

    def finish(
        self, inputs: Mapping[str, Sequence[str | int]], output: str, shape: Sequence[str | int], y: str
    ) -> onnx.ModelProto:
        """The model with int64 inputs of these shapes and y as its output of this name and shape."""
        self._nodes.append(helper.make_node("Identity", [y], [output]))
        graph = helper.make_graph(
            self._nodes,
            "maskoban",
            [helper.make_tensor_value_info(name, TensorProto.INT64, dims) for name, dims in inputs.items()],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            self._tensors,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=FORMAT)

    def replace_initializers(self, model: onnx.ModelProto) -> None:
        """Replace the initializers of a traced model that the weights file holds by tensors of that file."""
        graph = model.graph
        ours = [tensor for tensor in graph.initializer if tensor.name in self._stored]
        for tensor in ours:
            graph.initializer.remove(tensor)
            stored = self.weight(tensor.name)  # gives the stored tensor the name, which the nodes below use
            self._nodes.append(helper.make_node("Identity", [stored], [f"{tensor.name}.fp32"]))
        renamed = {tensor.name: f"{tensor.name}.fp32" for tensor in ours}
        for node in graph.node:
            node.input[:] = [renamed.get(name, name) for name in node.input]
        nodes = [*self._nodes, *graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        graph.initializer.extend(self._tensors)


def _stored(path: Path) -> dict[str, Stored]:
    """Where the floating-point tensors of a weights file lie, by name."""
    header, start = read_header(path)
    return {
        name: Stored(path.name, entry["dtype"], entry["shape"], start + begin, end - begin)
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] in _TYPES
        for begin, end in [entry["data_offsets"]]
    }
