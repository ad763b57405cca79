"""Random numbers without state."""

from __future__ import annotations

import numpy as np

from maskoban.diffusion.rng import uniforms
from tests.diffusion.dummies import agrees


def test_a_boards_numbers_do_not_depend_on_its_neighbours() -> None:
    together = uniforms(7, np.arange(50), 3, 8)
    alone = np.concatenate([uniforms(7, np.array([i]), 3, 8) for i in range(50)])
    assert (together == alone).all()
    assert (uniforms(7, np.arange(50), 3, 5) == together[:, :5]).all()


def test_seed_board_purpose_and_index_all_matter() -> None:
    one = uniforms(7, np.arange(100), 0, 100)
    assert len(np.unique(one)) == one.size
    for other in (uniforms(8, np.arange(100), 0, 100), uniforms(7, np.arange(100), 1, 100),
                  uniforms(-7, np.arange(100), 0, 100)):  # fmt: skip
        assert not np.isin(one, other).any()


def test_a_seed_may_be_a_number_of_numpy() -> None:
    for seed in (np.int64(-7), np.int32(-7)):
        assert (uniforms(seed, np.arange(9), 0, 3) == uniforms(-7, np.arange(9), 0, 3)).all()  # type: ignore[arg-type]
    assert (uniforms(np.uint64(2**63), np.arange(9), 0, 3) == uniforms(2**63, np.arange(9), 0, 3)).all()  # type: ignore[arg-type]


def test_numbers_are_uniform_and_neighbours_independent() -> None:
    u = uniforms(0, np.arange(2000), 0, 20)
    assert u.min() >= 0
    assert u.max() < 1
    tenths = (u * 10).astype(int)
    assert agrees(np.bincount(tenths.ravel(), minlength=10), np.full(10, 0.1))
    for first, second in ((tenths[:, :-1], tenths[:, 1:]), (tenths[:-1], tenths[1:])):
        pairs = np.bincount((first * 10 + second).ravel(), minlength=100)
        assert agrees(pairs, np.full(100, 0.01))
