"""How much is wrong with the boards that cannot be solved: one wall, two walls, or more.

A failure is any board that is not solved, malformed ones included, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskoban._util.progress import OnProgress
from maskoban.boards import Tokens
from maskoban.evaluation.measures.share import Share, share_of
from maskoban.solving import Limits, Results, repair_many


@dataclass(frozen=True, eq=False)
class Mending:
    """What it takes to mend each board.

    ``fates`` holds indices into ``Mending.FATES``; ``cures`` marks, on boards that one wall mends, every wall
    whose removal alone does it.
    """

    fates: NDArray[np.uint8]  # (n,)
    cures: NDArray[np.bool_]  # (n, h, w)

    FATES: ClassVar[tuple[str, ...]] = (
        "solvable",
        "one wall",
        "two walls",
        "more walls",
        "unknown",
        "malformed",
    )


@dataclass(frozen=True)
class RepairRates:
    """``one_wall`` and ``two_walls`` (one or two) are of the failures, the others of all boards."""

    one_wall: Share
    two_walls: Share
    effective: Share  # solvable, or after the removal of one wall
    effective_two_walls: Share
    broken: Share  # what two walls do not mend: more_walls + unknown + malformed
    more_walls: int
    unknown: int
    malformed: int


def mend(
    boards: Tokens,
    results: Results,
    threads: int | None = None,
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
) -> Mending:
    """Try every interior wall, then every pair, on the boards that `solve_many` proved unsolvable.

    >>> from maskoban.boards import Level
    >>> from maskoban.solving import solve_many
    >>> boards = Level.parse("######\\n#@$#.#\\n######").tokens[None]
    >>> mending = mend(boards, solve_many(boards))
    >>> Mending.FATES[mending.fates[0]], np.argwhere(mending.cures[0]).tolist()
    ('one wall', [[1, 3]])
    """
    fate = {name: code for code, name in enumerate(Mending.FATES)}
    as_given = {"solved": "solvable", "unsolvable": "more walls"}
    fates = np.array([fate[as_given.get(name, name)] for name in Results.VERDICTS], np.uint8)[
        results.verdicts
    ]
    cures = np.zeros(boards.shape, np.bool_)

    unsolvable = np.flatnonzero(fates == fate["more walls"])
    ones = repair_many(boards[unsolvable], 1, True, threads, limits, on_progress)
    for i, repair in zip(unsolvable, ones, strict=True):
        if repair.verdict != "unrepaired":
            fates[i] = fate["one wall" if repair.verdict == "repaired" else "unknown"]
        for (cell,) in repair.walls:
            cures[i][cell] = True

    unsolvable = np.flatnonzero(fates == fate["more walls"])
    twos = repair_many(boards[unsolvable], 2, False, threads, limits, on_progress)
    for i, repair in zip(unsolvable, twos, strict=True):
        if repair.verdict != "unrepaired":
            fates[i] = fate["two walls" if repair.verdict == "repaired" else "unknown"]
    return Mending(fates, cures)


def measure_repairs(mending: Mending) -> RepairRates:
    """The paper's rates: with s boards solvable of n, and r failures that one wall mends,

    one-wall rate r / (n - s), effective solvability (s + r) / n; the same for up to two walls.

    >>> fates = np.array([0, 0, 1, 2, 5], np.uint8)
    >>> rates = measure_repairs(Mending(fates, np.zeros((5, 3, 3), bool)))
    >>> rates.one_wall.count, rates.one_wall.total, rates.effective.share, rates.broken.share
    (1, 3, 0.6, 0.2)
    """
    n = len(mending.fates)
    solvable, one, two, more, unknown, malformed = np.bincount(
        mending.fates, minlength=len(Mending.FATES)
    ).tolist()
    failures = n - solvable
    return RepairRates(
        one_wall=share_of(one, failures),
        two_walls=share_of(one + two, failures),
        effective=share_of(solvable + one, n),
        effective_two_walls=share_of(solvable + one + two, n),
        broken=share_of(more + unknown + malformed, n),
        more_walls=more,
        unknown=unknown,
        malformed=malformed,
    )
