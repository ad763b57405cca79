"""A wrong kernel is found out. (That ours are right on a device only a device can show: benchmarks/device.py.)"""

from __future__ import annotations

import pytest
import torch

from maskoban.nn.networks import InteriorNetwork, Network, PaperNetwork
from maskoban.nn.self_test import _errors, _trials, kernel_self_test


def test_nothing_is_fused_on_a_cpu() -> None:
    assert kernel_self_test(InteriorNetwork(), 4, backward=True) == {}
    assert kernel_self_test(PaperNetwork(), 4, backward=True) == {}


INTERIOR = ["squared ReLU", "attention of normalised rows", "attention of one cell"]
DROPPING = ["attention with dropout", "sum, dropout and norm", "GELU and dropout"]


@pytest.mark.parametrize(
    ("network", "backward", "more"),
    [
        (InteriorNetwork(blocks=1), True, INTERIOR),
        (InteriorNetwork(blocks=1), False, INTERIOR),
        (PaperNetwork(blocks=1), True, DROPPING),
        (PaperNetwork(blocks=1), False, []),  # nothing is dropped in drawing
        (PaperNetwork(blocks=1, dropout=0.0), True, []),
    ],
)
def test_what_a_network_fuses_is_tried_against_the_same_in_plain_torch(
    network: Network, backward: bool, more: list[str]
) -> None:
    trials = _trials(network, 6, backward)
    assert list(trials) == ["attention", *more]
    for fused, plain, x in trials.values():  # on a CPU both are plain
        assert max(_errors(fused, plain, x, backward, first=True)) < 1e-5


@pytest.mark.parametrize("boards", [3, 16, 40, 200])
def test_the_error_of_a_kernel_is_a_share_of_its_result(boards: int) -> None:
    torch.manual_seed(boards)
    x = torch.randn(boards, 5, 8)
    assert _errors(torch.sin, torch.sin, x, True) == [0, 0]
    assert _errors(lambda x: 1.1 * torch.sin(x), torch.sin, x, True) == pytest.approx([0.1, 0.1])
    assert _errors(lambda x: 1.1 * torch.sin(x), torch.sin, x, False) == pytest.approx([0.1])


@pytest.mark.parametrize("first", [False, True])
def test_every_turn_of_a_program_that_takes_board_after_board_is_looked_at(first: bool) -> None:
    """1,536 boards and 8 heads among 528 programs are 23 turns; whichever goes wrong, it shows."""
    x = torch.randn(1536, 2, 4)
    turn = torch.arange(1536) * 8 // 528
    for wrong in range(3 if first else 23):
        factor = torch.where(turn == wrong, 2.0, 1.0)[:, None, None]
        assert min(_errors(lambda x, factor=factor: x * factor, lambda x: 1 * x, x, True, first)) > 0.1


def test_a_fault_in_the_last_board_or_only_in_the_gradient_is_seen() -> None:
    x = torch.randn(50, 5, 8)
    last = torch.ones(50, 1, 1)
    last[-1] = 2
    assert min(_errors(lambda x: x * last, lambda x: 1 * x, x, True)) > 0.1
    value, gradient = _errors(lambda x: x + (x - x.detach()), lambda x: 1 * x, x, True)
    assert value == 0
    assert gradient == pytest.approx(1)
