"""How hard boards are: effort, decomposed effort and fewest pushes, against Boxoban or another corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.share import Share, share_of
from maskoban.solving import Results, difficulty_of
from maskoban.solving.rating import DIFFICULTIES, Measure, boxoban_efforts, percentiles, quartiles_of


@dataclass(frozen=True)
class Spread:
    """Percentiles 0 to 100 and the mean of a sample, beside those of the corpus.

    The p-th percentile is the smallest number that at least p % do not exceed.
    """

    percentiles: list[int]
    mean: float
    corpus_percentiles: list[int]
    corpus_mean: float


@dataclass(frozen=True)
class Difficulty:
    """Of the solvable boards; spreads are of those whose number is known, None where there are none.

    ``quarters`` are the shares of easy, medium, hard and expert boards: a quarter of the corpus each by its effort,
    or by its decomposed effort.
    """

    effort: Spread | None
    pushes: Spread | None
    quarters: dict[str, Share]
    against: str = "Boxoban"
    decomposed: Spread | None = None
    decomposed_quarters: dict[str, Share] = field(default_factory=dict)


def measure_difficulty(
    efforts: Results,
    all_solvable: bool = False,
    corpus: Mapping[str, Any] | None = None,
    decomposed: Results | None = None,
) -> Difficulty:
    """The difficulty of boards from what `solve_many` found in the modes "effort" and "decomposed".

    A search that hit its limit in the last quarter proves an expert board, if ``all_solvable`` says that a faster
    search solved all these boards; else the board has no quarter. ``corpus`` is the `summarise` of levels to compare
    with, in place of Boxoban's.

    >>> from maskoban.solving import solve_many
    >>> boards = np.array([[[2, 3, 4]]], np.uint8)  # "@$."
    >>> found = measure_difficulty(solve_many(boards, "effort"))
    >>> found.pushes.mean, found.quarters["easy"].count
    (1.0, 1)
    """
    theirs = corpus or boxoban_efforts()
    quarters = _quarters(efforts, "effort", theirs, all_solvable)
    if not next(iter(quarters.values())).total:
        raise MaskobanError(
            "every search for an effort hit its limit, so no difficulty is known"
            if efforts.limits_hit.any()
            else "no board was solved, so none has a difficulty"
        )
    found = efforts.solved
    difficulty = Difficulty(
        effort=_spread(efforts.expanded[found], theirs, "effort"),
        pushes=_spread(efforts.pushes[found], theirs, "pushes"),
        quarters=quarters,
        against="Boxoban" if corpus is None else "the corpus",
    )
    if decomposed is None:
        return difficulty
    return replace(
        difficulty,
        decomposed=_spread(decomposed.expanded[decomposed.solved], theirs, "decomposed"),
        decomposed_quarters=_quarters(decomposed, "decomposed", theirs, all_solvable),
    )


def _quarters(
    results: Results, measure: Measure, corpus: Mapping[str, Any], all_solvable: bool
) -> dict[str, Share]:
    quartiles = quartiles_of(corpus)
    rated = (result for result in results if result.solved or (all_solvable and result.limit_hit))
    words = Counter(difficulty_of(result, measure, quartiles) for result in rated)
    del words[""]
    return {word: share_of(words[word], words.total()) for word in DIFFICULTIES}


def _spread(numbers: NDArray[np.integer[Any]], corpus: Mapping[str, Any], name: str) -> Spread | None:
    if len(numbers) == 0:
        return None
    return Spread(
        percentiles(numbers), float(numbers.mean()), corpus[f"{name}_percentiles"], corpus[f"mean_{name}"]
    )
