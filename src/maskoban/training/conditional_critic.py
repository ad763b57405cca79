"""Training a critic of a conditional model: boards of many sizes, each under conditions, of the corpus and sampled.

    maskoban train critic --model any --corpus mix --samples 100000 --out runs/critic

A sample is drawn under the conditions of a random board of the corpus. The size is always given; number of boxes,
difficulty and corpus each half of the time, to the model and to the critic alike. So the score is the log density ratio
under the conditions that are given.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from maskoban.boards.tiles import MASK, WALL
from maskoban.diffusion.conditions import NOWHERE, ConditionalNet
from maskoban.errors import MaskobanError
from maskoban.nn.conditional import Block, ConditionalNetwork, TorchConditional
from maskoban.training.compiling import compiled
from maskoban.training.critic import CriticTrainer, HeldOut, new_critic
from maskoban.training.mixed import Batch, MixedBatches, load_mixed
from maskoban.training.options import CriticOptions

#: The share of samples to hold out, at most ``held_out_boards`` in all.
HELD_OUT = 10


def conditional_trainer(net: ConditionalNet, options: CriticOptions, own_sweeps: int) -> CriticTrainer:
    """Samples boards, and the trainer of a critic on them and on the corpus; ``own_sweeps`` are the model's."""
    assert isinstance(net, TorchConditional)
    if not options.samples.isdecimal() or options.boards_out is not None:
        raise MaskobanError(
            "--samples: expected a number for a model with conditions, and no --boards-out: the boards of a file "
            "have no conditions"
        )
    size, total = options.batch // 2, int(options.samples)
    if total < HELD_OUT * size:
        raise MaskobanError(
            f"--samples: expected at least {HELD_OUT * size:,}, a tenth to hold out; got {total:,}"
        )
    whole = load_mixed(options.corpus)
    corpus, held = whole.split() if options.held_out is None else (whole, load_mixed(options.held_out))
    sweeps = own_sweeps if options.polish is None else options.polish
    options = dataclasses.replace(options, polish=sweeps)
    critic = new_critic(net.network, options)  # first: it freezes the network
    block = compiled(net.network.block) if net.device.type == "cuda" else net.network.block
    real, unseen = (
        MixedBatches(each.with_symmetries(), size, options.seed, net.device) for each in (corpus, held)
    )
    sampled = defaultdict[int, list[Batch]](list)  # by the number of cells they are filled up to
    for step in range(-(-total // size)):
        batch = give_some(real(step))
        made = sample_like(net.network, batch, sweeps, block)
        sampled[made.tokens.shape[1]].append(made)
        done = min((step + 1) * size, total)
        if 10 * done // total > 10 * step * size // total:
            print(f"sampled {done:,} of {total:,} boards", file=sys.stderr, flush=True)
    together = {cells: _joined(batches) for cells, batches in sampled.items()}
    boards = ConditionedBoards(real, unseen, together, size, options.held_out_boards)
    return CriticTrainer(critic, partial(critic, block=block), boards, options)


class ConditionedBoards:
    """Boards of the corpus and samples, ``size`` of each a batch, all filled up to the same number of cells."""

    def __init__(
        self, real: MixedBatches, unseen: MixedBatches, sampled: dict[int, Batch], size: int, held_out: int
    ) -> None:
        self._real, self._size, self._step = real, size, 0
        total = sum(map(len, sampled.values()))
        counts = {
            cells: min(len(batch) // HELD_OUT, held_out * len(batch) // total)
            for cells, batch in sampled.items()
        }
        self._sampled = {cells: batch.part(slice(counts[cells], None)) for cells, batch in sampled.items()}
        self._held_sampled = [batch.part(slice(counts[cells])) for cells, batch in sampled.items()]
        found = defaultdict[int, list[Batch]](list)
        for step in range(len(unseen)):
            batch = unseen(step)
            if sum(map(len, found[batch.tokens.shape[1]])) < counts.get(batch.tokens.shape[1], 0):
                found[batch.tokens.shape[1]].append(give_some(batch))
        self._held_real = [_joined(batches) for batches in found.values() if batches]
        if not self._held_real or not any(map(len, self._held_sampled)):
            raise MaskobanError("the corpus: expected more boards to hold out, a batch of about one size")
        device = next(iter(sampled.values())).tokens.device
        self._is_real = torch.arange(2 * size, device=device) < size

    def batch(self) -> tuple[dict[str, Tensor], Tensor]:
        while True:
            real = self._real(self._step)
            self._step += 1
            others = self._sampled.get(real.tokens.shape[1])
            if others is not None and len(others):  # few samples may be none of some sizes
                break
        rows = torch.randint(len(others), (self._size,), device=real.tokens.device)
        sampled = Batch(others.tokens[rows], others.where[rows], others.conditions[rows])
        return _inputs(_joined([give_some(real), sampled])), self._is_real.float()

    def held_out(self) -> tuple[Iterator[HeldOut], Iterator[HeldOut]]:
        return self._in_batches(self._held_real), self._in_batches(self._held_sampled)

    def _in_batches(self, groups: list[Batch]) -> Iterator[HeldOut]:
        for group in groups:
            for start in range(0, len(group), 2 * self._size):
                rows = torch.arange(start, start + 2 * self._size)
                n = min(len(group) - start, len(rows))
                rows[n:] = start
                yield _inputs(Batch(group.tokens[rows], group.where[rows], group.conditions[rows])), n


def give_some(batch: Batch) -> Batch:
    """The same boards with some of their conditions given: the size, and each of the others half of the time."""
    given = torch.rand(batch.conditions.shape, device=batch.conditions.device) < 0.5
    given[:, :2] = True
    return dataclasses.replace(batch, conditions=batch.conditions * given)


@torch.no_grad()
def sample_like(
    network: ConditionalNetwork, batch: Batch, sweeps: int, block: Block | Callable[..., Tensor]
) -> Batch:
    """Boards sampled under the conditions of a batch, one cell a step in random order, then ``sweeps`` Gibbs sweeps.

    The same as the sampler's, but on the device and with other conditions for every board.
    """
    there = batch.where != NOWHERE
    tokens = torch.where(there, MASK, WALL)
    cells = int(there.sum(1).max())
    for _ in range(1 + sweeps):
        order = torch.rand(tokens.shape, device=tokens.device).masked_fill(~there, 2).argsort(1)
        for cell in order[:, :cells].unsqueeze(2).unbind(1):
            masked = tokens.scatter(1, cell, MASK)
            logits = network(masked, where=batch.where, conditions=batch.conditions, cells=cell, block=block)
            tile = logits[:, 0].float().softmax(1).multinomial(1)
            tokens = tokens.scatter(1, cell, torch.where(there.gather(1, cell), tile, WALL))
    return dataclasses.replace(batch, tokens=tokens)


def _joined(batches: list[Batch]) -> Batch:
    return Batch(
        *(torch.cat([getattr(each, name) for each in batches]) for name in ("tokens", "where", "conditions"))
    )


def _inputs(batch: Batch) -> dict[str, Tensor]:
    return {"tokens": batch.tokens, "where": batch.where, "conditions": batch.conditions}
