"""The torch runtime: boards do not depend on the rest of the batch, and metadata is checked before it is used."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from maskoban.boards.tiles import MASK
from maskoban.diffusion.denoiser import blank_boards
from maskoban.diffusion.loading import load
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.diffusion.trajectory import sample_boards
from maskoban.errors import MaskobanError
from maskoban.nn import runtime
from maskoban.nn.networks import InteriorNetwork, Network, PaperNetwork
from maskoban.nn.runtime import CudaGraphForward, TorchDenoiser
from maskoban.nn.weight_files import load_tensors, save_tensors
from tests.training.small_models import save_run


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
        config = SamplerConfig(sweeps=1)
        whole = sample_boards(denoiser, blank_boards(denoiser, 20), seed=3, config=config).boards
        assert (whole != MASK).all()
        parts = sample_boards(denoiser, blank_boards(denoiser, 20), seed=3, config=config).boards
        assert (parts == whole).all()
        one = sample_boards(denoiser, blank_boards(denoiser, 1), seed=3, config=config, numbers=[13]).boards
        assert (one[0] == whole[13]).all()
        logits = [denoiser.logits(whole[:k].reshape(k, -1)[:, : network.cells], np.ones(k, np.int64),
                                  np.zeros((k, 1), np.int64))[0] for k in (1, 5, 20)]  # fmt: skip
        assert (logits[0] == logits[1]).all()
        assert (logits[0] == logits[2]).all()


class Recording:
    """Stands in for a CUDA graph, which needs a CUDA device and serves one thread at a time."""

    made = 0

    def __init__(self, forward: Any, network: Network, batch: int, k: int) -> None:
        Recording.made += 1
        self.forward, self.busy = forward, False
        self.logits = torch.empty(batch, k, 7)

    def __call__(self, tokens: Tensor, when: Tensor | None, where: Tensor) -> Tensor:
        assert not self.busy
        self.busy = True
        self.logits[:] = self.forward(tokens.long(), when, where)
        self.busy = False
        return self.logits


def test_recordings_are_shared_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "CudaGraphForward", Recording)
    for network in networks():
        plain = TorchDenoiser(network, steps=12, batch=8)
        recorded = TorchDenoiser(network, steps=12, batch=8)
        recorded.overlap, recorded._idle = 2, {}
        Recording.made = 0
        config = SamplerConfig(sweeps=1)
        expected = sample_boards(plain, blank_boards(plain, 40), seed=3, config=config).boards
        sampled = sample_boards(recorded, blank_boards(recorded, 40), seed=3, config=config).boards
        assert (sampled == expected).all()
        assert Recording.made == 2


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (1.01, True), (1.2, False), (math.nan, False)])
def test_a_recording_that_differs_from_its_network_is_refused(factor: float, right: bool) -> None:
    for network in networks():
        recorded = CudaGraphForward.__new__(CudaGraphForward)
        recorded._tokens = torch.full((6, network.cells), MASK, dtype=torch.uint8)
        recorded._t = torch.ones(6, dtype=torch.int64) if network.timed else None
        recorded._cells = torch.zeros((6, 1), dtype=torch.int64)
        recorded._logits = torch.zeros(6, 1, 7)

        class Graph:
            def replay(self, its: CudaGraphForward = recorded, network: Network = network) -> None:
                assert its._tokens.unique().numel() > 1
                its._logits.copy_(factor * network(its._tokens.long(), its._t, its._cells))

        recorded._graph = Graph()
        with torch.no_grad(), nullcontext() if right else pytest.raises(MaskobanError, match="compiled"):
            recorded._check(network)


# -- metadata


@pytest.mark.parametrize(
    "changes",
    [
        {"d": -8},
        {"d": 10**7},
        {"d": 16_384, "blocks": 16_384, "hidden": 16_384, "heads": 1},
        {"height": 0},
        {"heads": 0},
        {"heads": 7},
        {"heads": "two"},
        {"network": "nope"},
        {"schedule": "nope"},
        {"diffusion_steps": 0},
        {"diffusion_steps": None},
        {"diffusion_steps": 10**12},
        {"dropout": 5},
        {"dropout": "much"},
        {"height": 128},
        {"name": ...},
        {"diffusion_steps": ...},
    ],
    ids=str,
)
def test_settings_that_no_run_has_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = save_run(tmp_path / "run")
    (weights,) = folder.glob("*.safetensors")
    tensors, metadata = load_tensors(weights)
    settings = json.loads(metadata["preset"]) | changes
    metadata["preset"] = json.dumps({name: value for name, value in settings.items() if value is not ...})
    save_tensors(weights, tensors, metadata)
    with pytest.raises(MaskobanError, match=f"^{folder}: not a maskoban model: "):
        load(folder)


@pytest.mark.parametrize("facts", ["x", "[]", "5", "[" * 100_000, "{}", '{"name": "a", "polish": -1}',
                                   '{"name": "a", "height": 9}', '{"name": "a", "margin": 2}'])  # fmt: skip
def test_facts_that_are_none_are_refused(tmp_path: Path, facts: str) -> None:
    folder = save_run(tmp_path / "run")
    (weights,) = folder.glob("*.safetensors")
    tensors, metadata = load_tensors(weights)
    save_tensors(weights, tensors, metadata | {"facts": facts})
    with pytest.raises(MaskobanError, match=f"^{folder}: not a maskoban model: "):
        load(folder)
