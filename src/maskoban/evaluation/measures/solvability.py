"""How many boards can be solved, what is wrong with malformed ones, and how it depends on the boxes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from maskoban.boards import Tokens
from maskoban.boards.tiles import object_counts, tile_counts
from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.share import Share, share_of
from maskoban.solving import Results


@dataclass(frozen=True)
class Solvability:
    """Shares are of all boards, so a board that is malformed or unknown is not solvable."""

    solvable: Share
    unsolvable: Share
    unknown: Share
    malformed: Share
    malformed_by_reason: dict[str, int]  # most frequent first
    by_boxes: dict[int, Share]  # solvable boards among those with so many boxes


def measure_solvability(boards: Tokens, results: Results) -> Solvability:
    """The verdicts of `solve_many` on these boards, counted, with Wilson 95 % intervals.

    >>> from maskoban.solving import solve_many
    >>> boards = np.array([[[2, 3, 4]], [[3, 2, 4]], [[2, 3, 1]]], np.uint8)  # "@$.", "$@.", "@$ "
    >>> found = measure_solvability(boards, solve_many(boards))
    >>> found.solvable.count, found.unsolvable.count, found.malformed_by_reason
    (1, 1, {'1 box but 0 goals': 1})
    """
    if len(boards) == 0:
        raise MaskobanError("there are no boards to measure")
    if len(boards) != len(results):
        raise MaskobanError(f"{len(boards)} boards, but {len(results)} verdicts")
    counts = np.bincount(results.verdicts, minlength=len(Results.VERDICTS)).tolist()
    share = {name: share_of(count, len(boards)) for name, count in zip(Results.VERDICTS, counts, strict=True)}
    malformed = np.flatnonzero(results.verdicts == Results.VERDICTS.index("malformed"))
    boxes = object_counts(tile_counts(boards)).boxes
    return Solvability(
        solvable=share["solved"],
        unsolvable=share["unsolvable"],
        unknown=share["unknown"],
        malformed=share["malformed"],
        malformed_by_reason=dict(Counter(results.reasons[i] for i in malformed).most_common()),
        by_boxes={
            int(number): share_of(int(results.solved[boxes == number].sum()), int((boxes == number).sum()))
            for number in np.unique(boxes)
        },
    )
