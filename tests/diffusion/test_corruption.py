"""Which cells are hidden, how many, and when."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.stats import binom

from maskoban.boards.tiles import MASK
from maskoban.diffusion.corruption import draw_times, hide_exactly, hide_independently
from maskoban.diffusion.schedule import masked_share, rarity
from tests.diffusion.dummies import agrees

CPU = torch.device("cpu")


def test_every_cell_is_hidden_on_its_own_with_probability_one_minus_alpha() -> None:
    torch.manual_seed(1)
    boards = torch.zeros(20_000, 6, dtype=torch.long)
    share = torch.tensor(masked_share("cosine", 10))
    hidden = hide_independently(boards, torch.full((20_000,), 4), share, torch.rand(boards.shape)).hidden
    rate = 1 - math.cos(math.pi * 4 / 20)
    # The number hidden a board is binomial, and every cell takes its share.
    assert agrees(np.bincount(hidden.sum(1), minlength=7), binom.pmf(np.arange(7), 6, rate))
    for cell in range(6):
        yes = int(hidden[:, cell].sum())
        assert agrees(np.array([yes, 20_000 - yes]), np.array([rate, 1 - rate]))


def test_exactly_t_over_T_of_the_cells_are_hidden_rounded_up() -> None:
    torch.manual_seed(2)
    t = torch.arange(1, 11)
    for cells in (5, 10, 25):
        boards = torch.zeros(10, cells, dtype=torch.long)
        corrupted = hide_exactly(boards, t, steps=10, noise=torch.rand(boards.shape))
        assert corrupted.hidden.sum(1).tolist() == [math.ceil(int(i) * cells / 10) for i in t]


def test_every_subset_of_that_size_is_equally_likely() -> None:
    torch.manual_seed(3)
    boards = torch.zeros(20_000, 5, dtype=torch.long)
    hidden = hide_exactly(boards, torch.full((20_000,), 2), steps=5, noise=torch.rand(boards.shape)).hidden
    subsets = list(combinations(range(5), 2))
    drawn = [tuple(row.nonzero().flatten().tolist()) for row in hidden]
    assert set(drawn) == set(subsets)
    assert agrees(np.array([drawn.count(s) for s in subsets]), np.full(10, 0.1))


def test_hidden_cells_show_the_mask_and_the_others_their_tile() -> None:
    boards = torch.randint(0, 7, (50, 9))
    t, noise = torch.full((50,), 5), torch.rand(50, 9)
    share = torch.full((10,), 0.5)
    for corrupted in (hide_exactly(boards, t, 9, noise), hide_independently(boards, t, share, noise)):
        assert (corrupted.tokens[corrupted.hidden] == MASK).all()
        assert (corrupted.tokens[~corrupted.hidden] == boards[~corrupted.hidden]).all()
        assert (corrupted.t == t).all()


def test_times_are_uniform_from_1_to_T() -> None:
    torch.manual_seed(4)
    t = draw_times(30_000, 10, stratified=False, device=CPU)
    assert agrees(np.bincount(t, minlength=11)[1:], np.full(10, 0.1))


def test_a_power_draws_few_hidden_cells_more_often_and_rarity_makes_up_for_it() -> None:
    torch.manual_seed(9)
    t = draw_times(30_000, 10, stratified=False, device=CPU, power=2.0)
    share = np.sqrt(np.arange(1, 11) / 10) - np.sqrt(np.arange(10) / 10)
    assert agrees(np.bincount(t, minlength=11)[1:], share)
    assert (rarity(10, 2.0)[1:] * share).tolist() == pytest.approx([0.1] * 10)
    assert rarity(10, 1.0)[1:].tolist() == pytest.approx([1.0] * 10)


def test_stratified_times_spread_over_every_batch_and_stay_uniform() -> None:
    torch.manual_seed(5)
    batches = torch.stack([draw_times(25, 10, stratified=True, device=CPU) for _ in range(4000)])
    for batch in batches[:100]:
        counts = torch.bincount(batch, minlength=11)[1:]
        assert counts.sum() == 25
        assert counts.min() >= 2
        assert counts.max() <= 3  # 2.5 of each value
    place = torch.randint(0, 25, (4000,))
    assert agrees(np.bincount(batches[torch.arange(4000), place], minlength=11)[1:], np.full(10, 0.1))
    assert batches.min() == 1
    assert batches.max() == 10
