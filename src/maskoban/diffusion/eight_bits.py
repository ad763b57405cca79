"""Weights in 8 bits: whole numbers from -127 to 127, and beside them what each row is to be multiplied with."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from maskoban.boards.errors import MaskobanError

#: How the scales of the tensor NAME are called: NAME.scale.
SCALE = ".scale"

#: Matrices of fewer numbers are not worth the rounding: embeddings, norms, the head.
_LARGE = 1 << 15


def in_eight_bits(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same with every large matrix as 8-bit numbers, each row with a scale of its own, and the rest in fp16.

    >>> kept = in_eight_bits({"small": torch.ones(3), "large": torch.randn(4, 128, 128)})
    >>> {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in kept.items()}
    {'small': (torch.float16, (3,)), 'large': (torch.int8, (4, 128, 128)), 'large.scale': (torch.bfloat16, (4, 128, 1))}
    """
    kept: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim < 2 or tensor.numel() < _LARGE:
            kept[name] = tensor.half()
            continue
        # In bf16, so that 127 times the scale is exact: what was kept in 8 bits once is kept as it is.
        scale = (tensor.abs().amax(-1, keepdim=True) / 127).clamp_min(1e-12).bfloat16()
        kept[name] = (tensor / scale).round().to(torch.int8)
        kept[name + SCALE] = scale
    return kept


def widened(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same with what is kept in 8 bits as fp32.

    >>> widened({"a": torch.tensor([[1, -127]], dtype=torch.int8), "a.scale": torch.tensor([[0.5]])})
    {'a': tensor([[  0.5000, -63.5000]])}
    """
    wide = dict(tensors)
    for name, tensor in tensors.items():
        if tensor.dtype == torch.int8:
            scale = wide.pop(name + SCALE, None)
            if scale is None or scale.shape != (*tensor.shape[:-1], 1):
                what = (
                    "missing" if scale is None else f"of shape {tuple(scale.shape)}, which is not one a row"
                )
                raise MaskobanError(f"{name + SCALE} is {what}; the file is broken")
            wide[name] = tensor.float() * scale
    return wide
