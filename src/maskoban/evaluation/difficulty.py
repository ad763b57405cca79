"""Are boards as hard as the corpus: solver effort and fewest pushes, against the 450,000 training levels."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import MaskobanError
from maskoban.evaluation.shares import Share, share_of
from maskoban.solving import Results, word_for
from maskoban.solving.rating import WORDS


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
    """Over the solved boards. ``quarters`` are of effort: a quarter of the corpus is easy, and so on."""

    effort: Spread
    pushes: Spread
    quarters: dict[str, Share]


def measure_difficulty(results: Results) -> Difficulty:
    """The spread of effort and pushes in what `solve_many` with mode "effort" found.

    >>> from maskoban.solving import solve_many
    >>> boards = np.array([[[2, 3, 4]]], np.uint8)  # "@$."
    >>> found = measure_difficulty(solve_many(boards, "effort"))
    >>> found.pushes.mean, found.quarters["easy"].count
    (1.0, 1)
    """
    effort, pushes = results.expanded[results.solved], results.pushes[results.solved]
    if len(effort) == 0:
        raise MaskobanError("no board was solved, so none has a difficulty")
    words = Counter(word_for(int(each)) for each in effort)
    corpus = _corpus()
    return Difficulty(
        effort=_spread(effort, corpus["effort_percentiles"], corpus["mean_effort"]),
        pushes=_spread(pushes, corpus["pushes_percentiles"], corpus["mean_pushes"]),
        quarters={word: share_of(words[word], len(effort)) for word in WORDS},
    )


def _spread(numbers: NDArray[np.integer[Any]], corpus_percentiles: list[int], corpus_mean: float) -> Spread:
    percentiles = np.percentile(numbers, np.arange(101), method="inverted_cdf").tolist()
    return Spread(percentiles, float(numbers.mean()), corpus_percentiles, corpus_mean)


@cache
def _corpus() -> dict[str, Any]:
    text = files("maskoban.solving").joinpath("effort_quartiles.json").read_text(encoding="utf-8")
    corpus: dict[str, Any] = json.loads(text)
    return corpus
