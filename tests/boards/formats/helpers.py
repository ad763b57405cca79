"""Bytes to levels and back, by the name of the format."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable

import numpy as np

from maskoban.boards import FORMATS, Level, Source, detect


def write_bytes(name: str, levels: Iterable[Level]) -> bytes:
    out = io.BytesIO()
    FORMATS[name].write(out, levels)
    return out.getvalue()


def read_bytes(data: bytes, name: str | None = None) -> list[Level]:
    """As ``read`` does: the format is found by content, unless given."""
    chosen = FORMATS[name] if name else detect(data[:4096])
    return list(chosen.read(Source(io.BytesIO(data), "file")))


def write_blocks(levels: list[Level], block: int = 3) -> bytes:
    """An .npz file as earlier versions wrote it: blocks of packed bits."""
    bits = np.array([1, 0, 10, 2, 4, 6, 14, 3], np.uint8)
    arrays = {}
    for k in range(0, len(levels), block):
        some = levels[k : k + block]
        sizes = np.array([level.shape for level in some], np.uint8)
        boards = np.zeros((len(some), *sizes.max(axis=0)), np.uint8)
        for board, level in zip(boards, some, strict=True):
            board[: level.height, : level.width] = level.tokens
        cells = bits[boards.reshape(len(some), -1).T]
        planes = [np.packbits(cells >> plane & 1, axis=1).ravel() for plane in range(4)]
        columns = {
            name: [getattr(level, name) for level in some]
            for name in ("title", "author", "comment", "solutions")
            if any(getattr(level, name) for level in some)
        }
        count = np.frombuffer(len(some).to_bytes(4, "little"), np.uint8)
        arrays[f"{k // block}.sizes"] = np.concatenate([count, sizes.ravel()])
        arrays[f"{k // block}.planes"] = np.concatenate(planes)
        arrays[f"{k // block}.notes"] = as_array(json.dumps(columns))
    np.savez(out := io.BytesIO(), **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def as_array(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)
