"""The training objective: which cells of a board are masked, and the loss of predicting them.

    L = E over t and masks M of  w(t) * average over the masked cells of  -log p(x_i | x_t, t)

Corruption takes its random numbers, uniform in [0, 1) with one a cell, as an argument: compiled and plain code can be
given the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from maskoban._util.registry import Registry
from maskoban.boards.geometry import turning_tables
from maskoban.boards.tiles import MASK
from maskoban.diffusion.schedule import masked_share, rarity, weights
from maskoban.nn.networks import Network
from maskoban.training.compiling import compiled
from maskoban.training.config import Preset


@dataclass(frozen=True)
class Corrupted:
    """Boards with masked cells: the input of the network, and the cells it is graded on."""

    tokens: Tensor  # (boards, cells) int64, MASK where masked
    masked: Tensor  # (boards, cells) bool
    t: Tensor  # (boards,) int64 in 1 ... T
    mean_masked: Tensor  # (): masked cells a board, over the whole batch

    def part(self, rows: slice) -> Corrupted:
        """Some of the boards. ``mean_masked`` stays that of the whole batch."""
        return Corrupted(self.tokens[rows], self.masked[rows], self.t[rows], self.mean_masked)


#: (logits (boards, cells, 7), boards (boards, cells), corrupted, weights (boards,), preset) -> loss ().
Objective: TypeAlias = Callable[[Tensor, Tensor, Corrupted, Tensor, Preset], Tensor]


# -- corruption


def draw_times(boards: int, steps: int, stratified: bool, device: torch.device, power: float = 1.0) -> Tensor:
    """t = ceil(T u^power) for every board, u independent and uniform, or stratified.

    Stratified u share one random offset and are otherwise evenly spread, so every batch covers the whole range: the
    same distribution a board, less variance a batch. A power above 1 draws small t, few masked cells, more often;
    ``schedule.rarity`` is the weight that makes up for it.
    """
    if stratified:
        place = (torch.arange(boards, device=device) + torch.rand(1, device=device)) / boards
    else:
        place = torch.rand(boards, device=device)
    return (place**power * steps).long().clamp(max=steps - 1) + 1


def mask_independently(boards: Tensor, t: Tensor, masked_share: Tensor, noise: Tensor) -> Corrupted:
    """The paper's corruption: every cell is masked with probability 1 - alpha_t, independently."""
    return _masked(boards, noise < masked_share[t][:, None], t)


def mask_exactly(
    boards: Tensor, t: Tensor, steps: int, noise: Tensor, there: Tensor | None = None
) -> Corrupted:
    """Mask exactly ceil(t / T * cells) cells, every subset equally likely: no empty example, less variance.

    Only cells that are ``there`` (boards, cells) are counted and masked, where it is given.

    With T equal to the number of cells, t is the number of masked cells, and the mean over them, averaged over t, is
    the ELBO of unmasking in a uniformly random order. (Two equal noise values at the border mask one cell more, about
    once in 250,000 boards of 64 cells. Ranking every cell would cost more, and the mean hardly changes.)
    """
    cells: int | Tensor = boards.shape[1]
    if there is not None:
        cells, noise = there.sum(1), torch.where(there, noise, 2.0)
    count = (t * cells + steps - 1) // steps
    last = noise.sort(dim=1).values.gather(1, count[:, None] - 1)  # the noise of the last cell to mask
    return _masked(boards, noise <= last, t)


def _masked(boards: Tensor, masked: Tensor, t: Tensor) -> Corrupted:
    return Corrupted(torch.where(masked, MASK, boards), masked, t, masked.sum() / len(boards))


# -- the loss


def cross_entropy(
    logits: Tensor, boards: Tensor, corrupted: Corrupted, weights: Tensor, preset: Preset
) -> Tensor:
    """The negative log-likelihood -log p(x_i) of the masked cells, averaged by :func:`masked_average`."""
    flat = logits.float().flatten(0, 1)
    loss = F.cross_entropy(flat, boards.flatten(), reduction="none").view(boards.shape)
    return masked_average(loss, corrupted, weights, preset.average)


def masked_average(loss: Tensor, corrupted: Corrupted, weights: Tensor, average: str) -> Tensor:
    """The average of a loss (boards, cells) over the masked cells, by one of two readings of that phrase.

    "board":  mean over boards b of  w_b / |M_b| * sum over i in M_b of loss_bi
    "batch":  sum over b and i in M_b of w_b * loss_bi, divided by the sum over b of |M_b|

    With "board" every board counts the same, and a masked cell weighs w_b / |M_b|: a cell of a board with one masked
    cell as much as all cells of a board with a hundred. With "batch" a masked cell weighs w_b, whatever else is masked
    on its board. On the linear schedule |M| is about t/T of the cells, so the ELBO is "board" with w = 1, or "batch"
    with w = T/t.
    """
    if average == "board":
        means = (loss * corrupted.masked).sum(1) / corrupted.masked.sum(1).clamp(min=1)
        return torch.mean(weights * means)
    return (weights[:, None] * loss * corrupted.masked).sum() / (len(loss) * corrupted.mean_masked).clamp(
        min=1
    )


OBJECTIVES = Registry[Objective]("objective", {"cross_entropy": cross_entropy})


def register_objective(name: str, objective: Objective) -> None:
    """Add an objective under a name, for presets."""
    OBJECTIVES.register(name, objective)


class TrainingLoss:
    """The loss of a network on a batch, corruption included. All of it is compiled into one step.

    In training, noise is drawn for the whole batch, so that it does not depend on which process holds which boards, and
    the loss is that of ``part``, the boards of this process.
    """

    def __init__(self, network: Network, preset: Preset, part: slice, device: torch.device) -> None:
        steps, schedule = preset.diffusion_steps, preset.schedule
        self.network, self.preset, self.part = network, preset, part
        self.objective = OBJECTIVES[preset.objective]
        self.share = torch.tensor(masked_share(schedule, steps), device=device)
        self.weights = torch.tensor(weights(schedule, steps, preset.weight_cap), device=device)
        self.rarity = torch.tensor(rarity(steps, preset.time_power), device=device)
        self.tables = torch.from_numpy(turning_tables(network.rows, network.columns)).to(device)
        self.turns = torch.nonzero(self.tables[:, 0] >= 0)[:, 0]

    def noise(self, boards: Tensor) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """The random inputs of the loss: times, one value a cell, the seeds of dropout, and each board's symmetry."""
        preset, device, n = self.preset, boards.device, len(boards)
        power = preset.time_power if self.network.training else 1.0  # held-out losses compare across powers
        t = draw_times(n, preset.diffusion_steps, preset.stratified, device, power)
        noise, seeds, turn = torch.rand(boards.shape, device=device), self.network.draw_seeds(), None
        if preset.symmetry and self.network.training:
            turned = torch.rand(n, device=device) < preset.symmetry
            others = self.turns[torch.randint(1, len(self.turns), (n,), device=device)]
            turn = torch.where(turned, others, 0)
        return t, noise, seeds, turn

    def compiled(self) -> Callable[..., Tensor]:
        """The loss, compiled as a whole."""
        return compiled(self.loss)

    def loss(
        self, boards: Tensor, t: Tensor, noise: Tensor, seeds: Tensor | None, turn: Tensor | None = None,
        passes: int | None = None,
    ) -> Tensor:  # fmt: skip
        training, chosen = self.network.training, dict[str, Any]()
        if turn is not None:
            boards = boards.gather(1, self.tables[turn])
            chosen["turn"] = turn[self.part]
        if passes is not None:
            chosen["passes"] = passes
        if self.preset.corruption == "exact":
            corrupted = mask_exactly(boards, t, self.preset.diffusion_steps, noise)
        else:
            corrupted = mask_independently(boards, t, self.share, noise)
        if training:
            boards, corrupted = boards[self.part], corrupted.part(self.part)
        t_in = corrupted.t if self.network.timed else None
        logits = self.network(corrupted.tokens, t_in, seeds=seeds, **chosen)
        weights = self.weights * self.rarity if training else self.weights
        return self.objective(logits, boards, corrupted, weights[corrupted.t], self.preset)
