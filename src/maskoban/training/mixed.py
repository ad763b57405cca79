"""Training on boards of many sizes with labels: the corpus, its batches, and the loss of a conditional network.

``boards/labelled.py`` reads the folder of a mixed corpus. Any other corpus is one size without labels. A batch has
boards of about one size, filled up to one of ``LENGTHS``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskoban.boards.corpus import load
from maskoban.boards.geometry import symmetries
from maskoban.boards.labelled import INFO, SYNTHETIC, UNKNOWN, read_info, read_labelled
from maskoban.boards.tiles import WALL, Tokens, object_counts, tile_counts
from maskoban.diffusion.conditions import LEAST_SIDE, MOST_BOXES, MOST_SIDE, NOWHERE, positions
from maskoban.diffusion.schedule import rarity, weights
from maskoban.errors import MaskobanError
from maskoban.nn.conditional import LENGTHS, Block, ConditionalNetwork
from maskoban.training.compiling import compiled
from maskoban.training.config import Preset
from maskoban.training.objective import OBJECTIVES, draw_times, mask_exactly


class Sized(NamedTuple):
    """Boards of one size with what a network is told of them."""

    boards: Tokens  # (n, height, width)
    conditions: NDArray[np.uint8]  # (n, 5): Conditions.numbers


@dataclass(frozen=True)
class MixedCorpus:
    """Boards of many sizes, and the names of the corpora they come from."""

    sizes: list[Sized]
    corpora: tuple[str, ...]

    def __len__(self) -> int:
        return sum(len(each.boards) for each in self.sizes)

    def usual_size(self) -> tuple[int, int]:
        """The size that most boards have."""
        height, width = max(self.sizes, key=lambda each: len(each.boards)).boards.shape[1:]
        return height, width

    def with_symmetries(self) -> MixedCorpus:
        """With every synthetic board in its eight symmetries. The generator has no preferred direction, so they are
        boards as likely as itself; those of other corpora stay as they are.
        """
        if SYNTHETIC not in self.corpora:
            return self
        kind, found = self.corpora.index(SYNTHETIC) + 1, defaultdict[tuple[int, ...], list[Sized]](list)
        for boards, conditions in self.sizes:
            synthetic = conditions[:, 4] == kind
            found[boards.shape[1:]].append(Sized(boards[~synthetic], conditions[~synthetic]))
            for turned in symmetries(boards[synthetic]):
                told = conditions[synthetic].copy()
                told[:, :2] = turned.shape[1:]
                found[turned.shape[1:]].append(Sized(np.ascontiguousarray(turned), told))
        sizes = [Sized(*map(np.concatenate, zip(*parts, strict=True))) for _, parts in sorted(found.items())]
        return MixedCorpus(sizes, self.corpora)

    def split(self) -> tuple[MixedCorpus, MixedCorpus]:
        """All but the last tenth of every size, and the last tenth."""
        cuts = [max(len(each.boards) // 10, 1) for each in self.sizes]
        parts = [(Sized(s.boards[:-n], s.conditions[:-n]), Sized(s.boards[-n:], s.conditions[-n:]))
                 for s, n in zip(self.sizes, cuts, strict=True) if n < len(s.boards)]  # fmt: skip
        return MixedCorpus([a for a, _ in parts], self.corpora), MixedCorpus(
            [b for _, b in parts], self.corpora
        )


def load_mixed(place: str) -> MixedCorpus:
    """The mixed corpus in a folder, or any other corpus as one without labels."""
    folder = Path(place)
    if not (folder / INFO).is_file():
        return MixedCorpus([_sized(place, load(place))], (folder.stem,))
    info, sizes = read_info(folder), []
    for path in sorted(folder / name for name in info["files"]):
        labelled = read_labelled(path)
        if labelled.kind.max(initial=0) >= len(info["kinds"]):
            raise MaskobanError(f"{path}: kind: expected numbers below {len(info['kinds'])}")
        sizes.append(_sized(str(path), labelled.boards, labelled.difficulty, labelled.kind))
    return MixedCorpus(sizes, tuple(map(str, info["kinds"])))


def _sized(
    source: str,
    boards: Tokens,
    difficulty: NDArray[np.uint8] | int = UNKNOWN,
    kind: NDArray[np.uint8] | int = 0,
) -> Sized:
    n, height, width = boards.shape
    if min(height, width) < LEAST_SIDE or max(height, width) > MOST_SIDE:
        raise MaskobanError(
            f"{source}: expected sides from {LEAST_SIDE} to {MOST_SIDE}, got {height}x{width} boards"
        )
    if n and ((boards[:, [0, -1]] != WALL).any() or (boards[:, :, [0, -1]] != WALL).any()):
        raise MaskobanError(f"{source}: a border is not all wall; the conditional network needs one")
    boxes, difficulty = object_counts(tile_counts(boards)).boxes, np.asarray(difficulty, np.int64)
    conditions = np.zeros((n, 5), np.uint8)
    conditions[:, 0], conditions[:, 1] = height, width
    conditions[:, 2] = np.where(boxes <= MOST_BOXES, boxes, 0)
    conditions[:, 3] = np.where(difficulty < 4, difficulty + 1, 0)
    conditions[:, 4] = np.asarray(kind, np.int64) + 1
    return Sized(boards, conditions)


@dataclass(frozen=True)
class Batch:
    """Boards of one bucket: the inputs of a conditional network."""

    tokens: Tensor  # (boards, n) int64; WALL where nowhere
    where: Tensor  # (boards, n) int64, NOWHERE behind the last cell of a board
    conditions: Tensor  # (boards, 5) int64, 0 where unknown

    def __len__(self) -> int:
        return self.tokens.shape[0]

    def part(self, rows: slice) -> Batch:
        return Batch(self.tokens[rows], self.where[rows], self.conditions[rows])


class MixedBatches:
    """Batch number ``step`` of a mixed corpus. Every epoch is a new order, without the incomplete batches."""

    def __init__(self, corpus: MixedCorpus, batch: int, seed: int, device: torch.device) -> None:
        self.corpus, self._size, self._seed, self._device = corpus, batch, seed, device
        self._buckets: list[tuple[Tensor, Tensor, Tensor]] = []
        self._batches: list[tuple[int, int]] = []  # bucket, and place in it
        digest = sha256()
        for least, most in zip((0, *LENGTHS), LENGTHS, strict=False):
            rows = [self._filled(each, most) for each in corpus.sizes
                    if least < (each.boards.shape[1] - 2) * (each.boards.shape[2] - 2) <= most]  # fmt: skip
            if not rows:
                continue
            bucket = [np.concatenate(arrays) for arrays in zip(*rows, strict=True)]
            for array in bucket:
                digest.update(array.tobytes())
            tensors = [torch.from_numpy(array).to(device) for array in bucket]
            self._batches += [(len(self._buckets), i) for i in range(len(tensors[0]) // batch)]
            self._buckets.append((tensors[0], tensors[1], tensors[2]))
        self.hash = digest.hexdigest()[:16]
        if not self._batches:
            raise MaskobanError(
                f"the training corpus has {len(corpus)} boards; expected a batch of {batch} of about one size"
            )
        self._epoch, self._order = -1, list[Tensor]()

    @staticmethod
    def _filled(sized: Sized, length: int) -> tuple[NDArray[np.uint8], ...]:
        n, height, width = sized.boards.shape
        inside = sized.boards[:, 1:-1, 1:-1].reshape(n, -1)
        tokens, where = np.full((n, length), WALL, np.uint8), np.full((n, length), NOWHERE, np.uint8)
        tokens[:, : inside.shape[1]], where[:, : inside.shape[1]] = inside, positions(height, width)
        return tokens, where, sized.conditions

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return len(self._batches)

    def __call__(self, step: int) -> Batch:
        epoch, place = divmod(step, len(self._batches))
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
            counts = [len(self._batches), *(len(bucket[0]) for bucket in self._buckets)]
            self._order = [torch.randperm(count, generator=generator).to(self._device) for count in counts]
            self._epoch = epoch
        bucket, number = self._batches[int(self._order[0][place])]
        return self._batch(bucket, number, self._order[bucket + 1])

    def _batch(self, bucket: int, number: int, order: Tensor | None) -> Batch:
        """A batch of a bucket in an order, or as its boards are."""
        rows: slice | Tensor = slice(number * self._size, (number + 1) * self._size)
        rows = rows if order is None else order[rows]
        return Batch(*(tensor[rows].long() for tensor in self._buckets[bucket]))

    def some(self, batches: int) -> list[Batch]:
        """So many batches, or all, evenly spread over the buckets in order."""
        count = min(batches, len(self._batches))
        return [self._batch(*self._batches[i * len(self._batches) // count], None) for i in range(count)]


class MixedLoss:
    """The loss of a conditional network on a batch, corruption included, as ``TrainingLoss`` for one size.

    Of each board ceil(t / T * cells) cells are masked, and each condition is dropped with probability
    ``condition_dropout``, so that any subset can be given when sampling.
    """

    def __init__(
        self, network: ConditionalNetwork, preset: Preset, part: slice, device: torch.device
    ) -> None:
        steps = preset.diffusion_steps
        self.network, self.preset, self.part = network, preset, part
        self.objective = OBJECTIVES[preset.objective]
        self.weights = torch.tensor(weights(preset.schedule, steps, preset.weight_cap), device=device)
        self.rarity = torch.tensor(rarity(steps, preset.time_power), device=device)

    def noise(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The random inputs of the loss: times, one value a cell, and which conditions are dropped."""
        preset, device, n = self.preset, batch.tokens.device, len(batch)
        training = self.network.training
        t = draw_times(
            n, preset.diffusion_steps, preset.stratified, device, preset.time_power if training else 1.0
        )
        noise = torch.rand(batch.tokens.shape, device=device)
        dropped = torch.rand(batch.conditions.shape, device=device) < preset.condition_dropout * training
        return t, noise, dropped

    def compiled(self) -> Callable[..., Tensor]:
        """The loss with a compiled block."""
        return partial(self.loss, block=compiled(self.network.block))

    def loss(
        self, batch: Batch, t: Tensor, noise: Tensor, dropped: Tensor, passes: int | None = None,
        block: Block | None = None,
    ) -> Tensor:  # fmt: skip
        training, steps = self.network.training, self.preset.diffusion_steps
        corrupted = mask_exactly(batch.tokens, t, steps, noise, there=batch.where != NOWHERE)
        batch = replace(batch, conditions=torch.where(dropped, 0, batch.conditions))
        if training:
            batch, corrupted = batch.part(self.part), corrupted.part(self.part)
        logits = self.network(
            corrupted.tokens, where=batch.where, conditions=batch.conditions, passes=passes, block=block
        )
        weights = self.weights * self.rarity if training else self.weights
        return self.objective(logits, batch.tokens, corrupted, weights[corrupted.t], self.preset)
