"""What boards are measured against: a corpus's patterns and tiles, and the measures of levels held out of it.

Those of Boxoban ship with the package as reference.npz. From a checkout of boxoban-levels they are made again by

python -m maskoban.evaluation.reference boxoban-levels
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from maskoban._util.files import atomic_file
from maskoban._util.progress import OnProgress, bar
from maskoban.boards import Tokens, read_boards
from maskoban.boards.tiles import NAMES
from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.distances import (
    Distances,
    measure_distances,
    nearest_distances,
    same_puzzles,
)
from maskoban.evaluation.measures.patterns import (
    Patterns,
    count_patterns,
    count_tiles,
    has_windows,
    pattern_curve,
)
from maskoban.evaluation.measures.share import share_of

#: Of levels too small for any.
NO_PATTERNS = Patterns(np.zeros(0, np.uint32), np.zeros(0, np.int64))

SHIPPED = Path(__file__).with_name("reference.npz")


@dataclass(frozen=True, eq=False)
class Reference:
    """Numbers of a corpus and of levels held out of it; those that ship are of Boxoban's medium train and valid."""

    patterns: Patterns  # of the corpus
    tiles: dict[str, float]  # mean a level of the corpus
    held_out_jsd: dict[int, float]  # the first K held-out levels against the corpus
    held_out_distances: Distances  # from held-out levels to the corpus
    held_out_tiles: dict[str, float]


def measure_reference(corpus: Tokens, held_out: Tokens, on_progress: OnProgress | None = None) -> Reference:
    """Everything in a `Reference`, from the levels themselves.

    >>> from maskoban.boards.synth import synthesize
    >>> corpus, held_out = synthesize(50, 7, 7, 2), synthesize(300, 7, 7, 2, seed=1)
    >>> list(measure_reference(corpus, held_out).held_out_jsd)
    [250]
    """
    patterns = count_patterns(corpus) if has_windows(corpus) else NO_PATTERNS
    return Reference(
        patterns=patterns,
        tiles=count_tiles(corpus).means,
        held_out_jsd=pattern_curve(held_out, patterns) if has_windows(held_out) else {},
        held_out_distances=measure_distances(
            nearest_distances(held_out, corpus, on_progress=on_progress),
            same_puzzle=same_puzzles(held_out, corpus),
        ),
        held_out_tiles=count_tiles(held_out).means,
    )


def save_reference(reference: Reference, path: str | Path) -> None:
    """Write a reference as a compact npz file.

    >>> save_reference(load_reference(), "copy.npz")  # doctest: +SKIP
    """
    codes, counts = reference.patterns
    same = reference.held_out_distances.same_puzzle
    with atomic_file(path) as file:
        np.savez_compressed(
            file,
            # Neighbouring codes are close, so their steps are small numbers, which compress well.
            pattern_steps=np.diff(codes, prepend=np.uint32(0)),
            pattern_counts=counts.astype(np.uint32),
            tiles=list(reference.tiles.values()),
            jsd_sizes=list(reference.held_out_jsd),
            held_out_jsd=list(reference.held_out_jsd.values()),
            held_out_distances=reference.held_out_distances.histogram,
            held_out_same=same.count if same else 0,
            held_out_tiles=list(reference.held_out_tiles.values()),
        )


@cache
def load_reference(path: str | Path = SHIPPED) -> Reference:
    """The shipped reference, or one that `save_reference` wrote.

    >>> len(load_reference().patterns.codes)
    264981
    """
    with np.load(path) as file:
        if "held_out_same" not in file:
            raise MaskobanError(f"{path}: not a reference of this version; make it again")
        histogram = file["held_out_distances"]
        return Reference(
            patterns=Patterns(
                np.cumsum(file["pattern_steps"], dtype=np.uint32), file["pattern_counts"].astype(np.int64)
            ),
            tiles=dict(zip(NAMES, file["tiles"].tolist(), strict=True)),
            held_out_jsd=dict(zip(file["jsd_sizes"].tolist(), file["held_out_jsd"].tolist(), strict=True)),
            held_out_distances=measure_distances(
                np.repeat(np.arange(len(histogram), dtype=np.int32), histogram),
                same_puzzle=share_of(int(file["held_out_same"]), int(histogram.sum())),
            ),
            held_out_tiles=dict(zip(NAMES, file["held_out_tiles"].tolist(), strict=True)),
        )


def main(folder: Path) -> None:
    """Make the shipped reference from a checkout of boxoban-levels."""
    corpus, held_out = (read_boards(folder / "medium" / split) for split in ("train", "valid"))
    with bar("comparing") as show:
        save_reference(measure_reference(corpus, held_out, show), SHIPPED)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m maskoban.evaluation.reference BOXOBAN_FOLDER")
    try:
        main(Path(sys.argv[1]))
    except MaskobanError as error:
        sys.exit(str(error))
