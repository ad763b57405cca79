"""The networks: the paper's, ours (``interior``), and the registry for others.

A network maps masked tokens to logits over the seven tiles for the cells of its grid:

    forward(tokens (boards, cells) int64, t (boards,) or None, cells (boards, k) or None, seeds) -> (boards, k, 7)

With ``cells``, only those cells' logits are returned; None means all. ``seeds`` are those of
:meth:`Network.draw_seeds`, fresh ones where they are None. Parameters are fp32; activations have the dtype of
:meth:`Network.compute_in`. The matrices of all blocks are stacked along a leading axis, so that an optimiser handles
each kind at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskoban._util.registry import Registry
from maskoban.boards.tiles import MASK, TILES
from maskoban.errors import MaskobanError
from maskoban.nn.attention import attend, attend_normed, mix, normalise_and_rotate, rotary_table
from maskoban.nn.dropout import draw_seeds
from maskoban.nn.layers import (
    add_dropped,
    add_norm,
    add_product,
    gelu_dropout,
    layer_norm,
    relu_dropout,
    rms_norm,
    squared_relu_linear,
)


class Network(nn.Module):
    """What all networks share: the grid of cells they fill, and the dtype of their activations."""

    #: Rings of wall around the grid. They are given, not predicted.
    margin: int = 1
    #: Whether forward needs t.
    timed: bool = False
    #: The number of blocks: the first axis of stacked parameters.
    blocks: int = 0

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.height, self.width = height, width
        self.rows, self.columns = height - 2 * self.margin, width - 2 * self.margin
        self.cells = self.rows * self.columns
        self.dtype = torch.float32

    def compute_in(self, dtype: torch.dtype) -> Network:
        """Run activations and matrix products in this dtype; parameters stay fp32."""
        self.dtype = dtype
        return self

    def matrices(self) -> list[Tensor]:
        """The parameters that Muon trains, stacks of matrices (..., rows, columns). AdamW trains the rest."""
        return []

    def start_at(self, board: int) -> None:
        """The network trains on the boards of a larger batch from this one on; dropout masks depend on it."""

    def draw_seeds(self) -> Tensor | None:
        """Seeds of the next forward pass's dropout, from torch's generator; None without dropout."""
        return None

    def embed(self, tokens: Tensor, table: Tensor) -> Tensor:
        """Rows of the table. In training a product with one-hot tokens: its gradient is a product too, no scatter."""
        if not self.training:
            return F.embedding(tokens, table.to(self.dtype))
        one_hot = tokens[..., None] == torch.arange(MASK + 1, device=tokens.device)
        return one_hot.to(self.dtype) @ table.to(self.dtype)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))

    def add_linear(self, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """x + y W^T. On a CUDA device the sum is part of the product, which saves a pass over x. Without a gradient it
        is done in place, which saves another; the caller must not use x afterwards."""
        if not x.is_cuda:
            return x + self.linear(y, weight)
        if not torch.is_grad_enabled():
            add_product(x, y, weight.to(y.dtype))
            return x
        return torch.addmm(x.flatten(0, -2), y.flatten(0, -2), weight.to(y.dtype).T).view_as(x)

    def logits(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x W^T for the seven tiles, in fp32. On CUDA with an eighth row: matrix units work in multiples of eight."""
        if x.is_cuda:
            weight = F.pad(weight, (0, 0, 0, 1))
            bias = None if bias is None else F.pad(bias, (0, 1))
        return self.linear(x, weight, bias)[..., :TILES].float()


class TransformerNetwork(Network):
    """A network of blocks whose matrices are stacked: one parameter (blocks, ...) for each kind."""

    qkv: nn.Parameter
    out: nn.Parameter
    up: nn.Parameter
    down: nn.Parameter

    def matrices(self) -> list[Tensor]:
        """In the order a block uses them."""
        return [self.qkv, self.out, self.up, self.down]

    def add_blocks(self, blocks: int, d: int, hidden: int, largest: float) -> None:
        """Matrices without biases: uniform up to ``largest``, and zero where a block adds to the residual stream."""
        self.qkv = nn.Parameter(torch.empty(blocks, 3, d, d).uniform_(-largest, largest))
        self.out = nn.Parameter(torch.zeros(blocks, d, d))
        self.up = nn.Parameter(torch.empty(blocks, hidden, d).uniform_(-largest, largest))
        self.down = nn.Parameter(torch.zeros(blocks, d, hidden))


class PaperNetwork(TransformerNetwork):
    """The paper's encoder: 4,879,111 parameters for a 10x10 grid at its default shape.

    h_i = E_tok(x_i) + E_row(r_i) + E_col(c_i) + MLP(sinusoid(t)), then pre-norm blocks (multi-head attention and a
    feed-forward layer, each added to the residual stream), then one linear layer to seven logits. The paper names no
    final norm and no non-linearities: ``final_norm`` and ``activation`` choose (GELU in its tanh form), and SiLU in the
    time MLP is our choice. Dropout is where torch has it in its encoder layer: on attention weights, the feed-forward
    hidden layer and both branches.

    >>> sum(p.numel() for p in PaperNetwork().parameters())
    4879111
    """

    margin = 0
    timed = True

    def __init__(
        self, height: int = 10, width: int = 10, d: int = 256, blocks: int = 6, heads: int = 8,
        hidden: int = 1024, dropout: float = 0.1, final_norm: bool = False, activation: str = "gelu",
    ) -> None:  # fmt: skip
        super().__init__(height, width)
        self.d, self.heads, self.dropout, self.blocks, self.activation = d, heads, dropout, blocks, activation
        self.token = nn.Embedding(MASK + 1, d)
        self.row = nn.Embedding(self.rows, d)
        self.column = nn.Embedding(self.columns, d)
        self.time = nn.Sequential(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, d))
        self.norm_weight = nn.Parameter(torch.ones(blocks, 2, d))
        self.norm_bias = nn.Parameter(torch.zeros(blocks, 2, d))
        self.qkv = nn.Parameter(torch.empty(blocks, 3, d, d))
        self.qkv_bias = nn.Parameter(torch.zeros(blocks, 3 * d))
        self.out = nn.Parameter(torch.empty(blocks, d, d))
        self.out_bias = nn.Parameter(torch.zeros(blocks, d))
        self.up = nn.Parameter(torch.empty(blocks, hidden, d))
        self.up_bias = nn.Parameter(torch.zeros(blocks, hidden))
        self.down = nn.Parameter(torch.empty(blocks, d, hidden))
        self.down_bias = nn.Parameter(torch.zeros(blocks, d))
        self.final_norm = nn.LayerNorm(d) if final_norm else None
        self.head = nn.Linear(d, TILES)
        self.firsts: Tensor  # the first index of each of the four dropout masks of a block
        self.register_buffer("firsts", torch.zeros(4, dtype=torch.int64), persistent=False)
        for stack in (self.qkv, self.out, self.up, self.down):
            for matrix in stack.data.flatten(0, -3):
                nn.init.xavier_uniform_(matrix)

    def start_at(self, board: int) -> None:
        numbers = [self.cells * self.d, self.cells * self.up.shape[1], self.cells * self.d]
        self.firsts.copy_(board * torch.tensor([self.heads, *numbers]))

    def draw_seeds(self) -> Tensor:
        return draw_seeds(self.blocks, self.firsts)

    def forward(
        self,
        tokens: Tensor,
        t: Tensor | None = None,
        cells: Tensor | None = None,
        seeds: Tensor | None = None,
    ) -> Tensor:
        assert t is not None, "the paper's network needs the time step"
        place = (self.row.weight[:, None] + self.column.weight[None, :]).flatten(0, 1)  # (cells, d)
        given = place + self.time(sinusoid(t, self.d))[:, None]
        x = self.embed(tokens, self.token.weight) + given.to(self.dtype)
        p = self.dropout if self.training else 0.0
        seeds = self.draw_seeds() if seeds is None else seeds
        stacks = [
            self.qkv, self.qkv_bias, self.out, self.out_bias, self.up, self.up_bias, self.down, self.down_bias
        ]  # fmt: skip
        blocks = list(zip(seeds, *(stack.unbind(0) for stack in stacks), strict=True))
        gains, shifts = self.norm_weight.flatten(0, 1).unbind(0), self.norm_bias.flatten(0, 1).unbind(0)
        activate = gelu_dropout if self.activation == "gelu" else relu_dropout
        y = layer_norm(x, gains[0], shifts[0])
        for i, (s, qkv, qkv_b, out, out_b, up, up_b, down, down_b) in enumerate(blocks):
            y = attend(self.linear(y, qkv.flatten(0, 1), qkv_b), self.heads, dropout=p, seed=s[0])
            x, y = add_norm(x, self.linear(y, out), out_b, gains[2 * i + 1], shifts[2 * i + 1], p, s[1])
            y = self.linear(activate(self.linear(y, up), up_b, p, s[2]), down)
            if i + 1 < len(blocks):
                x, y = add_norm(x, y, down_b, gains[2 * i + 2], shifts[2 * i + 2], p, s[3])
            else:
                x = add_dropped(x, y, down_b, p, s[3])
        if cells is not None:
            x = pick(x, cells)
        if self.final_norm is not None:
            x = layer_norm(x, self.final_norm.weight, self.final_norm.bias)
        return self.logits(x, self.head.weight, self.head.bias)


class InteriorNetwork(TransformerNetwork):
    """Ours: only the cells inside the border wall, and no time input (the number of masks is visible).

    RMSNorm without gain, QK-norm, 2-D rotary positions beside a learned table, squared ReLU, no biases, output
    projections that start at zero. The last block computes queries and what follows only for the given cells: a sampler
    that unmasks one cell at a time needs no other logits.

    With ``passes`` above 1 the network is looped: the blocks run so many times, and before every pass but the first
    the embedded input is added again, times a learned gain per channel. With ``symmetry`` a learned label tells it
    which of the eight symmetries was applied to a board; without a label it assumes the identity.

    >>> InteriorNetwork()(torch.full((2, 64), 7)).shape
    torch.Size([2, 64, 7])
    """

    def __init__(
        self, height: int = 10, width: int = 10, d: int = 256, blocks: int = 6, heads: int = 4, hidden: int = 1024,
        passes: int = 1, symmetry: bool = False, unit: str = "squared_relu", initial_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(height, width)
        self.d, self.heads, self.blocks, self.passes, self.unit = d, heads, blocks, passes, unit
        self.token = nn.Embedding(MASK + 1, d)
        self.place = nn.Parameter(torch.randn(self.cells, d) * 0.02)
        self.add_blocks(blocks, d, hidden, initial_scale * math.sqrt(3 / d))
        self.head = nn.Parameter(torch.zeros(TILES, d))
        self.gain = nn.Parameter(torch.ones(d)) if passes > 1 else None
        self.turns = nn.Parameter(torch.zeros(8, d)) if symmetry else None
        self.rotary: Tensor
        self.register_buffer("rotary", rotary_table(self.rows, self.columns, d // heads), persistent=False)

    def forward(
        self, tokens: Tensor, t: Tensor | None = None, cells: Tensor | None = None, seeds: Tensor | None = None,
        turn: Tensor | None = None, passes: int | None = None,
    ) -> Tensor:  # fmt: skip
        x = self.features(tokens, self.places(turn), self.matrices(), cells, passes=passes)
        return self.logits(x, self.head)

    def places(self, turn: Tensor | None = None) -> Tensor:
        """What is added to the tokens: the table of places, and each board's label of its symmetry, if any."""
        if self.turns is None:
            return self.place
        if turn is None:
            return self.place + self.turns[0]
        one_hot = turn[:, None] == torch.arange(
            8, device=turn.device
        )  # as in embed: no scatter in its gradient
        return self.place + (one_hot.to(self.turns.dtype) @ self.turns)[:, None]

    def features(
        self, tokens: Tensor, place: Tensor, stacks: Sequence[Tensor], cells: Tensor | None = None,
        hidden: list[Tensor] | None = None, passes: int | None = None,
    ) -> Tensor:  # fmt: skip
        """The input of the head, (boards, k, d), with ``place`` added to the tokens, and these matrices.

        Every block's hidden activations are appended to ``hidden``, where it is given, in every pass. ``passes`` is
        the network's own number unless another is given.
        """
        blocks = list(zip(*(stack.unbind(0) for stack in stacks), strict=True))
        count = passes or self.passes
        known = not self.training and place.dim() == 2 and len(tokens) > MASK + 1
        if known:  # there are only tokens times cells different rows, however many boards
            table = rms_norm(self.token.weight.to(self.dtype)[:, None] + place.to(self.dtype)).flatten(0, 1)
            row = tokens.long() * self.cells + torch.arange(self.cells, device=tokens.device)
            given = F.embedding(row, table)
        else:
            given = rms_norm(self.embed(tokens, self.token.weight) + place.to(self.dtype))
        x = given if count == 1 else given.clone()  # add_linear may write to it
        for run in range(count):
            if run and self.gain is not None:
                x = x + given * self.gain.to(x.dtype)
            for i, (qkv, out, up, down) in enumerate(blocks):
                if cells is not None and run + 1 == count and i + 1 == len(blocks):
                    y = self._attend_from(x, qkv, cells)
                    x = pick(x, cells)
                elif known and run == i == 0:
                    whole = self.linear(rms_norm(table), qkv.flatten(0, 1))
                    y = attend(F.embedding(row, whole), self.heads, self.rotary)
                else:
                    y = attend_normed(x, qkv.flatten(0, 1), self.heads, self.rotary)
                x = self.add_linear(x, y, out)
                x = self._feed_forward(x, up, down, hidden)
        return rms_norm(x)

    def _feed_forward(self, x: Tensor, up: Tensor, down: Tensor, hidden: list[Tensor] | None) -> Tensor:
        if self.unit == "gelu":
            h = F.gelu(self.linear(rms_norm(x), up), approximate="tanh")
        else:
            h = squared_relu_linear(x, up)
        if hidden is not None:
            hidden.append(h)
        return self.add_linear(x, h, down)

    def _attend_from(self, x: Tensor, qkv: Tensor, cells: Tensor) -> Tensor:
        """The same attention with queries at ``cells`` only: (boards, all cells, d) to (boards, k, d)."""
        boards, k = cells.shape
        q = self.linear(rms_norm(pick(x, cells)), qkv[0]).view(boards, k, self.heads, -1).transpose(1, 2)
        q = normalise_and_rotate(q, self.rotary[:, cells][:, :, None])
        mixed = mix(q, self.linear(x, qkv[1]), x, self.rotary)  # (boards, heads, k, d)
        values = qkv[2].to(x.dtype).view(self.heads, -1, self.d)
        return torch.einsum("bhkd,hed->bkhe", mixed, values).reshape(boards, k, self.d)


def build_network(settings: Mapping[str, Any]) -> Network:
    """The network that a run's settings (the fields of its preset) describe, with fresh weights."""
    return NETWORKS[settings["network"]](settings)


def register_network(name: str, build: Callable[[Mapping[str, Any]], Network]) -> None:
    """Add a network under a name, for presets and the models trained with it. ``build`` gets a preset's settings."""
    NETWORKS.register(name, build)


def network_shape(settings: Mapping[str, Any]) -> dict[str, int]:
    """The shape of one of our networks, checked: the settings may come from a file."""
    shape: dict[str, int] = {
        name: settings[name] for name in ("height", "width", "d", "blocks", "heads", "hidden")
    }
    for name, size in shape.items():
        if type(size) is not int or not 1 <= size <= 1 << 14:
            raise MaskobanError(f"{name}: expected a whole number from 1 to {1 << 14}, got {size!r}")
    if shape["d"] % (4 * shape["heads"]):
        raise MaskobanError(f"d: expected a multiple of 4 * {shape['heads']} heads, got {shape['d']}")
    return shape


#: The choices that one network has and the other does not. The first value is that of models without the setting.
_PAPER_CHOICES: dict[str, tuple[Any, ...]] = {"final_norm": (False, True), "activation": ("gelu", "relu")}
_INTERIOR_CHOICES: dict[str, tuple[Any, ...]] = {
    "passes": tuple(range(1, 65)), "symmetry": (0.0,), "unit": ("squared_relu", "gelu"), "initial_scale": (1.0,),
}  # fmt: skip


def _choices(
    settings: Mapping[str, Any], own: Mapping[str, tuple[Any, ...]], others: Mapping[str, tuple[Any, ...]]
) -> dict[str, Any]:
    """A network's own choices, checked; those of the other network must have their first value."""
    for name, (default, *_) in others.items():
        if settings.get(name, default) != default:
            network = settings["network"]
            raise MaskobanError(
                f"{name}: expected {default!r} for the {network} network, got {settings[name]!r}"
            )
    chosen = {name: settings.get(name, values[0]) for name, values in own.items()}
    for name, values in own.items():
        number = type(values[0]) is float and type(chosen[name]) in (int, float) and 0 <= chosen[name] <= 100
        if not number and (type(chosen[name]) is not type(values[0]) or chosen[name] not in values):
            shown = [repr(value) for value in values]
            expected = " or ".join(
                shown if len(shown) < 5 else [f"a whole number from {shown[0]} to {shown[-1]}"]
            )
            raise MaskobanError(f"{name}: expected {expected}, got {chosen[name]!r}")
    return chosen


def _paper(settings: Mapping[str, Any]) -> Network:
    dropout = settings["dropout"]
    if type(dropout) not in (int, float) or not 0 <= dropout < 1:
        raise MaskobanError(f"dropout: expected a number from 0 to below 1, got {dropout!r}")
    choices = _choices(settings, _PAPER_CHOICES, _INTERIOR_CHOICES)
    return PaperNetwork(**(choices | network_shape(settings)), dropout=dropout)


def _interior(settings: Mapping[str, Any]) -> Network:
    if settings["dropout"] != 0:
        raise MaskobanError(f"dropout: expected 0 for the interior network, got {settings['dropout']!r}")
    choices = _choices(settings, _INTERIOR_CHOICES, _PAPER_CHOICES)
    return InteriorNetwork(**(choices | network_shape(settings) | {"symmetry": choices["symmetry"] > 0}))


def _conditional(settings: Mapping[str, Any]) -> Network:
    from maskoban.nn.conditional import build_conditional  # here: it imports this module

    return build_conditional(settings)


NETWORKS = Registry[Callable[[Mapping[str, Any]], Network]](
    "network", {"paper": _paper, "interior": _interior, "conditional": _conditional}
)


def sinusoid(t: Tensor, d: int) -> Tensor:
    """[sin(t w_0), cos(t w_0), sin(t w_1), cos(t w_1), ...] with w_k = 10000^(-2k/d): (boards,) to (boards, d)."""
    frequency = 10000.0 ** (-torch.arange(0, d, 2, device=t.device, dtype=torch.float32) / d)
    angle = t.float()[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


def pick(x: Tensor, cells: Tensor) -> Tensor:
    """The rows of (boards, all cells, d) named by (boards, k): (boards, k, d)."""
    return x.gather(1, cells[:, :, None].expand(-1, -1, x.shape[-1]))
