"""The objective: which cells are masked, how many and when; and the loss, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from torch import Tensor

from maskoban.boards import Level
from maskoban.boards.geometry import symmetries
from maskoban.boards.tiles import MASK
from maskoban.diffusion.schedule import masked_share, rarity, weights
from maskoban.nn.networks import Network
from maskoban.training.config import PAPER, TINY
from maskoban.training.objective import (
    Corrupted,
    TrainingLoss,
    cross_entropy,
    draw_times,
    mask_exactly,
    mask_independently,
    masked_average,
)
from tests.diffusion.dummies import agrees

CPU = torch.device("cpu")


def test_every_cell_is_masked_on_its_own_with_probability_one_minus_alpha() -> None:
    torch.manual_seed(1)
    boards = torch.zeros(20_000, 6, dtype=torch.long)
    share = torch.tensor(masked_share("cosine", 10))
    masked = mask_independently(boards, torch.full((20_000,), 4), share, torch.rand(boards.shape)).masked
    rate = 1 - math.cos(math.pi * 4 / 20)
    # The number masked a board is binomial, and every cell takes its share.
    assert agrees(np.bincount(masked.sum(1), minlength=7), binom.pmf(np.arange(7), 6, rate))
    for cell in range(6):
        yes = int(masked[:, cell].sum())
        assert agrees(np.array([yes, 20_000 - yes]), np.array([rate, 1 - rate]))


def test_exactly_t_over_T_of_the_cells_are_masked_rounded_up() -> None:
    torch.manual_seed(2)
    t = torch.arange(1, 11)
    for cells in (5, 10, 25):
        boards = torch.zeros(10, cells, dtype=torch.long)
        corrupted = mask_exactly(boards, t, steps=10, noise=torch.rand(boards.shape))
        assert corrupted.masked.sum(1).tolist() == [math.ceil(int(i) * cells / 10) for i in t]


def test_every_subset_of_that_size_is_equally_likely() -> None:
    torch.manual_seed(3)
    boards = torch.zeros(20_000, 5, dtype=torch.long)
    masked = mask_exactly(boards, torch.full((20_000,), 2), steps=5, noise=torch.rand(boards.shape)).masked
    subsets = list(combinations(range(5), 2))
    sampled = [tuple(row.nonzero().flatten().tolist()) for row in masked]
    assert set(sampled) == set(subsets)
    assert agrees(np.array([sampled.count(s) for s in subsets]), np.full(10, 0.1))


def test_masked_cells_show_the_mask_and_the_others_their_tile() -> None:
    boards = torch.randint(0, 7, (50, 9))
    t, noise = torch.full((50,), 5), torch.rand(50, 9)
    share = torch.full((10,), 0.5)
    for corrupted in (mask_exactly(boards, t, 9, noise), mask_independently(boards, t, share, noise)):
        assert (corrupted.tokens[corrupted.masked] == MASK).all()
        assert (corrupted.tokens[~corrupted.masked] == boards[~corrupted.masked]).all()
        assert (corrupted.t == t).all()


def test_times_are_uniform_from_1_to_T() -> None:
    torch.manual_seed(4)
    t = draw_times(30_000, 10, stratified=False, device=CPU)
    assert agrees(np.bincount(t, minlength=11)[1:], np.full(10, 0.1))


def test_a_power_samples_few_masked_cells_more_often_and_rarity_makes_up_for_it() -> None:
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


# -- the loss


def tokens(text: str) -> torch.Tensor:
    return torch.from_numpy(Level.parse(text).tokens.copy()).long().reshape(1, 9)


BOARD = tokens("#@#\n#$#\n#.#")
SEEN = tokens("#@#\n#?#\n??#")


def corrupted(boards: torch.Tensor, masked: torch.Tensor, *t: int) -> Corrupted:
    return Corrupted(torch.where(masked, MASK, boards), masked, torch.tensor(t), masked.sum() / len(boards))


@pytest.mark.parametrize("average", ["board", "batch"])
def test_the_loss_of_a_3x3_board_by_hand(average: Literal["board", "batch"]) -> None:
    """Masked: a box, a wall and a goal, with probabilities 1/2, 1/4 and 1/10. Alone, a board is the batch."""
    logits = torch.full((1, 9, 7), -3.0)  # the logits of visible cells must not matter
    for cell, tile, p in ((4, 3, 1 / 2), (6, 0, 1 / 4), (7, 4, 1 / 10)):
        logits[0, cell] = math.log((1 - p) / 6)
        logits[0, cell, tile] = math.log(p)
    masked = SEEN == 7
    assert masked.nonzero()[:, 1].tolist() == [4, 6, 7]
    mean = (math.log(2) + math.log(4) + math.log(10)) / 3
    table = torch.tensor(weights("linear", 100, cap=10.0))
    preset = replace(PAPER, average=average)
    for t, weight in ((3, 10.0), (20, 5.0), (100, 1.0)):
        found = cross_entropy(logits, BOARD, corrupted(BOARD, masked, t), table[[t]], preset)
        assert found.item() == pytest.approx(weight * mean)


def slow_average(loss: np.ndarray, masked: np.ndarray, w: np.ndarray, average: str) -> float:
    """The two formulas, cell by cell."""
    boards = range(len(loss))
    sums = [sum(w[b] * loss[b, i] for i in range(loss.shape[1]) if masked[b, i]) for b in boards]
    if average == "board":
        return sum(sums[b] / max(masked[b].sum(), 1) for b in boards) / len(loss)
    return sum(sums) / max(masked.sum(), 1)


@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(0, 1), st.sampled_from(["board", "batch"]))
def test_both_averages_equal_their_formulas(seed: int, boards: int, share: float, average: str) -> None:
    rng = np.random.default_rng(seed)
    loss, w, masked = rng.random((boards, 5)), 10 * rng.random(boards), rng.random((boards, 5)) < share
    corruption = corrupted(torch.zeros(boards, 5, dtype=torch.long), torch.from_numpy(masked), *[1] * boards)
    found = masked_average(torch.from_numpy(loss), corruption, torch.from_numpy(w), average)
    assert found.item() == pytest.approx(slow_average(loss, masked, w, average), abs=1e-6)


@pytest.mark.parametrize("average", ["board", "batch"])
def test_the_mean_over_processes_is_the_loss_of_the_whole_batch(average: str) -> None:
    torch.manual_seed(6)
    loss, w, masked = torch.rand(8, 5), torch.rand(8), torch.rand(8, 5) < torch.rand(8, 1)
    whole = corrupted(torch.zeros(8, 5, dtype=torch.long), masked, *range(1, 9))
    parts = [
        masked_average(loss[rows], whole.part(rows), w[rows], average) for rows in (slice(0, 4), slice(4, 8))
    ]
    torch.testing.assert_close(sum(parts) / 2, masked_average(loss, whole, w, average))


def test_a_cell_weighs_by_its_board_or_the_same_everywhere() -> None:
    """The first board has one masked cell, the second all nine."""
    masked = torch.zeros(2, 9, dtype=torch.bool)
    masked[0, 0] = True
    masked[1] = True
    corruption = corrupted(torch.zeros(2, 9, dtype=torch.long), masked, 1, 9)
    for average, ratio in (("board", 9), ("batch", 1)):
        loss = torch.zeros(2, 9, requires_grad=True)
        masked_average(loss, corruption, torch.ones(2), average).backward()
        assert loss.grad is not None
        assert (loss.grad[0, 0] / loss.grad[1, 0]).item() == pytest.approx(ratio)
        assert (loss.grad[~masked] == 0).all()


def test_the_elbo_is_the_board_average_with_weight_1_and_the_batch_average_with_weight_T_over_t() -> None:
    """With exact corruption and T equal to the cells, every t once: 1/T sum over t of T/t * sum over M / cells."""
    torch.manual_seed(7)
    cells = steps = 9
    t = torch.arange(1, steps + 1)
    whole = mask_exactly(torch.zeros(steps, cells, dtype=torch.long), t, steps, torch.rand(steps, cells))
    loss = torch.rand(steps, cells)
    elbo = ((steps / t) * (loss * whole.masked).sum(1) / cells).mean()
    torch.testing.assert_close(masked_average(loss, whole, torch.ones(steps), "board"), elbo)
    constant = cells * steps / whole.masked.sum()  # depends on no cell
    torch.testing.assert_close(masked_average(loss, whole, steps / t, "batch"), elbo * constant)


@pytest.mark.parametrize("average", ["board", "batch"])
def test_a_board_with_nothing_masked_adds_nothing(average: Literal["board", "batch"]) -> None:
    logits = torch.randn(1, 9, 7, requires_grad=True)
    nothing = corrupted(BOARD, torch.zeros(1, 9, dtype=torch.bool), 1)
    loss = cross_entropy(logits, BOARD, nothing, torch.tensor([10.0]), replace(PAPER, average=average))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_half_precision_logits_are_graded_in_fp32() -> None:
    logits, everything = (
        torch.randn(1, 9, 7).bfloat16(),
        corrupted(BOARD, torch.ones(1, 9, dtype=torch.bool), 9),
    )
    half, exact = (
        cross_entropy(each, BOARD, everything, torch.ones(1), PAPER) for each in (logits, logits.float())
    )
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(exact.item())


class Recording(Network):
    """A network that keeps what it was given."""

    def forward(self, tokens: Tensor, *_: Any, **given: Any) -> Tensor:
        self.given = {"tokens": tokens, **given}
        return torch.zeros(*tokens.shape, 7, requires_grad=True)


@pytest.mark.parametrize(("shape", "allowed"), [((5, 5), set(range(8))), ((5, 7), {0, 2, 4, 6})])
def test_boards_are_turned_as_their_labels_say(shape: tuple[int, int], allowed: set[int]) -> None:
    preset = replace(TINY, height=shape[0], width=shape[1], symmetry=0.5, diffusion_steps=15)
    network = Recording(*shape)
    objective = TrainingLoss(network, preset, slice(None), torch.device("cpu"))
    torch.manual_seed(0)
    boards = torch.randint(0, 7, (400, network.cells))
    noise = objective.noise(boards)
    objective.loss(boards, *noise)
    turn, seen = network.given["turn"], network.given["tokens"]
    assert set(turn.tolist()) == allowed
    assert 0.4 < (turn != 0).float().mean() < 0.6
    for board, number, tokens in zip(boards, turn.tolist(), seen, strict=True):
        turned = symmetries(board.view(network.rows, network.columns).numpy().astype(np.uint8))[
            number
        ].ravel()
        masked = tokens.numpy() == MASK
        assert (tokens.numpy() == turned)[~masked].all()
        assert masked.any()
    network.eval()
    objective.loss(boards, *objective.noise(boards))
    assert "turn" not in network.given
