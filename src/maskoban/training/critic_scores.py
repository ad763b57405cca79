"""A critic's scores, and how well they say which boards are of the corpus and which are drawings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskoban.boards.tiles import Tokens
from maskoban.diffusion.critic_network import CriticNetwork

Scores = NDArray[np.floating[Any]]


@torch.no_grad()
def scores(
    critic: CriticNetwork, forward: Callable[..., Tensor], boards: Tokens, batch: int
) -> NDArray[np.float32]:
    """Scores of (n, cells) boards as they are, in batches of one size."""
    critic.eval()
    device, result = critic.bias.device, []
    for start in range(0, len(boards), batch):
        part = torch.from_numpy(boards[start : start + batch]).long()
        n = len(part)
        part = torch.cat([part, part[:1].expand(batch - n, -1)]).to(device)
        turn = torch.zeros(batch, dtype=torch.int64, device=device)
        result.append(forward(part, turn)[:n].float().cpu().numpy())
    return np.concatenate(result)


def cross_entropy(real: Scores, drawn: Scores) -> float:
    """Of saying which is which by these scores."""
    return float(np.logaddexp(0, -real).mean() + np.logaddexp(0, drawn).mean()) / 2


def calibration(real: Scores, drawn: Scores) -> tuple[float, float]:
    """The slope a and shift b for which a score + b says best which is which (Newton's method on two numbers).

    A critic that has begun to learn its levels by heart is too sure of itself; its order of boards is still good.
    """
    x = np.concatenate([real, drawn]).astype(np.float64)
    is_real = np.concatenate([np.ones(len(real)) / len(real), np.zeros(len(drawn))])
    weight = np.concatenate([np.ones(len(real)) / len(real), np.ones(len(drawn)) / len(drawn)])
    if x.std() < 1e-6:
        return 1.0, 0.0
    a, b = 0.0, 0.0  # from a slope that is far too sure, the method would run away
    for _ in range(20):
        p = 1 / (1 + np.exp(-(a * x + b)))
        wrong, firm = weight * p - is_real, weight * p * (1 - p) + 1e-12
        gradient = np.array([wrong @ x, wrong.sum()])
        curve = np.array([[firm @ (x * x), firm @ x], [firm @ x, firm.sum()]])
        step = np.linalg.solve(curve, gradient)
        a, b = a - float(step[0]), b - float(step[1])
    return a, b


def auc(high: Scores, low: Scores) -> float:
    """How often a score of the first kind is above one of the second; equal ones count half.

    >>> auc(np.array([2.0, 3.0]), np.array([1.0, 2.5])), auc(np.zeros(3), np.zeros(2))
    (0.75, 0.5)
    """
    _, place, count = np.unique(np.concatenate([high, low]), return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count + 1) / 2)[place]  # from 0 on, equals at the mean of theirs
    return float((rank[: len(high)].sum() - len(high) * (len(high) - 1) / 2) / (len(high) * len(low)))
