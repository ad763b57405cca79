"""The safetensors format, read and written with torch alone.

A trainer must run where only torch and NumPy are, and the exporter must know where in the file each tensor
lies. The format is eight bytes of header length, a JSON header, and the tensors' bytes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from maskoban.boards.errors import MaskobanError
from maskoban.boards.writing import said

_NAMES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int8: "I8",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write beside, then rename: a file of this name is always whole.

    >>> import tempfile; p = Path(tempfile.mkdtemp()) / "x.safetensors"
    >>> save_tensors(p, {"a": torch.ones(2)}, {"step": "3"}); load_tensors(p)
    ({'a': tensor([1., 1.])}, {'step': '3'})
    """
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    at = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 64)  # so that the tensors start aligned
    partial = path.with_name(path.name + ".partial")
    try:
        with said(path, "written"):
            with open(partial, "wb") as file:
                file.write(len(text).to_bytes(8, "little") + text)
                for tensor in tensors.values():
                    file.write(
                        tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
                    )
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
    except MaskobanError:
        partial.unlink(missing_ok=True)
        raise


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file; a broken file is refused with a sentence."""
    with said(path, "read"):
        data = np.fromfile(path, dtype=np.uint8)
    header, start = read_header(path)
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            begin, end = entry["data_offsets"]
            dtype, shape = _DTYPES[entry["dtype"]], entry["shape"]
            whole = isinstance(shape, list) and all(
                type(number) is int and 0 <= number < 1 << 63 for number in (begin, end, *shape)
            )
            whole = whole and begin <= end <= len(data) - start
            whole = whole and end - begin == math.prod(shape) * dtype.itemsize
        except (KeyError, TypeError, ValueError):
            whole = False
        if not whole:
            raise MaskobanError(
                f"{path}: tensor {name!r} is cut short or of an unknown type; the file is broken"
            )
        tensor = torch.empty((end - begin) // dtype.itemsize, dtype=dtype)
        tensor.view(torch.uint8).copy_(torch.from_numpy(data[start + begin : start + end]))
        tensors[name] = tensor.reshape(shape)
    return tensors, header.get("__metadata__", {})


def read_header(path: Path) -> tuple[dict[str, dict], int]:  # type: ignore[type-arg]
    """The JSON header, and the byte at which the tensors start."""
    problem = f"{path}: not a safetensors file, or a broken one"
    with said(path, "read"), open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if 2 <= length <= 100_000_000 else b""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MaskobanError(problem) from error
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
        raise MaskobanError(problem)
    return header, 8 + length
