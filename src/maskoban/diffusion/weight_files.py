"""Which files of a folder hold its weights: an exported model's one, or those of a run's newest whole checkpoint."""

from __future__ import annotations

import re
from pathlib import Path

from torch import Tensor

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.eight_bits import widened
from maskoban.diffusion.tensorfile import load_tensors


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
