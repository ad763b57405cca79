"""The objective: what one training step minimises."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban.diffusion.corruption import Corrupted


def masked_cross_entropy(logits: Tensor, boards: Tensor, hidden: Tensor) -> Tensor:
    """Mean of -log p(x_i) over each board's hidden cells: (boards,). A board with nothing hidden gives 0."""
    loss = F.cross_entropy(logits.float().flatten(0, 1), boards.flatten(), reduction="none").view(
        boards.shape
    )
    return (loss * hidden).sum(1) / hidden.sum(1).clamp(min=1)


def objective(logits: Tensor, boards: Tensor, corrupted: Corrupted, weights: Tensor) -> Tensor:
    """L = E[ w(t) * 1/|M| * sum over i in M of -log p(x_i | x_t, t) ], averaged over the batch.

    ``weights`` is the table of ``schedule.weights``: the paper's min(T/t, 10), the ELBO's 1, any cap between.
    """
    return torch.mean(weights[corrupted.t] * masked_cross_entropy(logits, boards, corrupted.hidden))
