"""Are boards as hard as a corpus: solver effort and fewest pushes, against Boxoban's medium levels or one's own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban.errors import MaskobanError
from maskoban.evaluation.shares import Share, share_of
from maskoban.solving import Results, difficulty_for
from maskoban.solving.rating import DIFFICULTIES, boxoban_efforts, percentiles


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
    """Over the boards that can be solved.

    ``effort`` and ``pushes`` are of those whose effort was found, None where there are none. ``quarters`` are of
    effort: a quarter of Boxoban's medium training levels is easy, and so on. ``against`` says whose the corpus is.
    """

    against: str
    effort: Spread | None
    pushes: Spread | None
    quarters: dict[str, Share]


def measure_difficulty(
    results: Results, all_solvable: bool = False, corpus: Results | None = None
) -> Difficulty:
    """The spread of effort and pushes in what `solve_many` with mode "effort" found.

    Where a search hit its limit the effort is not known, only that it is larger than what was expanded. Is that in
    the last quarter already, and ``all_solvable`` says that a faster search solved all these boards, the board is an
    expert's; else it has no quarter. ``corpus`` is the same of levels to compare with, in place of Boxoban's.

    >>> from maskoban.solving import solve_many
    >>> boards = np.array([[[2, 3, 4]]], np.uint8)  # "@$."
    >>> found = measure_difficulty(solve_many(boards, "effort"))
    >>> found.pushes.mean, found.quarters["easy"].count
    (1.0, 1)
    """
    effort, pushes = results.expanded[results.solved], results.pushes[results.solved]
    words = Counter(difficulty_for(int(each)) for each in effort)
    stopped = efforts_unknown(results)
    if all_solvable:
        words[DIFFICULTIES[-1]] += sum(
            difficulty_for(int(each)) == DIFFICULTIES[-1] for each in results.expanded[stopped]
        )
    if not words.total():
        raise MaskobanError(
            "every search for an effort hit its limit, so no difficulty is known"
            if stopped.any()
            else "no board was solved, so none has a difficulty"
        )
    against, theirs = "Boxoban", boxoban_efforts()
    if corpus is not None and corpus.solved.any():
        against, theirs = "the corpus", {}
        for name, numbers in (("effort", corpus.expanded), ("pushes", corpus.pushes)):
            theirs[f"{name}_percentiles"] = percentiles(numbers[corpus.solved])
            theirs[f"mean_{name}"] = float(numbers[corpus.solved].mean())
    return Difficulty(
        against=against,
        effort=_spread(effort, theirs["effort_percentiles"], theirs["mean_effort"]),
        pushes=_spread(pushes, theirs["pushes_percentiles"], theirs["mean_pushes"]),
        quarters={word: share_of(words[word], words.total()) for word in DIFFICULTIES},
    )


def efforts_unknown(results: Results) -> NDArray[np.bool_]:
    """Which searches of mode "effort" hit a limit.

    >>> from maskoban.solving import Limits, solve_many
    >>> boards = np.array([[[2, 3, 1, 4]]], np.uint8)  # "@$ ."
    >>> efforts_unknown(solve_many(boards, "effort", limits=Limits(states=1)))
    array([ True])
    """
    return results.limits_hit > 0


def _spread(
    numbers: NDArray[np.integer[Any]], corpus_percentiles: list[int], corpus_mean: float
) -> Spread | None:
    if len(numbers) == 0:
        return None
    return Spread(percentiles(numbers), float(numbers.mean()), corpus_percentiles, corpus_mean)
