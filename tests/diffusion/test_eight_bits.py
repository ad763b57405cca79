"""Weights in 8 bits: rounded once and no further, and never without their scales."""

from __future__ import annotations

import pytest
import torch

from maskoban.boards import MaskobanError
from maskoban.diffusion.eight_bits import in_eight_bits, widened


def test_what_is_kept_in_eight_bits_is_kept_as_it_is_the_second_time() -> None:
    rows = torch.randn(3, 128, 128) * torch.logspace(-9, 4, 128)[:, None]
    rows[1, 5] = 0
    once = in_eight_bits({"rows": rows})
    wide = widened(once)["rows"]
    step = rows.abs().amax(-1, keepdim=True) / 127
    assert ((wide - rows).abs() <= 0.76 * step).all()  # half a step, and what the scale was rounded by
    again = in_eight_bits({"rows": wide})
    assert again.keys() == once.keys()
    assert all(again[k].dtype == once[k].dtype and torch.equal(again[k], once[k]) for k in once)


def test_a_missing_scale_is_named() -> None:
    with pytest.raises(MaskobanError, match=r"rows\.scale is missing"):
        widened({"rows": torch.zeros(2, 2, dtype=torch.int8)})
