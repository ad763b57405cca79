"""The safetensors format, read and written with torch alone.

A trainer must run where only torch and NumPy are, and the exporter must know where in the file each tensor
lies. The format is eight bytes of header length, a JSON header, and the tensors' bytes.

A tensor may be kept in 8 bits: whole numbers from -127 to 127, and beside them, as ``NAME.scale``, what each of its
rows is to be multiplied with.
"""

from __future__ import annotations

import json
import math
import os
import re
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
#: How the scales of the tensor NAME are called: NAME.scale.
SCALE = ".scale"

#: Matrices of fewer numbers are not worth the rounding: embeddings, norms, the head.
_LARGE = 1 << 15

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


def in_eight_bits(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same with every large matrix as 8-bit numbers, each row with a scale of its own, and the rest in fp16.

    >>> kept = in_eight_bits({"small": torch.ones(3), "large": torch.randn(4, 128, 128)})
    >>> {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in kept.items()}
    {'small': (torch.float16, (3,)), 'large': (torch.int8, (4, 128, 128)), 'large.scale': (torch.bfloat16, (4, 128, 1))}
    """
    kept: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim < 2 or tensor.numel() < _LARGE:
            kept[name] = tensor.half()
            continue
        # In bf16, so that 127 times the scale is exact: what was kept in 8 bits once is kept as it is.
        scale = (tensor.abs().amax(-1, keepdim=True) / 127).clamp_min(1e-12).bfloat16()
        kept[name] = (tensor / scale).round().to(torch.int8)
        kept[name + SCALE] = scale
    return kept


def widened(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same with what is kept in 8 bits as fp32.

    >>> widened({"a": torch.tensor([[1, -127]], dtype=torch.int8), "a.scale": torch.tensor([[0.5]])})
    {'a': tensor([[  0.5000, -63.5000]])}
    """
    wide = dict(tensors)
    for name, tensor in tensors.items():
        if tensor.dtype == torch.int8:
            scale = wide.pop(name + SCALE, None)
            if scale is None or scale.shape != (*tensor.shape[:-1], 1):
                what = (
                    "missing" if scale is None else f"of shape {tuple(scale.shape)}, which is not one a row"
                )
                raise MaskobanError(f"{name + SCALE} is {what}; the file is broken")
            wide[name] = tensor.float() * scale
    return wide


def part_names(step: int, parts: int) -> list[str]:
    """The file names of a checkpoint of this step kept in so many parts.

    Several files cannot be replaced at once, so their names carry the step: the new ones come to lie beside
    the old ones, which go when all is written.

    >>> part_names(500, 1), part_names(500, 2)
    (['state.safetensors'], ['state-500-1-of-2.safetensors', 'state-500-2-of-2.safetensors'])
    """
    if parts == 1:
        return ["state.safetensors"]
    return [f"state-{step}-{i + 1}-of-{parts}.safetensors" for i in range(parts)]


def newest_parts(folder: Path) -> list[Path]:
    """The files of a folder's newest whole checkpoint."""
    found = sorted(folder.glob("state*.safetensors"))
    if not found:
        raise MaskobanError(f"{folder}: no checkpoint there (expected state.safetensors)")
    whole: list[list[Path]] = [[path] for path in found if path.name == "state.safetensors"]
    for path in found:
        if first := re.fullmatch(r"state-(\d+)-1-of-(\d+)\.safetensors", path.name):
            parts = [folder / name for name in part_names(int(first[1]), int(first[2]))]
            if set(parts) <= set(found):
                whole.append(parts)
    if not whole:
        names = ", ".join(path.name for path in found)
        raise MaskobanError(f"{folder}: parts of the checkpoint are missing: only {names} there")
    return max(whole, key=lambda parts: parts[-1].stat().st_mtime_ns)


def load_folder(place: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a weights file, or of a folder with an exported model or the checkpoint of a run."""
    if (place / "model.safetensors").is_file():
        place = place / "model.safetensors"
    if place.is_file():
        tensors, metadata = load_tensors(place)
        try:
            return widened(tensors), metadata
        except MaskobanError as error:
            raise MaskobanError(f"{place}: {error}") from None
    tensors = {}
    for path in newest_parts(place):
        part, metadata = load_tensors(path)
        tensors.update(part)
    return tensors, metadata
