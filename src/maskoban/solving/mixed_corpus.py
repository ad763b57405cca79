"""Making a corpus of synthetic boards of many sizes with labels, and other corpora beside them.

Every size and number of boxes gets the same number of boards. They are made in parts, each a file, so that an
interrupted run continues; when all parts of a size are there, they become its file, without duplicates. A part depends
on the settings alone: neither the number of threads nor an interruption changes a board.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maskoban._util.files import atomic_file, file_errors
from maskoban._util.progress import OnProgress
from maskoban.boards import corpus as corpora
from maskoban.boards.identity import ids
from maskoban.boards.labelled import (
    INFO,
    SYNTHETIC,
    UNKNOWN,
    Labelled,
    concatenate,
    read_labelled,
    write_labelled,
)
from maskoban.boards.synth import most_boxes, synthesize
from maskoban.boards.tiles import Tokens, object_counts, tile_counts
from maskoban.errors import MaskobanError
from maskoban.solving.rating import DIFFICULTIES, difficulties
from maskoban.solving.solver import Limits

#: Boards of a part: some seconds on one core at the largest sizes.
PART = 500

#: The limits of the search that rates boards of 10x10 with four boxes.
LIMITS = Limits(states=1_000_000)

_SIZES = re.compile(r"(\d{1,4})x(\d{1,4})(?:-(\d{1,4})x(\d{1,4}))?")
_BOXES = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")


@dataclass(frozen=True)
class Mix:
    """The settings of a corpus: heights, widths and boxes from the first to the last number, both included."""

    boards: int
    heights: tuple[int, int]
    widths: tuple[int, int]
    boxes: tuple[int, int]
    seed: int = 0
    add: tuple[str, ...] = ()

    def shares(self) -> dict[tuple[int, int, int], int]:
        """How many boards are made of each height, width and number of boxes.

        >>> Mix(5, (5, 6), (6, 6), (1, 3)).shares()
        {(5, 6, 1): 2, (6, 6, 1): 2, (6, 6, 2): 1}
        """
        cells = [
            (height, width, boxes)
            for height in range(self.heights[0], self.heights[1] + 1)
            for width in range(self.widths[0], self.widths[1] + 1)
            for boxes in range(self.boxes[0], min(self.boxes[1], most_boxes(height, width)) + 1)
        ]
        if not cells:
            raise MaskobanError(
                f"no board of these sizes has room for {self.boxes[0]} boxes: expected 7 cells a box inside the border"
            )
        each, more = divmod(self.boards, len(cells))
        return {cell: each + (number < more) for number, cell in enumerate(cells) if each or number < more}

    def settings(self) -> dict[str, Any]:
        """What decides which boards are made."""
        from maskoban import __version__

        return {"version": __version__, **json.loads(json.dumps(vars(self)))}


def parse_sizes(text: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Heights and widths of "8x12", or of a range from the smallest to the largest size.

    >>> parse_sizes("8x12"), parse_sizes("5x5-16x16")
    (((8, 8), (12, 12)), ((5, 16), (5, 16)))
    """
    found = _SIZES.fullmatch(text)
    if found is None:
        raise MaskobanError(f"sizes: expected HEIGHTxWIDTH or a range like 5x5-16x16, got {text!r}")
    height, width = int(found[1]), int(found[2])
    last_height, last_width = (int(found[3]), int(found[4])) if found[3] else (height, width)
    if last_height < height or last_width < width:
        raise MaskobanError(f"sizes: expected the smaller size first, got {text!r}")
    if min(height, width) < 5 or max(last_height, last_width) > 16:
        raise MaskobanError(f"sizes: expected 5x5 to 16x16, got {text!r}")
    return (height, last_height), (width, last_width)


def parse_boxes(text: str) -> tuple[int, int]:
    """The fewest and the most boxes of "4" or "1-8".

    >>> parse_boxes("4"), parse_boxes("1-8")
    ((4, 4), (1, 8))
    """
    found = _BOXES.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last <= 8:
        raise MaskobanError(f"boxes: expected a number or a range within 1-8, got {text!r}")
    return first, last


def make_corpus(
    mix: Mix, folder: str | Path, threads: int | None = None, on_progress: OnProgress | None = None
) -> dict[str, int]:
    """Make the corpus, or continue it; returns the number of boards of every file.

    >>> make_corpus(Mix(1000, (5, 8), (5, 8), (1, 3)), "mix")  # doctest: +SKIP
    """
    folder = Path(folder)
    shares = mix.shares()
    parts = folder / "parts"
    files = _start(folder, mix)
    if files is not None:
        return files
    # Every source of boards: size, name, kind, number of boards, and what makes some of them.
    sources: list[tuple[tuple[int, ...], str, int, int, Callable[[int, int], Tokens]]] = [
        ((height, width), f"{boxes}", 0, count, _maker(height, width, boxes, mix.seed, threads))
        for (height, width, boxes), count in shares.items()
    ]
    for kind, added in enumerate(mix.add, 1):
        boards = corpora.load(added)
        sources.append((boards.shape[1:], f"add{kind}", kind, len(boards), _slicer(boards)))
    total = sum(count for *_, count, _ in sources)
    done, report = 0, on_progress or (lambda done, total: None)
    files = {}
    for height, width in sorted({size for size, *_ in sources}):
        whole = folder / f"{height}x{width}.npz"
        paths: list[Path] = []
        for _, name, kind, count, make in (each for each in sources if each[0] == (height, width)):
            for first in range(0, count, PART):
                size = min(PART, count - first)
                path = parts / f"{height}x{width}-{name}-{first:09d}.npz"
                if not whole.exists() and not path.exists():
                    write_labelled(path, label(make(first, size), kind, threads))
                paths.append(path)
                done += size
                report(done, total)
        if not whole.exists():
            kept = _without_duplicates(concatenate([read_labelled(path) for path in paths]))
            # In random order: a part of the file, held out of training, is like the rest.
            order = np.random.default_rng([mix.seed, height, width]).permutation(len(kept))
            write_labelled(whole, kept[order])
        for path in paths:
            path.unlink(missing_ok=True)
        files[whole.name] = len(read_labelled(whole))
    _write_info(folder, mix, files)
    parts.rmdir()
    return files


def label(boards: Tokens, kind: int = 0, threads: int | None = None) -> Labelled:
    """The labels of boards of one size."""
    boxes, _, _ = object_counts(tile_counts(boards))
    numbers = {"": UNKNOWN} | {word: number for number, word in enumerate(DIFFICULTIES)}
    words = difficulties(boards, LIMITS, threads)
    return Labelled(
        boards,
        boxes.astype(np.uint8),
        np.array([numbers[word] for word in words], np.uint8),
        np.full(len(boards), kind, np.uint8),
    )


def _maker(
    height: int, width: int, boxes: int, seed: int, threads: int | None
) -> Callable[[int, int], Tokens]:
    return lambda first, count: synthesize(count, height, width, boxes, seed, first=first, threads=threads)


def _slicer(boards: Tokens) -> Callable[[int, int], Tokens]:
    return lambda first, count: boards[first : first + count]


def _without_duplicates(labelled: Labelled) -> Labelled:
    """Of synthetic boards that are the same puzzle the first; added boards stay."""
    seen: set[str] = set()
    keep = labelled.kind > 0
    synthetic = np.flatnonzero(~keep)
    for place, identity in zip(synthetic.tolist(), ids(labelled.boards[synthetic]), strict=True):
        keep[place] = identity not in seen
        seen.add(identity)
    return labelled[keep]


def _start(folder: Path, mix: Mix) -> dict[str, int] | None:
    """Write the settings into a new folder, or compare them; the files of a finished corpus."""
    with file_errors(folder, "written"):
        (folder / "parts").mkdir(parents=True, exist_ok=True)
    path = folder / INFO
    if path.exists():
        info = json.loads(path.read_text(encoding="utf-8"))
        if info.get("settings") != mix.settings():
            raise MaskobanError(
                f"{folder}: this corpus was begun with other settings; give the same, or another folder"
            )
        if "files" in info:
            (folder / "parts").rmdir()
            files: dict[str, int] = info["files"]
            return files
    elif any(each.name != "parts" for each in folder.iterdir()):
        (folder / "parts").rmdir()
        raise MaskobanError(f"{folder}: the folder holds other files; expected a new or an empty one")
    else:
        _write_info(folder, mix, None)
    return None


def _write_info(folder: Path, mix: Mix, files: dict[str, int] | None) -> None:
    info: dict[str, Any] = {"settings": mix.settings(), "kinds": [SYNTHETIC, *mix.add]}
    if files is not None:
        info["files"] = files
    with atomic_file(folder / INFO) as file:
        file.write(json.dumps(info, indent=1).encode())
