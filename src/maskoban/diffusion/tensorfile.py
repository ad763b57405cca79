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

_NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}
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
        with open(partial, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor in tensors.values():
                file.write(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise MaskobanError(f"{path}: cannot be written: {error.strerror}") from error


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file; a broken file is refused with a sentence."""
    try:
        data = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise MaskobanError(f"{path}: cannot be read: {error.strerror}") from error
    header, start = read_header(path)
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = _DTYPES.get(entry["dtype"])
        count = math.prod(entry["shape"])
        if dtype is None or start + end > len(data) or end - begin != count * dtype.itemsize:
            raise MaskobanError(
                f"{path}: tensor {name!r} is cut short or of an unknown type; the file is broken"
            )
        raw = torch.from_numpy(data[start + begin : start + end].copy())
        tensors[name] = raw.view(dtype).reshape(entry["shape"])
    return tensors, header.get("__metadata__", {})


def read_header(path: Path) -> tuple[dict[str, dict], int]:  # type: ignore[type-arg]
    """The JSON header, and the byte at which the tensors start."""
    problem = f"{path}: not a safetensors file, or a broken one"
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= 100_000_000:
                raise MaskobanError(problem)
            header = json.loads(file.read(length))
    except OSError as error:
        raise MaskobanError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise MaskobanError(problem) from error
    if not isinstance(header, dict):
        raise MaskobanError(problem)
    return header, 8 + length


def part_name(i: int, parts: int) -> str:
    """The file name of part i of a checkpoint kept in so many parts."""
    return "state.safetensors" if parts == 1 else f"state-{i + 1}-of-{parts}.safetensors"


def load_folder(place: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a weights file, or of a folder with an exported model or the checkpoint of a run."""
    if (place / "model.safetensors").is_file():
        place = place / "model.safetensors"
    if place.is_file():
        return load_tensors(place)
    paths = sorted(place.glob("state*.safetensors"))
    if not paths:
        raise MaskobanError(f"{place}: no checkpoint there (expected state.safetensors)")
    if {path.name for path in paths} != {part_name(i, len(paths)) for i in range(len(paths))}:
        raise MaskobanError(f"{place}: parts of the checkpoint are missing: {len(paths)} are there")
    tensors: dict[str, Tensor] = {}
    for path in paths:
        part, metadata = load_tensors(path)
        tensors.update(part)
    return tensors, metadata
