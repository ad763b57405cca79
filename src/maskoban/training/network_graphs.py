"""The two networks, and a critic of ours, as ONNX graphs: the networks of ``diffusion`` once more, in ONNX Runtime's
own operators.

Written by hand because an exporter cannot know what makes a graph fast: which operators there are whole, and where
the scale of an int8 row falls out. ``export`` holds every graph against torch, so the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

from maskoban.boards.tiles import TILES
from maskoban.diffusion.critic_network import STACKS, CriticNetwork
from maskoban.diffusion.network import InteriorNetwork, Network, PaperNetwork
from maskoban.training.graph import Graph, Precision


def network_graph(network: Network, weights: Path, precision: Precision) -> onnx.ModelProto:
    """The network over this weights file, with free numbers of boards and of cells asked for.

    >>> graph = network_graph(network, Path("model.safetensors"), "int8")  # doctest: +SKIP
    """
    g = Graph(weights, precision)
    inputs: dict[str, tuple[str | int, ...]] = {
        "tokens": ("boards", network.cells),
        "cells": ("boards", "asked"),
    }
    if isinstance(network, InteriorNetwork):
        blocks = (
            Block(*(g.weight("qkv", i, j) for j in range(3)), *(g.weight(name, i) for name in STACKS[1:]))
            for i in range(len(network.qkv))
        )
        x = _features(g, network, g.weight("place"), blocks, "cells")
        y = g("MatMul", x, g("Transpose", g.weight("head"), perm=[1, 0]))
    else:
        assert isinstance(network, PaperNetwork)
        inputs["t"] = ("boards",)
        y = _paper(g, network)
    y = g("Reshape", y, g("Concat", g("Shape", "cells"), g.constant([TILES]), axis=0))
    return g.finish(inputs, "logits", ("boards", "asked", TILES), y)


def critic_graph(critic: CriticNetwork, weights: Path, added: Path) -> onnx.ModelProto:
    """The critic over the weights of its model and what it adds to them, for boards that were not turned.

    The changed matrices W + B A come of constants alone, so they are computed once, when the graph is loaded.

    >>> graph = critic_graph(critic, Path("model.safetensors"), Path("critic.safetensors"))  # doctest: +SKIP
    """
    g, n = Graph(weights, "fp32", added), critic.base

    def changed(name: str, i: int) -> str:
        low_rank = g("MatMul", g.weight(f"critic.wide.{name}", i), g.weight(f"critic.narrow.{name}", i))
        if name == "qkv":
            low_rank = g("Reshape", low_rank, g.constant(n.qkv[i].shape))
        return g("Add", g.weight(name, i), low_rank)

    def block(i: int) -> Block:
        qkv = changed("qkv", i)
        return Block(
            *(g("Gather", qkv, g.constant(j)) for j in range(3)), *(changed(name, i) for name in STACKS[1:])
        )

    place = g("Add", g.weight("place"), g.weight("critic.turns", 0))
    x = _features(g, n, place, map(block, range(len(n.qkv))))
    mean = g("ReduceMean", g("Reshape", x, g.constant([-1, n.cells, n.d])), g.constant([1]), keepdims=0)
    y = g("ReduceSum", g("Mul", mean, g.weight("critic.head")), g.constant([1]), keepdims=0)
    return g.finish(
        {"tokens": ("boards", n.cells)}, "scores", ("boards",), g("Add", y, g.weight("critic.bias"))
    )


class Block(NamedTuple):
    """The matrices of a block of ours."""

    q: str
    k: str
    v: str
    out: str
    up: str
    down: str


def _features(
    g: Graph, n: InteriorNetwork, place: str, blocks: Iterable[Block], asked: str | None = None
) -> str:
    """What the head of ours reads, for the cells asked for or for all, with ``place`` added to the tokens.

    The scale of int8 rows is put back as late as can be. Queries and keys are normalised, so there it falls out;
    relu(s h)^2 = s^2 relu(h)^2, so there it waits until the rows are narrow again.
    """
    head_width, last = n.d // n.heads, len(n.qkv) - 1
    rows_shape, board_shape = g.constant([-1, n.d]), g.constant([-1, n.cells, n.d])
    everywhere = g("Expand", g.constant(np.arange(n.cells)), g("Shape", "tokens"))
    cos, sin = (g.constant(table, np.float32) for table in n.rotary.cpu())

    def norm(x: str, width: int = n.d) -> str:
        return g("RMSNormalization", x, g.constant(np.ones(width), np.float32), epsilon=1e-6)

    def turned(x: str, shape: str, cells: str) -> str:
        heads = norm(g("Reshape", x, g.constant([-1, head_width])), head_width)
        return g("RotaryEmbedding", g("Reshape", heads, shape), cos, sin, cells, num_heads=n.heads)

    x = norm(g("Add", g("Gather", g.weight("token.weight"), "tokens"), place))
    x = g("Reshape", x, rows_shape)
    shape, cells = board_shape, everywhere
    for i, block in enumerate(blocks):
        rows = g.rows(norm(x))
        k = turned(g.product(rows, block.k), board_shape, everywhere)
        v = g.scaled(g.product(rows, block.v), rows.scale)
        if i == last and asked is not None:
            x, cells = _picked(g, x, asked, board_shape, rows_shape), asked
            shape = g("Concat", g("Shape", asked), g.constant([n.d]), axis=0)
            rows = g.rows(norm(x))
        q = turned(g.product(rows, block.q), shape, cells)
        y = g("Attention", q, k, g("Reshape", v, board_shape), q_num_heads=n.heads, kv_num_heads=n.heads)
        rows = g.rows(g("Reshape", y, rows_shape))
        x = g("Add", x, g.scaled(g.product(rows, block.out), rows.scale))
        rows = g.rows(norm(x))
        h = g("Relu", g.product(rows, block.up))
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

    def norm(x: str, i: int, j: int) -> str:
        return g(
            "LayerNormalization", x, g.weight("norm_weight", i, j), g.weight("norm_bias", i, j), epsilon=1e-5
        )

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
        heads = [g("Reshape", y, board_shape) for y in linear(norm(x, i, 0), *qkv)]
        y = g("Reshape", g("Attention", *heads, q_num_heads=n.heads, kv_num_heads=n.heads), rows_shape)
        x = g("Add", x, *linear(y, (g.weight("out", i), g.weight("out_bias", i))))
        (y,) = linear(norm(x, i, 1), (g.weight("up", i), g.weight("up_bias", i)))
        x = g(
            "Add",
            x,
            *linear(g("Gelu", y, approximate="tanh"), (g.weight("down", i), g.weight("down_bias", i))),
        )
    return dense(_picked(g, x, "cells", board_shape, rows_shape), "head")


def _picked(g: Graph, x: str, cells: str, board_shape: str, rows_shape: str) -> str:
    """The rows of the cells asked for."""
    where = g("Unsqueeze", cells, g.constant([2]))
    return g("Reshape", g("GatherND", g("Reshape", x, board_shape), where, batch_dims=1), rows_shape)
