"""Attention and the feed-forward layer in plain torch, against torch's own functions and by autograd."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from maskoban.nn import layers
from maskoban.nn.attention import attend, attend_reference, normalise_and_rotate, rotary_table
from maskoban.nn.dropout import dropout
from maskoban.nn.layers import rms_norm, squared_relu_linear


def test_attention_without_positions_is_torchs() -> None:
    torch.manual_seed(0)
    qkv = torch.randn(3, 9, 3 * 32)
    q, k, v = (part.view(3, 9, 4, 8).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
    theirs = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(3, 9, 32)
    torch.testing.assert_close(attend_reference(qkv, heads=4), theirs)
    torch.testing.assert_close(attend(qkv, heads=4), theirs)


def test_rotated_products_depend_on_the_distance_between_cells_alone() -> None:
    torch.manual_seed(1)
    rotary = rotary_table(5, 6, 16)
    q, k = (normalise_and_rotate(torch.randn(16).expand(30, 16), rotary).view(5, 6, 16) for _ in range(2))
    here = torch.einsum("rcd,rcd->rc", q[:-1, :-2], k[1:, 2:])  # one row down, two columns right
    torch.testing.assert_close(here, here[0, 0].expand(4, 4))
    there = torch.einsum("rcd,rcd->rc", q[:-2, :-1], k[2:, 1:])
    assert (there - here[0, 0]).abs().min() > 1e-3


def test_rotated_vectors_have_length_one_a_number() -> None:
    x = normalise_and_rotate(torch.randn(2, 20, 8) * 7, rotary_table(4, 5, 8))
    torch.testing.assert_close(x.square().mean(-1), torch.ones(2, 20))


def test_dropped_attention_keeps_its_mean() -> None:
    torch.manual_seed(2)
    qkv = torch.randn(1, 6, 3 * 8)
    whole = attend_reference(qkv, heads=2)
    many = attend_reference(qkv.expand(20_000, 6, 24), heads=2, dropout=0.3, seed=torch.tensor([5, 0]))
    assert (many[0] - whole[0]).abs().max() > 0.01
    torch.testing.assert_close(many.mean(0, keepdim=True), whole, atol=0.02, rtol=0.05)


def test_squared_relu_of_a_normalised_row() -> None:
    x, weight = torch.randn(2, 3, 8), torch.randn(16, 8)
    unit = x / x.square().mean(-1, keepdim=True).sqrt()
    by_hand = (unit @ weight.T).clamp(min=0) ** 2
    torch.testing.assert_close(squared_relu_linear(x, weight), by_hand, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(rms_norm(x), unit, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(layers.kernels is None, reason="Triton is not installed, so there is no fused operator")
def test_the_fused_squared_relu_differentiates_by_the_right_formula() -> None:
    torch.manual_seed(3)
    x = torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(16, 8, dtype=torch.float64, requires_grad=True)
    unit = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    y = torch.relu(unit @ weight.T).square()
    grad = torch.randn_like(y)
    expected = torch.autograd.grad(y, (x, weight), grad)

    class Context:
        saved_tensors = (x.detach(), layers.row_units(x.detach()), weight.detach(), y.detach())

    dx, _, dweight = layers._squared_relu_gradient(Context(), grad)
    for mine, theirs in zip((dx, dweight), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_dropout_zeroes_a_share_p_scales_the_rest_and_follows_its_seed() -> None:
    ones = torch.ones(400, 500)
    for p in (0.1, 0.5, 0.9):
        x = dropout(ones, p, torch.tensor([11, 0]))
        assert set(x.unique().tolist()) == {0.0, torch.tensor(1 / (1 - p)).item()}
        assert (x == 0).float().mean().item() == pytest.approx(p, abs=0.006)
        zeros = x == 0
        assert (zeros[:, 1:] & zeros[:, :-1]).float().mean().item() == pytest.approx(p * p, abs=0.006)
        assert (zeros[1:] & zeros[:-1]).float().mean().item() == pytest.approx(p * p, abs=0.006)
    one, again, other = (dropout(ones, 0.5, torch.tensor([seed, 0])) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert (one == other).float().mean().item() == pytest.approx(0.5, abs=0.01)
    assert dropout(ones, 0.0, torch.tensor([1, 0])) is ones


def test_a_part_of_a_batch_loses_the_numbers_it_would_lose_in_the_whole() -> None:
    torch.manual_seed(4)
    x, qkv = torch.randn(6, 5, 8), torch.randn(6, 5, 3 * 8)
    whole = dropout(x, 0.5, torch.tensor([9, 0]))
    assert torch.equal(dropout(x[4:], 0.5, torch.tensor([9, 4 * 5 * 8])), whole[4:])
    assert not torch.equal(dropout(x[4:], 0.5, torch.tensor([9, 0])), whole[4:])
    whole = attend_reference(qkv, heads=2, dropout=0.5, seed=torch.tensor([9, 0]))
    part = attend_reference(qkv[4:], heads=2, dropout=0.5, seed=torch.tensor([9, 4 * 2]))
    torch.testing.assert_close(part, whole[4:])


def test_dropout_counts_on_past_the_largest_int32() -> None:
    x = dropout(torch.ones(8000), 0.5, torch.tensor([9, 2**31 - 8]))
    assert (x == 0).float().mean().item() == pytest.approx(0.5, abs=0.03)
    assert torch.equal(x[8:], dropout(torch.ones(7992), 0.5, torch.tensor([9, 2**31])))
