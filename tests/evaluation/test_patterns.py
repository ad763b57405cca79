"""3x3 patterns: every window counts, and divergences follow the formula."""

from __future__ import annotations

from collections import Counter
from math import log2

import numpy as np
import pytest

from maskoban.boards import Tokens
from maskoban.errors import MaskobanError
from maskoban.evaluation import (
    Patterns,
    count_patterns,
    divergence,
    fit_exponent,
    measure_patterns,
    pattern_curve,
    pattern_jsd,
)

from .boards import scribbles


def slow_patterns(boards: Tokens) -> Counter[tuple[int, ...]]:
    counts: Counter[tuple[int, ...]] = Counter()
    for board in boards:
        for row in range(board.shape[0] - 2):
            for column in range(board.shape[1] - 2):
                counts[tuple(board[row : row + 3, column : column + 3].ravel().tolist())] += 1
    return counts


def slow_jsd(p: Counter[tuple[int, ...]], q: Counter[tuple[int, ...]]) -> float:
    total = 0.0
    for pattern in p.keys() | q.keys():
        shares = p[pattern] / p.total(), q[pattern] / q.total()
        middle = sum(shares) / 2
        total += sum(s * log2(s / middle) / 2 for s in shares if s > 0)
    return total


def test_a_board_of_ten_by_ten_has_64_windows() -> None:
    assert count_patterns(scribbles(3, 10, 10)).counts.sum() == 3 * 64


def test_counts_against_window_by_window() -> None:
    boards = scribbles(40, 5, 6, tiles=2)
    found = count_patterns(boards)
    assert found.codes.tolist() == sorted(found.codes.tolist())
    cells = (found.codes[:, None] >> np.arange(24, -1, -3)) & 7
    assert dict(zip(map(tuple, cells.tolist()), found.counts.tolist(), strict=True)) == slow_patterns(boards)


def test_every_tile_and_mask_is_told_apart() -> None:
    boards = np.repeat(np.arange(8, dtype=np.uint8), 9).reshape(8, 3, 3)
    assert len(count_patterns(boards).codes) == 8


@pytest.mark.parametrize("tiles", [2, 7])
def test_divergence_against_the_formula(tiles: int) -> None:
    one, other = scribbles(30, 5, 5, tiles, seed=1), scribbles(50, 5, 5, tiles, seed=2)
    slow = slow_jsd(slow_patterns(one), slow_patterns(other))
    assert pattern_jsd(one, count_patterns(other)) == pytest.approx(slow, rel=1e-12)
    assert pattern_jsd(other, count_patterns(one)) == pytest.approx(slow, rel=1e-12)


def test_the_ends_of_the_scale() -> None:
    ones, twos = (Patterns(np.array([code], np.uint32), np.array([5])) for code in (1, 2))
    assert divergence(ones, ones) == 0
    assert divergence(ones, twos) == 1


def test_a_curve_takes_the_first_boards() -> None:
    boards, reference = scribbles(20, 5, 5, 2), count_patterns(scribbles(90, 5, 5, 2, seed=1))
    assert pattern_curve(boards, reference, (5, 20, 21)) == {
        5: pattern_jsd(boards[:5], reference),
        20: pattern_jsd(boards, reference),
    }


def test_an_exponent_is_fitted_from_ten_thousand_on() -> None:
    power = {size: 7 * size**-0.59 for size in (10_000, 25_000, 50_000)}
    assert fit_exponent({250: 0.2} | power) == pytest.approx(-0.59)
    assert fit_exponent({250: 0.2, 10_000: 0.1}) is None


def test_held_out_levels_beside_themselves() -> None:
    boards, reference = scribbles(500, 4, 4, 2), count_patterns(scribbles(900, 4, 4, 2, seed=1))
    match = measure_patterns(boards, reference, {250: 0.5, 500: pattern_jsd(boards, reference), 1_000: 0.1})
    assert list(match.jsd) == [250, 500]
    assert match.ratio == {250: match.jsd[250] / 0.5, 500: 1.0}
    assert (match.exponent, match.held_out_exponent) == (None, None)


def test_there_is_no_ratio_to_levels_that_do_not_differ_from_the_corpus() -> None:
    boards, reference = scribbles(500, 4, 4, 2), count_patterns(scribbles(900, 4, 4, 2, seed=1))
    match = measure_patterns(boards, reference, {250: 0.5, 500: 0.0})
    assert match.ratio == {250: match.jsd[250] / 0.5, 500: None}


def test_too_few_boards_or_held_out_levels_are_refused() -> None:
    boards = scribbles(40, 4, 4)
    with pytest.raises(MaskobanError, match="patterns need at least 250 boards, and there are 40"):
        measure_patterns(boards, count_patterns(boards), {250: 0.5})
    with pytest.raises(
        MaskobanError, match="at least 250 held-out levels of at least 3x3, and there are fewer"
    ):
        measure_patterns(boards, count_patterns(boards), {})


def test_boards_too_small_for_a_window_are_refused() -> None:
    with pytest.raises(MaskobanError, match="at least 3x3"):
        count_patterns(scribbles(4, 2, 8))
