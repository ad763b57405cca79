"""An ONNX graph, node by node, over the weights of safetensors files, in fp32 or with its large products in int8.

In int8 a row x of activations becomes the whole numbers round(x / s) + 128 with s = max|x| / 127 (round(x / s) with
s = max x / 255 where x cannot be negative), and a column of weights likewise with its own scale. The sums of their
products are exact, so a board's logits do not depend on the batch it is in.

The weights are still those beside the graph, in fp16 or 8 bits: widening and quantising them is part of the graph, done
once when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from maskoban.diffusion.eight_bits import SCALE
from maskoban.diffusion.tensorfile import read_header

#: The first with the norm, the rotation and the attention as operators of their own, and its file format.
OPSET, FORMAT = 23, 11

Precision = Literal["fp32", "int8"]

#: How a tensor may be kept in a file of weights.
_TYPES = {"F16": TensorProto.FLOAT16, "BF16": TensorProto.BFLOAT16, "I8": TensorProto.INT8}


class Stored(NamedTuple):
    """Where a tensor lies: in which file, as what, from which byte on, how many bytes."""

    file: str
    dtype: str
    shape: list[int]
    begin: int
    length: int


class Rows(NamedTuple):
    """Rows of activations, ready to be multiplied with weights; the product must be multiplied with ``scale``.

    fp32 rows have no scale, and no whole number that stands for 0.
    """

    numbers: str
    scale: str | None = None  # (rows, 1)
    zero: str = ""


class Graph:
    """A graph under construction: calling it adds a node, and gives the name of its result.

    The tensors of the model go by their own names, those of a critic's file by ``critic.`` and theirs.

    >>> g = Graph(Path("model.safetensors"), "int8")  # doctest: +SKIP
    >>> g("Relu", g("Gather", g.weight("token.weight"), "tokens"))  # doctest: +SKIP
    'Relu.2'
    """

    def __init__(self, weights: Path, precision: Precision, critic: Path | None = None) -> None:
        self._int8 = precision == "int8"
        self._stored = {name.removeprefix("net."): place for name, place in _stored(weights).items()}
        if critic is not None:
            self._stored |= {f"critic.{name}": place for name, place in _stored(critic).items()}
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[TensorProto] = []
        self._constants: dict[tuple[Any, ...], str] = {}

    def __call__(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        result = f"{op}.{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [result], domain=domain, **attributes))
        return result

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """A constant tensor, kept once however often it is asked for."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = f"constant.{len(self._constants)}"
            self._tensors.append(numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def weight(self, name: str, *index: int) -> str:
        """A tensor of the weights, or the part of a stacked one at this index, widened to fp32."""
        if index and f"{name}.{index[0]}" in self._stored:  # it is kept block by block
            return self.weight(f"{name}.{index[0]}", *index[1:])
        file, dtype, shape, begin, length = self._stored[name]
        for size, i in zip(shape, index, strict=False):
            length //= size
            begin += i * length
        kept = TensorProto(name=".".join([name, *map(str, index)]), dims=shape[len(index) :])
        kept.data_type, kept.data_location = _TYPES[dtype], TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", begin), ("length", length)):
            kept.external_data.add(key=key, value=str(value))
        self._tensors.append(kept)
        wide = self("Cast", kept.name, to=TensorProto.FLOAT)
        return self("Mul", wide, self.weight(name + SCALE, *index)) if dtype == "I8" else wide

    def rows(self, x: str, positive: bool = False) -> Rows:
        """The rows of x (rows, width) as the precision wants them; ``positive`` says that none is negative."""
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

        An x86 without VNNI adds the products of two neighbours in 16 bits and cuts off what does not fit. A column's
        scale is therefore its largest sum of two neighbours / 127: rounded they come to at most 128, and 255 * 128
        does fit.
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
        """y (rows, width) times every scale (rows, 1) there is, in one pass over y."""
        there = [scale for scale in scales if scale is not None]
        return self("Mul", y, reduce(lambda a, b: self("Mul", a, b), there)) if there else y

    def finish(
        self, inputs: Mapping[str, Sequence[str | int]], output: str, shape: Sequence[str | int], y: str
    ) -> onnx.ModelProto:
        """The model that maps int64 inputs of these shapes to the output of this name and shape, which y becomes."""
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


def _stored(path: Path) -> dict[str, Stored]:
    """Where the tensors of a weights file lie, by name."""
    header, start = read_header(path)
    return {
        name: Stored(path.name, entry["dtype"], entry["shape"], start + begin, end - begin)
        for name, entry in header.items()
        if name != "__metadata__"
        for begin, end in [entry["data_offsets"]]
    }
