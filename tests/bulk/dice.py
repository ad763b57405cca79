"""A model whose boards are known: loaded from files as any other, and so fast that only the rest takes time.

Its boards are

    ########
    #@$x.  #
    #yyyyyy#
    ########

where x and every y is wall or floor, as the dice fall. A board can be solved if and only if x is floor, taking x
away mends it, and there are 128 of them.
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


def write_dice(folder: Path) -> Path:
    """The model, in a folder."""
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
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    facts = {
        "name": "dice",
        "height": HEIGHT,
        "width": WIDTH,
        "margin": 1,
        "diffusion_steps": 12,
        "timed": False,
    }
    model.metadata_props.add(key="maskoban", value=json.dumps(facts))
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


def open_way(boards: Tokens) -> np.ndarray:
    """Which boards can be solved."""
    return np.asarray(boards[:, 1, 3] == FLOOR)
