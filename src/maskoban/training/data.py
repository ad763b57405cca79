"""Boards to train on: which corpus, its cells as tensors, and the order of the batches."""

from __future__ import annotations

from collections.abc import Set
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maskoban.boards.corpus import load
from maskoban.boards.synth import synthesize
from maskoban.boards.tiles import MASK, WALL, Tokens
from maskoban.diffusion.denoiser import interior, interior_cells
from maskoban.errors import MaskobanError
from maskoban.nn.networks import Network
from maskoban.training.checkpoint import new_network
from maskoban.training.config import TINY, Preset
from maskoban.training.mixed import MixedCorpus, load_mixed

#: Keeps the noise of neighbouring seeds apart.
SEED_STRIDE = 1_000_003

_TRAIN, _VALID = "boxoban-medium-train", "boxoban-medium-valid"


def load_corpus(
    corpus: str | None, held_out: str | None, preset: Preset
) -> tuple[Tokens, Tokens] | tuple[MixedCorpus, MixedCorpus]:
    """The boards to train on, and the held-out boards.

    By default ``tiny`` trains on synthetic boards and every other preset on Boxoban medium. Without held-out boards,
    the last tenth of the corpus is held out. A conditional network learns from a mixed corpus, and from its synthetic
    boards in all symmetries.
    """
    if preset.network == "conditional":
        mixed = load_mixed(corpus or _TRAIN)
        train, held = mixed.split() if held_out is None else (mixed, load_mixed(held_out))
        return train.with_symmetries(), held
    if corpus is None and preset.name == TINY.name:
        boards = synthesize(20_000, TINY.height, TINY.width, boxes=2)
    else:
        boards = load(corpus or _TRAIN)
    if held_out is not None:
        return boards, load(held_out)
    if corpus is None and preset.name != TINY.name:
        with suppress(MaskobanError):  # it need not be downloaded
            return boards, load(_VALID)
    tenth = max(len(boards) // 10, 1)
    return boards[:-tenth], boards[-tenth:]


def fit_to_corpus(preset: Preset, boards: Tokens | MixedCorpus, chosen: Set[str]) -> Preset:
    """The preset with the corpus's board size and, for exact corruption, as many diffusion steps as cells.

    Settings in ``chosen`` stay.
    """
    if isinstance(boards, MixedCorpus):
        height, width = boards.usual_size()
        sizes: dict[str, Any] = {"height": height, "width": width, "corpora": ",".join(boards.corpora)}
        return replace(preset, **{name: value for name, value in sizes.items() if name not in chosen})
    height, width = boards.shape[1:]
    values = {name: size for name, size in (("height", height), ("width", width)) if name not in chosen}
    preset = replace(preset, **values)
    if preset.corruption == "exact" and "diffusion_steps" not in chosen:
        preset = replace(preset, diffusion_steps=new_network(preset).cells)
    return preset


def board_cells(boards: Tokens, network: Network, source: str, device: torch.device) -> Tensor:
    """The cells the network fills, (boards, cells) on the device. Boards it cannot learn from are an error."""
    inside = interior(boards, network, source, "the preset")
    if (boards >= MASK).any():
        raise MaskobanError(
            f"{source}: board {int(np.argmax((boards >= MASK).any((1, 2))))} has masked cells"
        )
    border = np.delete(boards.reshape(len(boards), -1), interior_cells(network), axis=1)
    if (border != WALL).any():
        first = int(np.argmax((border != WALL).any(1)))
        raise MaskobanError(
            f"{source}: board {first} has a border that is not all wall; this network needs one"
        )
    return torch.from_numpy(np.ascontiguousarray(inside)).to(device)


class Batches:
    """Batch number ``step`` of a corpus. Every epoch is a new order, without the incomplete last batch."""

    def __init__(self, corpus: Tensor, preset: Preset) -> None:
        self.corpus, self._size, self._seed = corpus, preset.batch, preset.seed
        if len(corpus) < preset.batch:
            raise MaskobanError(
                f"the training corpus has {len(corpus)} boards; expected at least one batch of {preset.batch}"
            )
        self.hash = sha256(corpus.cpu().numpy().tobytes()).hexdigest()[:16]
        self._epoch, self._order = -1, torch.empty(0)

    def __call__(self, step: int) -> Tensor:
        epoch, place = divmod(step, len(self.corpus) // self._size)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self._seed * SEED_STRIDE + epoch)
            self._order = torch.randperm(len(self.corpus), generator=generator).to(self.corpus.device)
            self._epoch = epoch
        return self.corpus[self._order[place * self._size : (place + 1) * self._size]].long()
