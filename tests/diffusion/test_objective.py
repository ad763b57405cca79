"""The loss, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from maskoban.boards import Level
from maskoban.diffusion.corruption import Corrupted
from maskoban.diffusion.objective import masked_cross_entropy, objective
from maskoban.diffusion.schedule import weights


def tokens(text: str) -> torch.Tensor:
    return torch.from_numpy(Level.parse(text).tokens.copy()).long().reshape(1, 9)


BOARD = tokens("#@#\n#$#\n#.#")
SEEN = tokens("#@#\n#?#\n??#")


def test_the_loss_of_a_3x3_board_by_hand() -> None:
    """Hidden: a box, a wall and a goal, given probabilities 1/2, 1/4 and 1/10 by the network."""
    logits = torch.full((1, 9, 7), -3.0)  # what is said about visible cells must not matter
    for cell, tile, p in ((4, 3, 1 / 2), (6, 0, 1 / 4), (7, 4, 1 / 10)):
        logits[0, cell] = math.log((1 - p) / 6)
        logits[0, cell, tile] = math.log(p)
    hidden = SEEN == 7
    assert hidden.nonzero()[:, 1].tolist() == [4, 6, 7]
    mean = (math.log(2) + math.log(4) + math.log(10)) / 3
    assert masked_cross_entropy(logits, BOARD, hidden).item() == pytest.approx(mean)

    for t, weight in ((3, 10.0), (20, 5.0), (100, 1.0)):
        corrupted = Corrupted(SEEN, hidden, torch.tensor([t]))
        table = torch.tensor(weights("linear", 100, cap=10.0))
        assert objective(logits, BOARD, corrupted, table).item() == pytest.approx(weight * mean)


def test_a_batch_averages_over_boards_not_over_cells() -> None:
    logits = torch.zeros(2, 9, 7)
    logits[1, :, 1] = -1e9  # the second board's network rules tile 1 out, and says 1/6 for the rest
    hidden = torch.zeros(2, 9, dtype=torch.bool)
    hidden[0, 0] = True
    hidden[1] = True
    boards = torch.zeros(2, 9, dtype=torch.long)
    corrupted = Corrupted(boards, hidden, torch.tensor([1, 1]))
    loss = objective(logits, boards, corrupted, torch.ones(2))
    assert loss.item() == pytest.approx((math.log(7) + math.log(6)) / 2)


def test_a_board_with_nothing_hidden_adds_nothing() -> None:
    logits = torch.randn(1, 9, 7, requires_grad=True)
    corrupted = Corrupted(BOARD, torch.zeros(1, 9, dtype=torch.bool), torch.tensor([1]))
    loss = objective(logits, BOARD, corrupted, torch.full((2,), 10.0))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_half_precision_logits_are_graded_in_fp32() -> None:
    logits = torch.randn(1, 9, 7)
    hidden = torch.ones(1, 9, dtype=torch.bool)
    half = masked_cross_entropy(logits.bfloat16(), BOARD, hidden)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(masked_cross_entropy(logits.bfloat16().float(), BOARD, hidden).item())
