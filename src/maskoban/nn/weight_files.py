"""Weights on disk: the safetensors format, int8 storage, and the files of a model or of a checkpoint.

The format is read and written with torch and NumPy alone: training must run where nothing else is installed, and the
exporter must know where in the file each tensor lies. A file is eight bytes of header length, a JSON header, and the
tensors' bytes.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from maskoban._util.files import atomic_file, file_errors
from maskoban.errors import MaskobanError

_NAMES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int8: "I8",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}

#: The scales of an int8 tensor NAME are the tensor NAME.scale.
SCALE = ".scale"

#: Matrices of fewer values stay in fp16: embeddings, norms, the head.
_LARGE = 1 << 15


# -- one file


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file. It appears under its name when it is complete.

    >>> import tempfile; p = Path(tempfile.mkdtemp()) / "x.safetensors"
    >>> save_tensors(p, {"a": torch.ones(2)}, {"step": "3"}); load_tensors(p)
    ({'a': tensor([1., 1.])}, {'step': '3'})
    """
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    at = 0
    for name, tensor in tensors.items():
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 64)  # the tensors start aligned
    with atomic_file(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        file.flush()
        os.fsync(file.fileno())


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a safetensors file."""
    with file_errors(path, "read"):
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
                f"{path}: tensor {name!r} is truncated or of an unknown type; the file is broken"
            )
        tensor = torch.empty((end - begin) // dtype.itemsize, dtype=dtype)
        tensor.view(torch.uint8).copy_(torch.from_numpy(data[start + begin : start + end]))
        tensors[name] = tensor.reshape(shape)
    return tensors, header.get("__metadata__", {})


def read_header(path: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """The JSON header, and the byte at which the tensors start."""
    with file_errors(path, "read"), open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if 2 <= length <= 100_000_000 else b""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
        raise MaskobanError(f"{path}: not a safetensors file, or a broken one")
    return header, 8 + length


# -- int8 storage


def quantize(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with every large matrix as int8, from -127 to 127 with one scale a row, and the rest in fp16.

    >>> stored = quantize({"small": torch.ones(3), "large": torch.randn(4, 128, 128)})
    >>> {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in stored.items()}
    {'small': (torch.float16, (3,)), 'large': (torch.int8, (4, 128, 128)), 'large.scale': (torch.bfloat16, (4, 128, 1))}
    """
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or tensor.ndim < 2 or tensor.numel() < _LARGE:
            stored[name] = half(tensor)
            continue
        # In bf16, 127 times the scale is exact: tensors that were quantized before do not change again.
        scale = (tensor.abs().amax(-1, keepdim=True) / 127).clamp_min(1e-12).bfloat16()
        stored[name] = (tensor / scale).round().to(torch.int8)
        stored[name + SCALE] = scale
    return stored


def half(tensor: Tensor) -> Tensor:
    """A floating-point tensor in fp16; others stay."""
    return tensor.half() if tensor.is_floating_point() else tensor


def dequantize(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with every int8 matrix as fp32.

    >>> dequantize({"a": torch.tensor([[1, -127]], dtype=torch.int8), "a.scale": torch.tensor([[0.5]])})
    {'a': tensor([[  0.5000, -63.5000]])}
    """
    wide = dict(tensors)
    for name, tensor in tensors.items():
        if tensor.dtype == torch.int8:
            scale, expected = wide.pop(name + SCALE, None), (*tensor.shape[:-1], 1)
            if scale is None or scale.shape != expected:
                found = "nothing" if scale is None else f"shape {tuple(scale.shape)}"
                raise MaskobanError(f"tensor {name + SCALE!r}: expected shape {expected}, got {found}")
            wide[name] = tensor.float() * scale
    return wide


# -- the files of a checkpoint or model


def part_names(step: int, parts: int) -> list[str]:
    """The file names of a checkpoint of this step in so many parts.

    Several files cannot be replaced at once. Their names hold the step, so new files lie beside the old ones until
    all are written.

    >>> part_names(500, 1), part_names(500, 2)
    (['state.safetensors'], ['state-500-1-of-2.safetensors', 'state-500-2-of-2.safetensors'])
    """
    if parts == 1:
        return ["state.safetensors"]
    return [f"state-{step}-{i + 1}-of-{parts}.safetensors" for i in range(parts)]


def newest_parts(folder: Path) -> list[Path]:
    """The files of the newest complete checkpoint in a folder."""
    found = sorted(folder.glob("state*.safetensors"))
    if not found:
        raise MaskobanError(f"{folder}: no checkpoint there (expected state.safetensors)")
    complete: list[list[Path]] = [[path] for path in found if path.name == "state.safetensors"]
    for path in found:
        if first := re.fullmatch(r"state-(\d+)-1-of-(\d+)\.safetensors", path.name):
            parts = [folder / name for name in part_names(int(first[1]), int(first[2]))]
            if set(parts) <= set(found):
                complete.append(parts)
    if not complete:
        names = ", ".join(path.name for path in found)
        raise MaskobanError(f"{folder}: parts of the checkpoint are missing; found only {names}")
    return max(complete, key=lambda parts: parts[-1].stat().st_mtime_ns)


def load_folder(place: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a weights file, or of a folder with an exported model or with the checkpoint of a run."""
    if (place / "model.safetensors").is_file():
        place = place / "model.safetensors"
    if place.is_file():
        tensors, metadata = load_tensors(place)
        try:
            return dequantize(tensors), metadata
        except MaskobanError as error:
            raise MaskobanError(f"{place}: {error}") from None
    tensors = {}
    for path in newest_parts(place):
        part, metadata = load_tensors(path)
        tensors.update(part)
    return tensors, metadata


@torch.no_grad()
def restore_network(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load saved weights into the network: the averaged ones (``ema.``) where they exist, else ``net.``."""
    load_weights(network, tensors, "ema." if any(name.startswith("ema.") for name in tensors) else "net.")


@torch.no_grad()
def load_weights(network: nn.Module, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """Load the tensors of these names. A stacked one may be stored block by block (NAME.0, ...); hidden units that
    were pruned from the end of a block become zero."""
    for name, value in network.state_dict().items():
        saved = tensors.get(prefix + name)
        if saved is None:
            saved = _stacked(tensors, prefix + name, value.shape)
        if saved is None or saved.shape != value.shape:
            found = "is missing" if saved is None else f"has shape {tuple(saved.shape)}"
            raise MaskobanError(f"tensor {prefix + name!r} {found}; the network expects {tuple(value.shape)}")
        value.copy_(saved)


def _stacked(tensors: Mapping[str, Tensor], name: str, shape: Sequence[int]) -> Tensor | None:
    """NAME.0, NAME.1, ... as one tensor of this shape, filled up with zeros along the axis of hidden units."""
    if len(shape) != 3 or f"{name}.0" not in tensors:
        return None
    whole, units = torch.zeros(*shape), 0 if name.endswith("up") else 1
    for i, block in enumerate(whole):
        part = tensors.get(f"{name}.{i}")
        if part is not None and part.ndim == 2 and part.shape[units] <= block.shape[units]:
            block = block.narrow(units, 0, part.shape[units])
        if part is None or part.shape != block.shape:
            found = "is missing" if part is None else f"has shape {tuple(part.shape)}"
            raise MaskobanError(f"tensor {name + f'.{i}'!r} {found}; the network expects {tuple(shape[1:])}")
        block.copy_(part)
    return whole
