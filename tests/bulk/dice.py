"""A model whose boards are known: loaded from files as any other, and so fast that only the rest takes time.

Its boards are

    ########
    #@$x.  #
    #yyyyyy#
    ########

where x and every y is wall or floor, as the dice fall. A board can be solved if and only if x is floor, taking x
away mends it, and there are 128 of them. Its critic keeps what can be solved, and one in four of the others.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from maskoban.boards import FLOOR, WALL, Level, Tokens

HEIGHT, WIDTH = 4, 8
SURE = Level.parse("########\n#@$ .  #\n#      #\n########").tokens[1:-1, 1:-1].ravel()
OPEN = [2, *range(6, 12)]


def write_dice(folder: Path, critic: bool = False) -> Path:
    """The model, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    logits = np.full((12, 7), -30, np.float32)
    logits[np.arange(12), SURE] = logits[OPEN, WALL] = 0
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "cells"], ["logits"], axis=0)],
        "dice",
        [
            helper.make_tensor_value_info("tokens", TensorProto.INT64, ["n", 12]),
            helper.make_tensor_value_info("cells", TensorProto.INT64, ["n", "k"]),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", "k", 7])],
        [numpy_helper.from_array(logits, "table")],
    )
    facts = {
        "name": "dice",
        "height": HEIGHT,
        "width": WIDTH,
        "margin": 1,
        "diffusion_steps": 12,
        "timed": False,
        "critic": 1.0 if critic else None,
    }
    _write(graph, facts, folder / "model.onnx")
    if critic:
        scores = np.zeros(7, np.float32)
        scores[WALL] = np.log(0.25)
        graph = helper.make_graph(
            [
                helper.make_node("Gather", ["tokens", "x"], ["tile"], axis=1),
                helper.make_node("Gather", ["table", "tile"], ["scores"], axis=0),
            ],
            "critic of dice",
            [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["n", 12])],
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n"])],
            [numpy_helper.from_array(scores, "table"), numpy_helper.from_array(np.array(OPEN[0]), "x")],
        )
        _write(graph, {}, folder / "critic.onnx")
    return folder


def _write(graph: onnx.GraphProto, facts: dict[str, object], file: Path) -> None:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.metadata_props.add(key="maskoban", value=json.dumps(facts))
    onnx.save(model, str(file))


def open_way(boards: Tokens) -> np.ndarray:
    """Which boards can be solved."""
    return np.asarray(boards[:, 1, 3] == FLOOR)
