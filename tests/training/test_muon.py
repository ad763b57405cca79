"""Muon over stacks, against torch's own one matrix at a time."""

from __future__ import annotations

import pytest
import torch

from maskoban.training.muon import StackedMuon, orthogonalise


def test_singular_values_become_about_one_and_directions_stay() -> None:
    torch.manual_seed(0)
    for rows, columns in ((16, 16), (32, 8), (8, 32)):
        stack = torch.randn(3, rows, columns)
        after = orthogonalise(stack).float()
        assert after.shape == stack.shape
        values = torch.linalg.svdvals(after)
        assert values.min() > 0.3
        assert values.max() < 1.3
        u, _, v = torch.linalg.svd(stack, full_matrices=False)
        assert ((u @ v) * after).sum((1, 2)).min() > 0.6 * min(rows, columns)


def test_a_matrix_of_zeros_stays_zero() -> None:
    assert not orthogonalise(torch.zeros(2, 4, 6)).any()


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch is older than torch.optim.Muon")
@pytest.mark.parametrize("shape", [(2, 8, 8), (3, 16, 8), (2, 3, 8, 16)])
def test_stacks_move_as_torchs_muon_moves_each_matrix(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    ours = torch.nn.Parameter(torch.randn(shape))
    theirs = [torch.nn.Parameter(m.clone()) for m in ours.detach().flatten(0, -3)]
    stacked = StackedMuon([ours], lr=0.02, momentum=0.95)
    single = torch.optim.Muon(theirs, lr=0.02, momentum=0.95, weight_decay=0.0, nesterov=True)
    start = ours.detach().clone()
    for _ in range(4):
        grad = torch.randn(shape)
        ours.grad = grad.clone()
        for p, g in zip(theirs, grad.flatten(0, -3), strict=True):
            p.grad = g.clone()
        stacked.step()
        single.step()
    moved = (ours - start).norm()
    apart = (ours.detach().flatten(0, -3) - torch.stack([p.detach() for p in theirs])).norm()
    assert apart < 0.01 * moved  # bf16 keeps two to three digits


def test_a_parameter_without_gradient_stays() -> None:
    p = torch.nn.Parameter(torch.ones(1, 2, 2))
    StackedMuon([p], lr=1.0, momentum=0.9).step()
    assert torch.equal(p, torch.ones(1, 2, 2))
