"""A network as a denoiser: boards do not depend on what is drawn beside them."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK
from maskoban.diffusion import torch_denoiser
from maskoban.diffusion.network import InteriorNetwork, Network, PaperNetwork
from maskoban.diffusion.recorded_forward import RecordedForward
from maskoban.diffusion.sampler import Drawing, blank, draw, draw_many
from maskoban.diffusion.torch_denoiser import TorchDenoiser


def random_network(network: Network) -> Network:
    torch.manual_seed(1)
    with torch.no_grad():
        for p in network.parameters():
            p.copy_(torch.randn_like(p) * 0.2)
    return network.eval()


def networks() -> list[Network]:
    return [
        random_network(InteriorNetwork(5, 6, d=32, blocks=2, heads=2, hidden=64)),
        random_network(PaperNetwork(3, 4, d=32, blocks=1, heads=2, hidden=64)),
    ]


def test_logits_are_the_networks() -> None:
    for network in networks():
        denoiser = TorchDenoiser(network, steps=12, batch=4)
        rng = np.random.default_rng(0)
        tokens = rng.integers(0, 8, (10, network.cells)).astype(np.uint8)  # two batches and a half
        t, cells = rng.integers(1, 13, 10), rng.integers(0, network.cells, (10, 3))
        with torch.no_grad():
            everything = network(torch.from_numpy(tokens).long(), torch.from_numpy(t)).numpy()
        expected = np.take_along_axis(everything, cells[:, :, None], axis=1)
        np.testing.assert_allclose(denoiser.logits(tokens, t, cells), expected, rtol=1e-4, atol=1e-4)


def test_a_board_is_the_same_alone_and_among_others_to_the_bit() -> None:
    for network in networks():
        denoiser = TorchDenoiser(network, steps=12, batch=8)
        how = Drawing(polish=1)
        whole = draw(denoiser, blank(denoiser, 20), seed=3, how=how).boards
        assert (whole != MASK).all()
        parts = draw_many(denoiser, blank(denoiser, 20), seed=3, how=how).boards
        assert (parts == whole).all()
        one = draw(denoiser, blank(denoiser, 1), seed=3, how=how, numbers=[13]).boards
        assert (one[0] == whole[13]).all()
        logits = [denoiser.logits(whole[:k].reshape(k, -1)[:, : network.cells], np.ones(k, np.int64),
                                  np.zeros((k, 1), np.int64))[0] for k in (1, 5, 20)]  # fmt: skip
        assert (logits[0] == logits[1]).all()
        assert (logits[0] == logits[2]).all()


class Recording:
    """Stands in for a recorded forward pass, which needs a CUDA device: in chunks, and for one user at a time."""

    made = 0

    def __init__(self, forward: Any, network: Network, batch: int, asked: int, chunk: int) -> None:
        Recording.made += 1
        self.forward, self.chunk, self.busy = forward, chunk, False
        self.logits = torch.empty(batch, asked, 7)

    def __call__(self, tokens: Tensor, when: Tensor | None, where: Tensor) -> Tensor:
        assert not self.busy
        self.busy = True
        for start in range(0, len(tokens), self.chunk):
            part = slice(start, start + self.chunk)
            self.logits[part] = self.forward(
                tokens[part].long(), None if when is None else when[part], where[part]
            )
        self.busy = False
        return self.logits


def test_recordings_are_shared_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_denoiser, "RecordedForward", Recording)
    for network in networks():
        plain = TorchDenoiser(network, steps=12, batch=8)
        recorded = TorchDenoiser(network, steps=12, batch=8, chunk=4)
        recorded.overlap, recorded._idle = 2, {}
        Recording.made = 0
        how = Drawing(polish=1)
        expected = draw_many(plain, blank(plain, 40), seed=3, how=how).boards
        drawn = draw_many(recorded, blank(recorded, 40), seed=3, how=how).boards
        assert (drawn == expected).all()
        assert Recording.made == 2


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (1.01, True), (1.2, False), (math.nan, False)])
def test_a_recording_that_differs_from_its_network_is_refused(factor: float, right: bool) -> None:
    for network in networks():
        recorded = RecordedForward.__new__(RecordedForward)
        recorded._tokens = torch.full((6, network.cells), MASK, dtype=torch.uint8)
        recorded._when = torch.ones(6, dtype=torch.int64) if network.timed else None
        recorded._where = torch.zeros((6, 1), dtype=torch.int64)
        recorded._logits = torch.zeros(6, 1, 7)

        class Graph:
            def replay(self, its: RecordedForward = recorded, network: Network = network) -> None:
                assert its._tokens.unique().numel() > 1
                its._logits.copy_(factor * network(its._tokens.long(), its._when, its._where))

        recorded._graph = Graph()
        with torch.no_grad(), nullcontext() if right else pytest.raises(MaskobanError, match="compiled"):
            recorded._prove(network, 4)
