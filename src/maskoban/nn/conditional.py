"""The conditional network: boards of any size, with conditions as tokens beside the cells.

The cells inside the border are tokens with 2-D rotary positions; in place of a table of places, each adds four learned
rows by its distances from the four sides. Five more tokens hold height, width, boxes, difficulty and corpus
(``diffusion/conditions.py``); 0 is a condition that is not given. Blocks are those of
:class:`~maskoban.nn.networks.InteriorNetwork`, run ``passes`` times, so training can start from its weights
(:func:`start_tensors`).

Attention is torch's own: the fused kernels know one table of positions for all boards, and at most 128 cells. Where the
network is compiled, only its block is: one small function for each of ``LENGTHS``, however many blocks and passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from maskoban.boards.tiles import MASK, TILES, WALL
from maskoban.diffusion.conditions import DIFFICULTIES, GRID, MOST_BOXES, MOST_SIDE, NOWHERE
from maskoban.diffusion.schedule import Schedule
from maskoban.errors import MaskobanError
from maskoban.nn.attention import normalise_and_rotate, rotary_table
from maskoban.nn.layers import rms_norm, squared_relu_linear
from maskoban.nn.networks import TransformerNetwork, network_shape, pick

#: Condition tokens of a board.
CONDITIONS = 5

#: In training and on CUDA, boards are filled up to the next of these numbers of cells. With the condition tokens they
#: are multiples of eight, as matrix units like it.
LENGTHS = (43, 67, 91, 123, 155, 203)

#: x, the matrices of a block, the rotary table, which tokens are there -> x.
Block = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class ConditionalNetwork(TransformerNetwork):
    """forward(tokens (boards, n), where=(boards, n), conditions=(boards, 5)) -> (boards, n, 7).

    ``where`` is each cell's place in the grid of the largest board, NOWHERE for what fills up a batch.

    >>> network = ConditionalNetwork(["synth"], d=32, blocks=1, heads=2, hidden=64)
    >>> network(torch.full((2, 9), 7), where=torch.arange(9).repeat(2, 1), conditions=torch.zeros(2, 5).long()).shape
    torch.Size([2, 9, 7])
    """

    def __init__(
        self, corpora: list[str], height: int = 10, width: int = 10, d: int = 256, blocks: int = 6, heads: int = 4,
        hidden: int = 1024, passes: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(height, width)  # of boards whose size is not given
        self.corpora, self.d, self.heads, self.blocks, self.passes = corpora, d, heads, blocks, passes
        sizes = [MOST_SIDE, MOST_SIDE, MOST_BOXES, len(DIFFICULTIES), len(corpora)]
        self.token = nn.Embedding(MASK + 1, d)
        self.sides = nn.Parameter(torch.randn(4, GRID, d) * 0.02)  # top, left, bottom, right
        self.condition = nn.Parameter(torch.randn(sum(sizes) + len(sizes), d) * 0.5)
        self.add_blocks(blocks, d, hidden, math.sqrt(3 / d))
        self.head = nn.Parameter(torch.zeros(TILES, d))
        self.gain = nn.Parameter(torch.ones(d)) if passes > 1 else None
        table = rotary_table(GRID, GRID, d // heads)
        still = torch.stack([torch.ones_like(table[0, :1]), torch.zeros_like(table[0, :1])])
        self.rotary: Tensor
        self.first: Tensor  # the row of each condition's 0
        self.register_buffer("rotary", torch.cat([table, still], dim=1), persistent=False)
        starts = torch.tensor([0, *sizes]).cumsum(0)[:-1] + torch.arange(len(sizes))
        self.register_buffer("first", starts, persistent=False)

    def forward(
        self, tokens: Tensor, t: Tensor | None = None, cells: Tensor | None = None, seeds: Tensor | None = None,
        where: Tensor | None = None, conditions: Tensor | None = None, passes: int | None = None,
        block: Block | None = None,
    ) -> Tensor:  # fmt: skip
        """``block`` is :meth:`block`, compiled."""
        assert where is not None, "the conditional network needs the places of the cells"
        assert conditions is not None, "the conditional network needs conditions"
        x = self.features(tokens, where, conditions, self.matrices(), passes, block)
        if cells is not None:
            x = pick(x, cells)
        return self.logits(x, self.head)

    def features(
        self, tokens: Tensor, where: Tensor, conditions: Tensor, stacks: Sequence[Tensor],
        passes: int | None = None, block: Block | None = None,
    ) -> Tensor:  # fmt: skip
        """The input of the head, (boards, n, d), with these matrices."""
        block = block or self.block
        rows = conditions + self.first
        if self.training:  # as in embed: no scatter in the gradient
            one_hot = rows[..., None] == torch.arange(len(self.condition), device=rows.device)
            given = one_hot.to(self.dtype) @ self.condition.to(self.dtype)
        else:
            given = F.embedding(rows, self.condition.to(self.dtype))
        cells_in = self.embed(tokens, self.token.weight) + self.places(where)
        given = rms_norm(torch.cat([given, cells_in], dim=1))
        nowhere = torch.full_like(conditions, NOWHERE)
        rotary = self.rotary[:, torch.cat([nowhere, where], dim=1)][:, :, None]  # (2, boards, 1, all, half)
        there = torch.cat([torch.ones_like(conditions, dtype=torch.bool), where != NOWHERE], dim=1)[
            :, None, None
        ]
        x = given.clone()  # add_linear may write to it
        for run in range(passes or self.passes):
            if run and self.gain is not None:
                x = x + given * self.gain.to(x.dtype)
            for qkv, out, up, down in zip(*(stack.unbind(0) for stack in stacks), strict=True):
                x = block(x, qkv, out, up, down, rotary, there)
        return rms_norm(x[:, CONDITIONS:])

    def places(self, where: Tensor) -> Tensor:
        """What is added to each token: four rows, by its distances from the sides of its board."""
        row, column, there = where // GRID, where % GRID, where != NOWHERE
        last_row, last_column = ((each * there).amax(1, keepdim=True) for each in (row, column))
        distances = torch.stack([row, column, last_row - row, last_column - column], dim=-1)
        index = distances + GRID * torch.arange(4, device=where.device)
        chosen = (index[..., None] == torch.arange(4 * GRID, device=where.device)) & there[..., None, None]
        return chosen.sum(2).to(self.dtype) @ self.sides.to(self.dtype).flatten(0, 1)

    def block(
        self, x: Tensor, qkv: Tensor, out: Tensor, up: Tensor, down: Tensor, rotary: Tensor, there: Tensor
    ) -> Tensor:
        """One transformer block: attention and a feed-forward layer, each added to x."""
        x = self.add_linear(x, self._attend(rms_norm(x), qkv.flatten(0, 1), rotary, there), out)
        return self.add_linear(x, squared_relu_linear(x, up), down)

    def _attend(self, x: Tensor, qkv: Tensor, rotary: Tensor, there: Tensor) -> Tensor:
        """Attention of all tokens to those that are ``there``."""
        boards, n, _ = x.shape
        q, k, v = self.linear(x, qkv).view(boards, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = normalise_and_rotate(q, rotary), normalise_and_rotate(k, rotary)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=there)
        return mixed.transpose(1, 2).flatten(2)


def start_tensors(network: ConditionalNetwork, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The saved tensors of an interior network as weights to start this one with; others stay as they are.

    The table of places becomes the nearest sum of a row for its distance from the nearer side, up or down, and one for
    that to the left or right; its mean goes to the tokens. Condition tokens, which the other has not, start anew.
    """
    prefix = "ema." if any(name.startswith("ema.") for name in tensors) else "net."
    table = tensors.get(f"{prefix}place")
    if table is None:
        return dict(tensors)
    side = math.isqrt(len(table))
    if side * side != len(table):
        raise MaskobanError(f"expected a model of square boards to start from, got {len(table)} cells")
    mean, half = table.float().mean(0), side // 2
    grid, sides = table.float().view(side, side, -1) - mean, torch.zeros_like(network.sides)
    for number, effect in enumerate((grid.mean(1), grid.mean(0))):  # of the rows, of the columns
        sides[number, : side - half] = effect[: side - half]
        sides[number + 2, :half] = effect[side - half :].flip(0)
    own = {
        "sides": sides,
        "condition": network.condition.detach(),
        "token.weight": tensors[f"{prefix}token.weight"] + mean,
    }
    return dict(tensors) | {prefix + name: value for name, value in own.items()}


def build_conditional(settings: Mapping[str, Any]) -> ConditionalNetwork:
    """The network that a run's settings describe."""
    corpora, passes = settings.get("corpora"), settings.get("passes", 1)
    if type(corpora) is not str or not corpora:
        raise MaskobanError(f"corpora: expected names with commas between, got {corpora!r}")
    if type(passes) is not int or not 1 <= passes <= 64:
        raise MaskobanError(f"passes: expected a whole number from 1 to 64, got {passes!r}")
    for name, value in (("dropout", 0), ("symmetry", 0), ("unit", "squared_relu"), ("initial_scale", 1)):
        if settings.get(name, value) != value:
            raise MaskobanError(
                f"{name}: expected {value!r} for the conditional network, got {settings[name]!r}"
            )
    return ConditionalNetwork(corpora.split(","), **network_shape(settings), passes=passes)


class TorchConditional:
    """The network under torch as a ``ConditionalNet``, in batches of one size: a board must not depend on them.

    On CUDA boards are filled up to one of ``LENGTHS``, and the block is ``compiled`` for each.
    """

    overlap = 1

    def __init__(
        self, network: ConditionalNetwork, steps: int, batch: int = 16, schedule: Schedule = "linear",
        compiled: bool = True,
    ) -> None:  # fmt: skip
        self.network, self.steps, self.batch, self.schedule = network, steps, batch, schedule
        self.corpora, self.device = network.corpora, network.head.device
        self._fill = self.device.type == "cuda"
        self._block = compile_block(network) if self._fill and compiled else None

    @torch.no_grad()
    def evaluate(self, feed: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        """Logits of the cells asked for."""
        out = np.empty((*feed["cells"].shape, TILES), np.float32)
        for rows, given in in_batches(feed, self.batch, self.device, self._fill):
            out[rows] = self.network(**given, block=self._block)[: len(out[rows])].float().cpu().numpy()
        return out


def compile_block(network: ConditionalNetwork) -> Block:
    """The network's block, compiled for sampling."""
    torch._dynamo.config.recompile_limit = 64  # one for each of LENGTHS, the number of boards, and a critic
    block: Block = torch.compile(network.block, dynamic=False)
    return block


def in_batches(
    feed: Mapping[str, NDArray[np.int64]], batch: int, device: torch.device, fill: bool
) -> Iterator[tuple[slice, dict[str, Tensor]]]:
    """The inputs of a network in batches of one size, and which rows they are; with ``fill``, of one of ``LENGTHS``.

    The last batch is filled up with its first board.
    """
    n, cells = feed["tokens"].shape
    missing = min(length for length in LENGTHS if length >= cells) - cells if fill else 0
    for start in range(0, n, batch):
        rows = np.arange(start, start + batch)
        rows[rows >= n] = start
        given = {name: torch.from_numpy(array[rows]).to(device) for name, array in feed.items()}
        given["tokens"] = F.pad(given["tokens"], (0, missing), value=WALL)
        given["where"] = F.pad(given["where"], (0, missing), value=NOWHERE)
        yield slice(start, start + batch), given
