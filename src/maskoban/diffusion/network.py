"""The two networks: the paper's, as it is described there, and ours.

Both map masked tokens to logits over the seven tiles for every cell they draw:

    forward(tokens (boards, cells) int64, t (boards,) or None, cells (boards, k) or None, seeds) -> (boards, k, 7)

Where ``cells`` is given, only those cells' logits are returned; where it is None, all of them. ``seeds`` are those of
:meth:`Network.draw_seeds`, drawn anew where they are not given. Parameters are fp32; activations run in the dtype
given to :meth:`Network.compute_in`.
The matrices of all blocks are stacked along a leading axis, so that an optimiser handles each kind at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK, TILES
from maskoban.diffusion.attention import attend, attend_normed, mix, normalise_and_rotate, rotary_table
from maskoban.diffusion.dropout import draw_seeds
from maskoban.diffusion.feedforward import add_product, rms_norm, squared_relu_linear
from maskoban.diffusion.paper_layers import add_dropped, add_norm, gelu_dropout, layer_norm


class Network(nn.Module):
    """What the two networks share: the grid of cells they draw, and the dtype they compute in."""

    #: Rings of wall around the drawn cells that are given, not drawn.
    margin: int
    #: Whether forward needs t.
    timed: bool
    #: How many there are, and so how many slices a stacked parameter has.
    blocks: int

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

    def start_at(self, board: int) -> None:
        """The boards to train on will be those of a larger batch from this one on: what is dropped depends on it."""

    def draw_seeds(self) -> Tensor | None:
        """What the next forward pass's dropout follows from, of torch's generator, where there is dropout."""
        return None

    def embed(self, tokens: Tensor, table: Tensor) -> Tensor:
        """Rows of the table; in training as a product with one-hot tokens, whose gradient is one too, no scatter."""
        if not self.training:
            return F.embedding(tokens, table.to(self.dtype))
        one_hot = tokens[..., None] == torch.arange(MASK + 1, device=tokens.device)
        return one_hot.to(self.dtype) @ table.to(self.dtype)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))

    def add_linear(self, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """x + y W^T. On a CUDA device the sum is taken inside the product, which saves a pass over x, and where no
        gradient is wanted, in x itself, which saves another: x is the caller's no longer."""
        if not x.is_cuda:
            return x + self.linear(y, weight)
        if not torch.is_grad_enabled():
            add_product(x, y, weight.to(y.dtype))
            return x
        return torch.addmm(x.flatten(0, -2), y.flatten(0, -2), weight.to(y.dtype).T).view_as(x)

    def logits(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x W^T for the seven tiles; on a CUDA device with an eighth row, since matrix units count in eights."""
        if x.is_cuda:
            weight = F.pad(weight, (0, 0, 0, 1))
            bias = None if bias is None else F.pad(bias, (0, 1))
        return self.linear(x, weight, bias)[..., :TILES].float()


class PaperNetwork(Network):
    """The paper's encoder: 4,879,111 parameters for a 10x10 grid at its default shape.

    h_i = E_tok(x_i) + E_row(r_i) + E_col(c_i) + MLP(sinusoid(t)), then pre-norm blocks (multi-head attention and
    a feed-forward layer, each added to the residual stream), then one linear layer to seven logits, with no
    norm before it, since the paper names none. It does not name the two non-linearities: GELU (its tanh form) in the
    blocks and SiLU in the time MLP are our choice. Dropout sits where torch's own encoder layer has it: on attention
    weights, on the feed-forward's hidden layer and on both branches.

    >>> sum(p.numel() for p in PaperNetwork().parameters())
    4879111
    """

    margin = 0
    timed = True

    def __init__(
        self, height: int = 10, width: int = 10, d: int = 256, blocks: int = 6, heads: int = 8,
        hidden: int = 1024, dropout: float = 0.1,
    ) -> None:  # fmt: skip
        super().__init__(height, width)
        self.d, self.heads, self.dropout, self.blocks = d, heads, dropout, blocks
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
        self.head = nn.Linear(d, TILES)
        self.firsts: Tensor  # where the four places of a block that drop start counting
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
            self.qkv,
            self.qkv_bias,
            self.out,
            self.out_bias,
            self.up,
            self.up_bias,
            self.down,
            self.down_bias,
        ]
        blocks = list(zip(seeds, *(stack.unbind(0) for stack in stacks), strict=True))
        gains, shifts = self.norm_weight.flatten(0, 1).unbind(0), self.norm_bias.flatten(0, 1).unbind(0)
        y = layer_norm(x, gains[0], shifts[0])
        for i, (s, qkv, qkv_b, out, out_b, up, up_b, down, down_b) in enumerate(blocks):
            y = attend(self.linear(y, qkv.flatten(0, 1), qkv_b), self.heads, dropout=p, seed=s[0])
            x, y = add_norm(x, self.linear(y, out), out_b, gains[2 * i + 1], shifts[2 * i + 1], p, s[1])
            y = self.linear(gelu_dropout(self.linear(y, up), up_b, p, s[2]), down)
            if i + 1 < len(blocks):
                x, y = add_norm(x, y, down_b, gains[2 * i + 2], shifts[2 * i + 2], p, s[3])
            else:
                x = add_dropped(x, y, down_b, p, s[3])
        if cells is not None:
            x = pick(x, cells)
        return self.logits(x, self.head.weight, self.head.bias)


class InteriorNetwork(Network):
    """Ours: only the cells inside the border wall, no time input (the number of masks already tells it).

    RMSNorm without gain, QK-norm, 2-D rotary positions beside a learned table, squared ReLU, no biases, zero
    output projections at the start. The last block computes queries and what follows only for the cells asked
    for, because a sampler that reveals one cell at a time needs no other logits.

    >>> InteriorNetwork()(torch.full((2, 64), 7)).shape
    torch.Size([2, 64, 7])
    """

    margin = 1
    timed = False

    def __init__(
        self,
        height: int = 10,
        width: int = 10,
        d: int = 256,
        blocks: int = 6,
        heads: int = 4,
        hidden: int = 1024,
    ) -> None:
        super().__init__(height, width)
        self.d, self.heads, self.blocks = d, heads, blocks
        self.token = nn.Embedding(MASK + 1, d)
        self.place = nn.Parameter(torch.randn(self.cells, d) * 0.02)
        self.qkv = nn.Parameter(torch.empty(blocks, 3, d, d))
        self.out = nn.Parameter(torch.zeros(blocks, d, d))
        self.up = nn.Parameter(torch.empty(blocks, hidden, d))
        self.down = nn.Parameter(torch.zeros(blocks, d, hidden))
        self.head = nn.Parameter(torch.zeros(TILES, d))
        for stack in (self.qkv, self.up):
            nn.init.uniform_(stack, -math.sqrt(3 / d), math.sqrt(3 / d))
        self.rotary: Tensor
        self.register_buffer("rotary", rotary_table(self.rows, self.columns, d // heads), persistent=False)

    def forward(
        self,
        tokens: Tensor,
        t: Tensor | None = None,
        cells: Tensor | None = None,
        seeds: Tensor | None = None,
    ) -> Tensor:
        return self.logits(self.features(tokens, self.place, self.stacks(), cells), self.head)

    def stacks(self) -> list[Tensor]:
        """The matrices of all blocks, in the order a block uses them."""
        return [self.qkv, self.out, self.up, self.down]

    def features(
        self, tokens: Tensor, place: Tensor, stacks: Sequence[Tensor], cells: Tensor | None = None
    ) -> Tensor:
        """What the head reads, (boards, k, d): with ``place`` added to the tokens, and these matrices."""
        blocks = list(zip(*(stack.unbind(0) for stack in stacks), strict=True))
        known = not self.training and place.dim() == 2 and len(tokens) > MASK + 1
        if known:  # as many different rows as tokens times cells, however many boards
            table = rms_norm(self.token.weight.to(self.dtype)[:, None] + place.to(self.dtype)).flatten(0, 1)
            row = tokens.long() * self.cells + torch.arange(self.cells, device=tokens.device)
            x = F.embedding(row, table)
        else:
            x = rms_norm(self.embed(tokens, self.token.weight) + place.to(self.dtype))
        for i, (qkv, out, up, down) in enumerate(blocks):
            if cells is not None and i + 1 == len(blocks):
                y = self._attend_from(x, qkv, cells)
                x = pick(x, cells)
            elif known and i == 0:
                whole = self.linear(rms_norm(table), qkv.flatten(0, 1))
                y = attend(F.embedding(row, whole), self.heads, self.rotary)
            else:
                y = attend_normed(x, qkv.flatten(0, 1), self.heads, self.rotary)
            x = self.add_linear(x, y, out)
            x = self.add_linear(x, squared_relu_linear(x, up), down)
        return rms_norm(x)

    def _attend_from(self, x: Tensor, qkv: Tensor, cells: Tensor) -> Tensor:
        """The same attention with queries at ``cells`` only: (boards, all cells, d) to (boards, k, d)."""
        boards, k = cells.shape
        q = self.linear(rms_norm(pick(x, cells)), qkv[0]).view(boards, k, self.heads, -1).transpose(1, 2)
        q = normalise_and_rotate(q, self.rotary[:, cells][:, :, None])
        mixed = mix(q, self.linear(x, qkv[1]), x, self.rotary)  # (boards, heads, k, d)
        values = qkv[2].to(x.dtype).view(self.heads, -1, self.d)
        return torch.einsum("bhkd,hed->bkhe", mixed, values).reshape(boards, k, self.d)


def build_network(settings: Mapping[str, Any]) -> Network:
    """A network from the settings of the run that trained it (the fields of a preset), weights not yet loaded."""
    names = ("height", "width", "d", "blocks", "heads", "hidden")
    shape: dict[str, int] = {name: settings[name] for name in names}
    for name, size in shape.items():
        if type(size) is not int or not 1 <= size <= 1 << 14:
            raise MaskobanError(f"no network has {name} {size!r}")
    if shape["d"] % shape["heads"]:
        raise MaskobanError(f"a width of {shape['d']} cannot be shared by {shape['heads']} heads")
    if settings["network"] not in ("paper", "interior"):
        raise MaskobanError(f"no network is called {settings['network']!r}")
    if settings["network"] == "paper":
        return PaperNetwork(**shape, dropout=settings["dropout"])
    if settings["dropout"]:
        raise MaskobanError("the interior network has no dropout; set dropout to 0 in the preset")
    return InteriorNetwork(**shape)


@torch.no_grad()
def restore_network(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put saved weights into the network, averaged ones where there are any; what does not fit is named."""
    prefix = "ema." if any(name.startswith("ema.") for name in tensors) else "net."
    load_weights(network, tensors, prefix)


@torch.no_grad()
def load_weights(network: nn.Module, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """The tensors of these names, each whole or, if stacked, block by block (NAME.0, ...), where units may be missing
    at the end of a block: they are zero."""
    for name, value in network.state_dict().items():
        saved = tensors.get(prefix + name)
        if saved is None:
            saved = _stacked(tensors, prefix + name, value.shape)
        if saved is None or saved.shape != value.shape:
            what = "missing" if saved is None else f"of shape {tuple(saved.shape)}, not {tuple(value.shape)}"
            raise MaskobanError(f"the checkpoint does not fit the network: {name} is {what}")
        value.copy_(saved)


def _stacked(tensors: Mapping[str, Tensor], name: str, shape: Sequence[int]) -> Tensor | None:
    """NAME.0, NAME.1, ... as one tensor of this shape, filled up with zeros along the axis of hidden units."""
    if len(shape) != 3 or f"{name}.0" not in tensors:
        return None
    whole, units = torch.zeros(*shape), 0 if name.endswith("up") else 1
    for i, room in enumerate(whole):
        part = tensors.get(f"{name}.{i}")
        if part is None:
            raise MaskobanError(f"the checkpoint does not fit the network: {name}.{i} is missing")
        if part.ndim == 2 and part.shape[units] <= room.shape[units]:
            room = room.narrow(units, 0, part.shape[units])
        if part.shape != room.shape:
            shapes = f"of shape {tuple(part.shape)}, which does not fit {tuple(shape[1:])}"
            raise MaskobanError(f"the checkpoint does not fit the network: {name}.{i} is {shapes}")
        room.copy_(part)
    return whole


def sinusoid(t: Tensor, d: int) -> Tensor:
    """[sin(t w_0), cos(t w_0), sin(t w_1), cos(t w_1), ...] with w_k = 10000^(-2k/d): (boards,) to (boards, d)."""
    frequency = 10000.0 ** (-torch.arange(0, d, 2, device=t.device, dtype=torch.float32) / d)
    angle = t.float()[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


def pick(x: Tensor, cells: Tensor) -> Tensor:
    """The rows of (boards, all cells, d) named by (boards, k): (boards, k, d)."""
    return x.gather(1, cells[:, :, None].expand(-1, -1, x.shape[-1]))
