"""The files of a corpus of many sizes: a level file for each size, with an array for each label.

docs/datasets.md describes the folder. Reading it takes no native core.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban._util.files import atomic_file, file_errors
from maskoban.boards.corpus import load
from maskoban.boards.formats.arrays import extra_array
from maskoban.boards.tiles import Tokens
from maskoban.errors import FileError

#: The file with the settings and the counts; a folder is finished when it has ``files``.
INFO = "corpus.json"

#: The kind of the boards that `maskoban corpus synth` makes.
SYNTHETIC = "synth"

#: The difficulty of a board that is not rated.
UNKNOWN = 255


@dataclass(frozen=True)
class Labelled:
    """Boards of one size with their labels, an entry a board."""

    boards: Tokens  # uint8 (n, height, width)
    boxes: NDArray[np.uint8]
    difficulty: NDArray[np.uint8]  # 0 easy to 3 expert, or UNKNOWN
    kind: NDArray[np.uint8]  # index into the kinds of the folder

    def __getitem__(self, where: Any) -> Labelled:
        return Labelled(self.boards[where], self.boxes[where], self.difficulty[where], self.kind[where])

    def __len__(self) -> int:
        return len(self.boards)


def concatenate(parts: list[Labelled]) -> Labelled:
    """Parts of one size after each other."""
    return Labelled(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])}
    )


def write_labelled(path: Path, labelled: Labelled) -> None:
    """Write one file, whole or not at all."""
    with atomic_file(path) as file:
        np.savez_compressed(file, **vars(labelled))


def read_labelled(path: Path) -> Labelled:
    """Read one file."""
    boards = load(path)
    labels = {name: extra_array(path, name, len(boards)) for name in ("boxes", "difficulty", "kind")}
    for name, values in labels.items():
        if values is None or values.shape != (len(boards),):
            found = "nothing" if values is None else f"the shape {values.shape}"
            raise FileError(str(path), f"{name}: expected {len(boards)} numbers, got {found}")
    return Labelled(boards, **labels)  # type: ignore[arg-type]


def read_info(folder: str | Path) -> dict[str, Any]:
    """What ``corpus.json`` of a finished folder says."""
    path = Path(folder) / INFO
    with file_errors(path, "read"):
        text = path.read_bytes()
    try:
        info: dict[str, Any] = dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise FileError(str(path), f"expected a JSON object: {error}") from None
    if "files" not in info or "kinds" not in info:
        raise FileError(str(folder), "this corpus is not finished; the command that began it continues")
    return info


def read_folder(folder: str | Path) -> Iterator[tuple[tuple[int, int], Labelled]]:
    """The sizes of a finished folder, each with its boards, in the order of ``corpus.json``.

    >>> for (height, width), labelled in read_folder("mix"):  # doctest: +SKIP
    ...     print(height, width, len(labelled))
    """
    for name in read_info(folder)["files"]:
        labelled = read_labelled(Path(folder) / name)
        yield (labelled.boards.shape[1], labelled.boards.shape[2]), labelled
