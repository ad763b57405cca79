"""The two networks against independent small references."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskoban.errors import MaskobanError
from maskoban.nn.attention import attend_reference
from maskoban.nn.layers import add_product, rms_norm
from maskoban.nn.networks import InteriorNetwork, PaperNetwork, build_network, sinusoid


def shaken(network: nn.Module, seed: int) -> nn.Module:
    """Random values everywhere: what starts at zero or one would hide mistakes."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in network.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return network


def test_the_papers_network_has_4879111_parameters() -> None:
    assert sum(p.numel() for p in PaperNetwork().parameters()) == 4_879_111


def test_the_sinusoid_by_hand() -> None:
    """d = 4: frequencies 1 and 10000^(-1/2) = 1/100, sine and cosine in turn."""
    by_hand = [[math.sin(t), math.cos(t), math.sin(t / 100), math.cos(t / 100)] for t in (1, 57, 100)]
    torch.testing.assert_close(sinusoid(torch.tensor([1, 57, 100]), 4), torch.tensor(by_hand))


class Reference(nn.Module):
    """The paper's network from torch's own encoder layers, with the weights of ours copied in."""

    def __init__(self, ours: PaperNetwork, hidden: int) -> None:
        super().__init__()
        self.ours = ours
        self.layers = nn.ModuleList()
        for i in range(len(ours.qkv)):
            layer = nn.TransformerEncoderLayer(
                ours.d,
                ours.heads,
                hidden,
                ours.dropout,
                activation=F.relu if ours.activation == "relu" else partial(F.gelu, approximate="tanh"),
                batch_first=True,
                norm_first=True,
            )
            layer.load_state_dict(
                {
                    "self_attn.in_proj_weight": ours.qkv[i].reshape(3 * ours.d, ours.d),
                    "self_attn.in_proj_bias": ours.qkv_bias[i],
                    "self_attn.out_proj.weight": ours.out[i],
                    "self_attn.out_proj.bias": ours.out_bias[i],
                    "linear1.weight": ours.up[i],
                    "linear1.bias": ours.up_bias[i],
                    "linear2.weight": ours.down[i],
                    "linear2.bias": ours.down_bias[i],
                    "norm1.weight": ours.norm_weight[i, 0],
                    "norm1.bias": ours.norm_bias[i, 0],
                    "norm2.weight": ours.norm_weight[i, 1],
                    "norm2.bias": ours.norm_bias[i, 1],
                }
            )
            self.layers.append(layer)

    def forward(self, tokens: Tensor, t: Tensor) -> Tensor:
        ours, d = self.ours, self.ours.d
        x = torch.empty(*tokens.shape, d)
        for board in range(len(tokens)):
            waves = []
            for k in range(d // 2):
                angle = t[board].item() * 10000 ** (-2 * k / d)
                waves += [math.sin(angle), math.cos(angle)]
            time = ours.time(torch.tensor([waves]))[0]
            for cell in range(tokens.shape[1]):
                row, column = divmod(cell, ours.width)
                token = ours.token.weight[tokens[board, cell]]
                x[board, cell] = token + ours.row.weight[row] + ours.column.weight[column] + time
        for layer in self.layers:
            x = layer(x)
        if ours.final_norm is not None:
            x = F.layer_norm(x, (d,), ours.final_norm.weight, ours.final_norm.bias)
        return x @ ours.head.weight.T + ours.head.bias


@pytest.mark.parametrize(
    ("height", "width", "choices"),
    [(4, 4, {}), (3, 5, {}), (3, 5, {"final_norm": True}), (3, 5, {"activation": "relu"})],
)
def test_the_papers_network_equals_torchs_encoder_layers(
    height: int, width: int, choices: dict[str, Any]
) -> None:
    ours = PaperNetwork(height, width, d=32, blocks=2, heads=4, hidden=64, **choices)
    shaken(ours, 1).eval()
    reference = Reference(ours, hidden=64).eval()
    tokens, t = torch.randint(0, 8, (3, height * width)), torch.tensor([1, 50, 100])
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens, t), reference(tokens, t), rtol=1e-4, atol=1e-5)
        cells = torch.tensor([[0, 5], [7, 7], [11, 2]])
        picked = reference(tokens, t)[torch.arange(3)[:, None], cells]
        torch.testing.assert_close(ours(tokens, t, cells), picked, rtol=1e-4, atol=1e-5)


def test_gradients_of_the_papers_network_equal_torchs_too() -> None:
    ours = PaperNetwork(3, 3, d=16, blocks=2, heads=2, hidden=32, dropout=0.0)
    shaken(ours, 2).train()
    reference = Reference(ours, hidden=32).train()
    tokens, t = torch.randint(0, 8, (4, 9)), torch.tensor([1, 3, 50, 99])
    weight = torch.randn(4, 9, 7)
    (ours(tokens, t) * weight).sum().backward()
    assert ours.qkv.grad is not None
    mine = {"qkv": ours.qkv.grad.reshape(2, 48, 16), "token": ours.token.weight.grad.clone()}  # type: ignore[union-attr]
    ours.zero_grad()
    (reference(tokens, t) * weight).sum().backward()
    theirs = torch.stack([layer.self_attn.in_proj_weight.grad for layer in reference.layers])  # type: ignore[union-attr,misc]
    torch.testing.assert_close(mine["qkv"], theirs, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(mine["token"], ours.token.weight.grad, rtol=1e-3, atol=1e-4)


def test_dropout_works_in_training_alone() -> None:
    network = shaken(PaperNetwork(3, 3, d=16, blocks=1, heads=2, hidden=32), 3)
    tokens, t = torch.randint(0, 8, (2, 9)), torch.tensor([4, 9])
    network.eval()
    assert torch.equal(network(tokens, t), network(tokens, t))
    network.train()
    assert not torch.equal(network(tokens, t), network(tokens, t))
    torch.manual_seed(5)
    first = network(tokens, t)
    torch.manual_seed(5)
    assert torch.equal(first, network(tokens, t))


def test_the_interior_network_samples_the_cells_inside_the_border() -> None:
    network = InteriorNetwork(6, 9, d=32, blocks=1, heads=2, hidden=64)
    assert (network.rows, network.columns, network.cells) == (4, 7, 28)
    assert network(torch.full((2, 28), 7)).shape == (2, 28, 7)
    assert not network(torch.full((2, 28), 7)).any()  # it starts by saying nothing


@pytest.mark.parametrize(("blocks", "passes"), [(1, 1), (3, 1), (2, 2)])
def test_the_logits_of_some_cells_are_those_of_all(blocks: int, passes: int) -> None:
    network = shaken(InteriorNetwork(6, 7, d=32, blocks=blocks, heads=2, hidden=64, passes=passes), 4)
    tokens = torch.randint(0, 8, (3, 20))
    cells = torch.tensor([[0, 19, 3], [7, 7, 1], [11, 2, 5]])
    everything = network(tokens)
    assert everything.abs().max() > 0.1
    picked = everything[torch.arange(3)[:, None], cells]
    torch.testing.assert_close(network(tokens, None, cells), picked, rtol=1e-4, atol=1e-5)


def test_the_interior_network_equals_its_formulas() -> None:
    """One block, one head, written out: norm, QK-norm, rotation by row and column, squared ReLU, norm."""
    network = InteriorNetwork(4, 5, d=8, blocks=1, heads=1, hidden=16)
    shaken(network, 5)
    tokens = torch.randint(0, 8, (1, 6))

    def norm(v: Tensor) -> Tensor:
        return v / v.square().mean(-1, keepdim=True).add(1e-6).sqrt()

    def turn(v: Tensor, row: int, column: int) -> Tensor:
        """Pairs (0, 4) and (1, 5) turn with the row, (2, 6) and (3, 7) with the column."""
        v, turned = norm(v), v.clone()
        angles = [row, row * 100**-0.5, column, column * 100**-0.5]
        for j, a in enumerate(angles):
            turned[j] = v[j] * math.cos(a) - v[j + 4] * math.sin(a)
            turned[j + 4] = v[j] * math.sin(a) + v[j + 4] * math.cos(a)
        return turned

    with torch.no_grad():
        x = norm(network.token.weight[tokens[0]] + network.place)
        query, key, value = (norm(x) @ network.qkv[0, i].T for i in range(3))
        places = [divmod(cell, 3) for cell in range(6)]
        query = torch.stack([turn(v, *place) for v, place in zip(query, places, strict=True)])
        key = torch.stack([turn(v, *place) for v, place in zip(key, places, strict=True)])
        x = x + torch.softmax(query @ key.T / math.sqrt(8), dim=1) @ value @ network.out[0].T
        x = x + torch.relu(norm(x) @ network.up[0].T) ** 2 @ network.down[0].T
        logits = norm(x) @ network.head.T
        torch.testing.assert_close(network(tokens)[0], logits, rtol=1e-4, atol=1e-5)


def test_a_looped_network_runs_its_blocks_again_on_its_input() -> None:
    """Three passes over two blocks are six blocks in a row, with gain * input added between two passes."""
    shape = {"height": 5, "width": 6, "d": 16, "heads": 1, "hidden": 16}
    looped = shaken(InteriorNetwork(**shape, blocks=2, passes=3), 12)
    assert isinstance(looped, InteriorNetwork)
    assert looped.gain is not None
    once = InteriorNetwork(**shape, blocks=2)
    once.load_state_dict({k: v for k, v in looped.state_dict().items() if k != "gain"})
    tokens = torch.randint(0, 8, (3, 12))
    torch.testing.assert_close(looped(tokens, passes=1), once(tokens))
    x = given = rms_norm(looped.token.weight[tokens] + looped.place)
    for run in range(3):
        x = x + (run > 0) * looped.gain * given
        for i in range(2):
            qkv = rms_norm(x) @ looped.qkv[i].flatten(0, 1).T
            x = x + attend_reference(qkv, 1, looped.rotary) @ looped.out[i].T
            x = x + F.relu(rms_norm(x) @ looped.up[i].T).square() @ looped.down[i].T
    torch.testing.assert_close(looped(tokens), rms_norm(x) @ looped.head.T, rtol=1e-4, atol=1e-5)
    looped(tokens).sum().backward()
    assert looped.gain.grad is not None
    assert looped.gain.grad.any()


def test_the_label_of_a_symmetry_is_the_identity_where_none_is_given() -> None:
    network = shaken(InteriorNetwork(5, 5, d=16, blocks=1, heads=1, hidden=16, symmetry=True), 13)
    tokens = torch.randint(0, 8, (2, 9))
    plain, labelled = network(tokens), network(tokens, turn=torch.tensor([0, 3]))
    torch.testing.assert_close(labelled[0], plain[0])
    assert not torch.allclose(labelled[1], plain[1], atol=1e-3)


def test_bf16_stays_near_fp32_and_logits_come_out_in_fp32() -> None:
    network = InteriorNetwork(6, 6, d=32, blocks=2, heads=2, hidden=64)
    shaken(network, 6)
    tokens = torch.randint(0, 8, (4, 16))
    exact = network(tokens)
    half = network.compute_in(torch.bfloat16)(tokens)
    assert half.dtype == torch.float32
    assert all(p.dtype == torch.float32 for p in network.parameters())
    assert (half - exact).norm() < 0.05 * exact.norm()


def test_training_and_evaluation_embed_alike() -> None:
    """In training the embedding is a product with one-hot tokens, in evaluation a lookup."""
    network = shaken(InteriorNetwork(5, 5, d=16, blocks=1, heads=1, hidden=16), 7)
    tokens = torch.randint(0, 8, (2, 9))
    torch.testing.assert_close(network.train()(tokens), network.eval()(tokens))


@pytest.mark.parametrize(("blocks", "passes"), [(1, 1), (2, 1), (1, 3)])
def test_many_boards_give_what_few_give(blocks: int, passes: int) -> None:
    """Of many, the first block's products come from a table of all tokens in all places."""
    network = shaken(InteriorNetwork(5, 6, d=16, blocks=blocks, heads=1, hidden=16, passes=passes), 8).eval()
    tokens, cells = torch.randint(0, 8, (40, 12)), torch.randint(0, 12, (40, 1))
    few = torch.cat([network(tokens[i : i + 4], None, cells[i : i + 4]) for i in range(0, 40, 4)])
    torch.testing.assert_close(network(tokens, None, cells), few, rtol=1e-4, atol=1e-5)
    whole = torch.cat([network(part) for part in tokens.split(5)])
    torch.testing.assert_close(network(tokens), whole, rtol=1e-4, atol=1e-5)


def test_adding_in_place_equals_adding() -> None:
    torch.manual_seed(9)
    x, y, weight = torch.randn(2, 3, 8), torch.randn(2, 3, 5), torch.randn(8, 5)
    expected = x + y @ weight.T
    add_product(x, y, weight)
    torch.testing.assert_close(x, expected)


@pytest.mark.parametrize(("blocks", "passes"), [(1, 1), (3, 1), (2, 3)])
def test_the_residual_stream_may_be_added_to_in_place(
    blocks: int, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a CUDA device, when drawing: nothing may read it afterwards."""
    network = shaken(InteriorNetwork(5, 6, d=16, blocks=blocks, heads=1, hidden=16, passes=passes), 10).eval()
    tokens, cells = torch.randint(0, 8, (20, 12)), torch.randint(0, 12, (20, 1))

    def in_place(self: InteriorNetwork, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        add_product(x, y, weight)
        return x

    with torch.no_grad():
        for requested in (None, cells):
            expected = [
                network(tokens[:n], None, requested if requested is None else requested[:n]) for n in (4, 20)
            ]
            monkeypatch.setattr(InteriorNetwork, "add_linear", in_place)
            mine = [
                network(tokens[:n], None, requested if requested is None else requested[:n]) for n in (4, 20)
            ]
            monkeypatch.undo()
            for a, b in zip(mine, expected, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_tokens_may_be_bytes() -> None:
    network = shaken(InteriorNetwork(d=16, blocks=1, heads=1, hidden=16), 11).eval()
    tokens = torch.randint(0, 8, (20, 64))
    torch.testing.assert_close(network(tokens.to(torch.uint8)), network(tokens))


def test_a_shape_that_makes_no_sense_is_an_error() -> None:
    good = {
        "network": "paper",
        "height": 5,
        "width": 5,
        "d": 16,
        "blocks": 1,
        "heads": 2,
        "hidden": 16,
        "dropout": 0.1,
    }
    assert build_network(good).blocks == 1
    for change, sentence in (
        ({"heads": 3}, "d: expected a multiple of 4 * 3 heads, got 16"),
        ({"blocks": 0}, "blocks: expected a whole number from 1 to 16384, got 0"),
        ({"dropout": 1}, "dropout: expected a number from 0 to below 1, got 1"),
        ({"network": "interior"}, "dropout: expected 0 for the interior network, got 0.1"),
        ({"activation": "silu"}, "activation: expected 'gelu' or 'relu', got 'silu'"),
        ({"final_norm": 1}, "final_norm: expected False or True, got 1"),
        (
            {"network": "interior", "dropout": 0, "activation": "relu"},
            "activation: expected 'gelu' for the interior network, got 'relu'",
        ),
        ({"passes": 2}, "passes: expected 1 for the paper network, got 2"),
        (
            {"network": "interior", "dropout": 0, "passes": 0},
            "passes: expected a whole number from 1 to 64, got 0",
        ),
        ({"network": "mine"}, "network: expected one of paper, interior, conditional, got 'mine'"),
    ):
        with pytest.raises(MaskobanError) as error:
            build_network(good | change)
        assert str(error.value) == sentence
