"""The shipped reference: the held-out figures to the digit, and made again from the levels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from maskoban.boards import read_boards
from maskoban.boards.synth import synthesize
from maskoban.evaluation import fit_exponent
from maskoban.evaluation.reference import (
    SHIPPED,
    Reference,
    load_reference,
    measure_reference,
    save_reference,
)


def assert_equal(one: Reference, other: Reference) -> None:
    assert np.array_equal(one.patterns.codes, other.patterns.codes)
    assert np.array_equal(one.patterns.counts, other.patterns.counts)
    # Another processor may round a logarithm differently in its last digit.
    assert one.held_out_jsd == pytest.approx(other.held_out_jsd, rel=1e-12)
    assert one.held_out_distances == other.held_out_distances
    assert (one.tiles, one.held_out_tiles) == (other.tiles, other.held_out_tiles)


def test_the_shipped_figures() -> None:
    shipped = load_reference()
    assert {size: round(jsd, 5) for size, jsd in shipped.held_out_jsd.items()} == {
        250: 0.21544,
        500: 0.16792,
        1_000: 0.12691,
        2_500: 0.08345,
        5_000: 0.05892,
        10_000: 0.04050,
        25_000: 0.02371,
        50_000: 0.01560,
    }
    assert fit_exponent(shipped.held_out_jsd) == pytest.approx(-0.59, abs=0.005)
    assert len(shipped.patterns.codes) == 264_981
    assert shipped.patterns.counts.sum() == 64 * 450_000
    distances = shipped.held_out_distances
    assert (distances.median, distances.mean, distances.exact) == (12, 11.32662, 19)
    assert distances.within_five.share == 0.07486
    assert round(shipped.tiles["wall"], 3) == 68.601
    assert round(shipped.held_out_tiles["wall"], 3) == 68.658
    assert SHIPPED.stat().st_size < 500_000


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    corpus = synthesize(300, 7, 7, 2)
    reference = measure_reference(corpus[:40], corpus)
    assert reference.held_out_distances.exact >= 40
    save_reference(reference, tmp_path / "reference.npz")
    assert_equal(load_reference(tmp_path / "reference.npz"), reference)


def test_boxoban_gives_the_shipped_reference(boxoban: Path) -> None:
    corpus, held_out = (read_boards(boxoban / "medium" / split) for split in ("train", "valid"))
    assert_equal(measure_reference(corpus, held_out), load_reference())
