"""How different the boards of a generator are from each other. The player is erased before boards are compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from maskoban.boards import TILES, Tokens, symmetries
from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.board_measures import BoardMeasures
from maskoban.evaluation.measures.distances import without_player
from maskoban.evaluation.measures.patterns import Patterns, count_patterns, has_windows
from maskoban.evaluation.measures.share import Share, share_of


@dataclass(frozen=True)
class Duplicates:
    """Boards that repeat an earlier one, cell by cell, and turned or mirrored in any of eight ways."""

    exact: Share
    under_symmetry: Share


@dataclass(frozen=True)
class Diversity:
    """Diversity of the first ``boards`` boards; compare only samples of the same size.

    ``coverage`` is the share of all 3x3 windows of the corpus whose pattern occurs on the boards, ``novel`` the share
    of the boards' windows whose pattern never occurs in the corpus; None where boards are smaller than 3x3.
    ``solutions`` counts the pairs (pushes, box changes) that occur among the push-optimal solutions of the ``solved``
    boards, ``effective_solutions`` is 2^H with H the entropy of the pairs in bits: as many equally frequent pairs
    would be as diverse.
    """

    boards: int
    pairwise_distance: float | None  # mean number of cells in which two boards differ; None for one board
    patterns: int | None
    coverage: float | None
    novel: float | None
    solved: int
    solutions: int
    effective_solutions: float


def count_duplicates(boards: Tokens) -> Duplicates:
    """n boards of which d are distinct hold n - d duplicates.

    >>> found = count_duplicates(np.array([[[2, 3, 4]], [[4, 3, 2]], [[1, 3, 4]]], np.uint8))
    >>> found.exact.count, found.under_symmetry.count
    (1, 2)
    """
    turned = [(each.shape[1:], each) for each in symmetries(without_player(boards))]
    # A board's text goes with its shape: 2x3 and 3x2 boards of the same bytes are different boards.
    texts = [[(shape, board.tobytes()) for board in each] for shape, each in turned]
    n = len(boards)
    return Duplicates(
        exact=share_of(n - len(set(texts[0])), n),
        under_symmetry=share_of(n - len({min(eight) for eight in zip(*texts, strict=True)}), n),
    )


def pairwise_distance(boards: Tokens) -> float:
    """The mean Hamming distance of two different boards of n, over all pairs.

    With c_it boards that have tile t in cell i, it is the sum over i of (n² - sum over t of c_it²) / (n (n - 1)).

    >>> pairwise_distance(np.array([[[0, 1]], [[0, 0]], [[1, 0]]], np.uint8)).__round__(3)
    1.333
    """
    n = len(boards)
    if n < 2:
        raise MaskobanError(f"a mean distance needs at least 2 boards, got {n}")
    erased = without_player(boards).reshape(n, -1)
    counts = np.stack([(erased == tile).sum(axis=0, dtype=np.int64) for tile in range(TILES + 1)])
    return float((n * n - (counts**2).sum(axis=0)).sum() / (n * (n - 1)))


def measure_diversity(boards: Tokens, corpus: Patterns, measures: BoardMeasures) -> Diversity:
    """Diversity of the first boards, as many as have their ``measures``.

    >>> from maskoban.evaluation.measures.board_measures import measure_boards
    >>> boards = np.array([[[2, 3, 4]], [[4, 3, 2]]], np.uint8)
    >>> measure_diversity(boards, Patterns(np.zeros(0, np.uint32), np.zeros(0, np.int64)), measure_boards(boards))
    Diversity(boards=2, pairwise_distance=2.0, patterns=None, coverage=None, novel=None, solved=2, solutions=1, \
effective_solutions=1.0)
    """
    boards = boards[: measures.boards]
    pairs = Counter(zip(measures.pushes, measures.box_changes, strict=True))
    del pairs[None, None]  # of boards that are not solved
    shares = np.array(list(pairs.values())) / max(pairs.total(), 1)
    patterns = coverage = novel = None
    if has_windows(boards):
        found = count_patterns(boards)
        new, covered = ~np.isin(found.codes, corpus.codes), np.isin(corpus.codes, found.codes)
        patterns, novel = len(found.codes), float(found.counts[new].sum() / found.counts.sum())
        coverage = float(corpus.counts[covered].sum() / max(corpus.counts.sum(), 1))
    return Diversity(
        boards=len(boards),
        pairwise_distance=pairwise_distance(boards) if len(boards) > 1 else None,
        patterns=patterns,
        coverage=coverage,
        novel=novel,
        solved=pairs.total(),
        solutions=len(pairs),
        effective_solutions=float(2 ** -(shares * np.log2(shares)).sum()) if pairs else 0.0,
    )
