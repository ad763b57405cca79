"""Corruption: which cells of a board are hidden for one training example.

Hiding takes its random numbers, uniform and one a cell, from outside: so that what is compiled and what is not can be
given the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maskoban.boards.tiles import MASK


@dataclass(frozen=True)
class Corrupted:
    """Boards with cells hidden: what the network sees, and what it is graded on."""

    tokens: Tensor  # (boards, cells) int64, MASK where hidden
    hidden: Tensor  # (boards, cells) bool
    t: Tensor  # (boards,) int64 in 1 ... T

    def part(self, rows: slice) -> Corrupted:
        """Some of the boards."""
        return Corrupted(self.tokens[rows], self.hidden[rows], self.t[rows])


def draw_times(boards: int, steps: int, stratified: bool, device: torch.device, power: float = 1.0) -> Tensor:
    """t = ceil(T u^power) for every board, u independent and uniform, or stratified.

    Stratified u share one random offset and are otherwise evenly spread, so that every batch holds every
    part of the range: the same distribution a board, less noise a batch. A power above 1 draws small t, few hidden
    cells, more often; ``schedule.rarity`` is what such an example must then weigh less.
    """
    if stratified:
        place = (torch.arange(boards, device=device) + torch.rand(1, device=device)) / boards
    else:
        place = torch.rand(boards, device=device)
    return (place**power * steps).long().clamp(max=steps - 1) + 1


def hide_independently(boards: Tensor, t: Tensor, masked_share: Tensor, noise: Tensor) -> Corrupted:
    """The paper's corruption: every cell is hidden with probability 1 - alpha_t, on its own."""
    hidden = noise < masked_share[t][:, None]
    return Corrupted(torch.where(hidden, MASK, boards), hidden, t)


def hide_exactly(boards: Tensor, t: Tensor, steps: int, noise: Tensor) -> Corrupted:
    """Hide exactly ceil(t / T * cells) cells, every subset equally likely: no empty example, less noise.

    With T equal to the number of cells, t is the number of hidden cells, and the mean over them, averaged
    over t, is the ELBO of drawing in a uniformly random order. (Two equal noises at the border hide one cell more,
    about once in 250,000 boards of 64 cells: cheaper than ranking every cell, and the mean does not mind.)
    """
    cells = boards.shape[1]
    count = (t * cells + steps - 1) // steps
    last = noise.sort(dim=1).values.gather(1, count[:, None] - 1)  # the noise of the last cell to hide
    hidden = noise <= last
    return Corrupted(torch.where(hidden, MASK, boards), hidden, t)
