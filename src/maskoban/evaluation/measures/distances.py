"""Memorisation: how many cells separate a board from the nearest of the training levels.

The player is erased before boards are compared, for it can walk about without changing the puzzle.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskoban import _core
from maskoban._util.progress import OnProgress
from maskoban.boards import FLOOR, GOAL, PLAYER, PLAYER_ON_GOAL, Tokens, ids
from maskoban.boards import corpus as corpora
from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.share import Share, share_of
from maskoban.solving.solver import threads_for


@dataclass(frozen=True)
class Distances:
    """Distances to the nearest of ``corpus_levels``; ``histogram[d]`` boards are d cells from theirs."""

    median: float
    mean: float
    exact: int
    within_five: Share
    histogram: list[int]
    corpus_levels: int | None = None
    same_puzzle: Share | None = None  # boards that are a level turned, mirrored or shifted


def training_levels(corpus: str | Path = "boxoban-medium-train") -> Tokens:
    """The levels to look for neighbours among: a packed corpus by its name, or a file or folder of levels.

    >>> len(training_levels())  # doctest: +SKIP
    450000
    """
    try:
        return corpora.load(corpus)
    except MaskobanError as error:
        raise MaskobanError(f"nearest neighbours need the levels that were trained on: {error}") from None


def without_player(boards: Tokens) -> Tokens:
    """The boards with their players erased: ``@`` becomes floor, ``+`` becomes goal.

    >>> without_player(np.array([[[2, 6, 0]]], np.uint8)).tolist()
    [[[1, 4, 0]]]
    """
    erased = boards.copy()
    erased[boards == PLAYER] = FLOOR
    erased[boards == PLAYER_ON_GOAL] = GOAL
    return erased


def nearest_distances(
    boards: Tokens, corpus: Tokens, threads: int | None = None, on_progress: OnProgress | None = None
) -> NDArray[np.int32]:
    """For each board x the least Hamming distance to the corpus, min over y of |{cells i : x_i != y_i}|.

    Players are erased first. Runs on all cores unless ``threads`` says how many; Ctrl-C stops it.

    >>> corpus = np.array([[[2, 3, 4]], [[0, 1, 1]]], np.uint8)
    >>> nearest_distances(np.array([[[1, 3, 4]], [[0, 3, 1]]], np.uint8), corpus)
    array([0, 1], dtype=int32)
    """
    if boards.shape[1:] != corpus.shape[1:]:
        ours, theirs = ("x".join(map(str, each.shape[1:])) for each in (boards, corpus))
        raise MaskobanError(f"boards of {ours} cannot be compared with a corpus of {theirs}")
    if len(corpus) == 0:
        raise MaskobanError("there are no levels to compare with")
    threads = threads_for(threads)
    cells = boards.shape[1] * boards.shape[2]
    boards, corpus = (without_player(each).reshape(len(each), cells) for each in (boards, corpus))
    # A cell that is the same everywhere, as on Boxoban's walled border, separates nothing.
    varies = (boards != corpus[0]).any(axis=0) | (corpus != corpus[0]).any(axis=0)
    report = on_progress or (lambda done, total: None)
    found = _core.nearest(
        np.ascontiguousarray(boards[:, varies]),
        np.ascontiguousarray(corpus[:, varies]),
        _core.registers()[0],
        threads,
        lambda done: report(done, len(boards)),
    )
    report(len(boards), len(boards))
    return found


def same_puzzles(boards: Tokens, corpus: Tokens) -> Share:
    """Boards that are a level of the corpus turned, mirrored or shifted, by their ids.

    >>> same_puzzles(np.array([[[4, 3, 2]], [[2, 3, 5]]], np.uint8), np.array([[[2, 3, 4]]], np.uint8)).count
    1
    """
    known = set(ids(corpus))
    return share_of(sum(each in known for each in ids(boards)), len(boards))


def measure_distances(
    distances: NDArray[np.int32], corpus_levels: int | None = None, same_puzzle: Share | None = None
) -> Distances:
    """Median, mean, exact copies (distance 0) and near ones (within five cells).

    >>> found = measure_distances(np.array([0, 4, 12, 12], np.int32))
    >>> found.median, found.mean, found.exact, found.within_five.share
    (8.0, 7.0, 1, 0.5)
    """
    if len(distances) == 0:
        raise MaskobanError("there are no boards to measure")
    return Distances(
        median=float(np.median(distances)),
        mean=float(distances.mean()),
        exact=int((distances == 0).sum()),
        within_five=share_of(int((distances <= 5).sum()), len(distances)),
        histogram=np.bincount(distances).tolist(),
        corpus_levels=corpus_levels,
        same_puzzle=same_puzzle,
    )
