"""A critic: what it keeps when boards are sampled, and the network that it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from maskoban.boards import Tokens
from maskoban.diffusion.loading import load
from maskoban.diffusion.model import Model
from maskoban.errors import MaskobanError
from maskoban.nn.critic import CriticNetwork, fingerprint
from maskoban.nn.networks import InteriorNetwork
from maskoban.nn.runtime import TorchCritic, load_torch, load_torch_critic
from maskoban.nn.weight_files import save_tensors
from maskoban.training.export import export
from tests.training.small_models import save_critic, save_run

# -- the network


def a_network() -> InteriorNetwork:
    torch.manual_seed(1)
    network = InteriorNetwork(5, 6, d=32, blocks=2, heads=2, hidden=64)
    with torch.no_grad():
        for p in network.parameters():
            p.copy_(torch.randn_like(p) * 0.2)
    return network


def a_critic(network: InteriorNetwork) -> CriticNetwork:
    critic = CriticNetwork(network, rank=3)
    with torch.no_grad():
        for name, p in critic.named_parameters():
            if not name.startswith("base."):
                p.copy_(torch.randn_like(p) * 0.3)
    return critic


def some_boards(network: InteriorNetwork, n: int) -> Tokens:
    return np.random.default_rng(3).integers(0, 7, (n, network.cells)).astype(np.uint8)


def test_a_new_critic_finds_all_boards_as_likely_sampled_as_real() -> None:
    network = a_network()
    boards = torch.from_numpy(some_boards(network, 4)).long()
    assert (CriticNetwork(network, rank=2)(boards) == 0).all()


def test_a_critic_learns_what_it_adds_and_leaves_the_denoiser_alone() -> None:
    network = a_network()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    critic = a_critic(network).train()
    assert not network.training
    learned = {name for name, p in critic.named_parameters() if p.requires_grad}
    assert learned == set(critic.added())
    critic(torch.from_numpy(some_boards(network, 8)).long(), torch.arange(8)).sum().backward()
    assert all(p.grad is not None for name, p in critic.named_parameters() if name in learned)
    assert all((value == before[name]).all() for name, value in network.state_dict().items())
    plain = CriticNetwork(network, rank=3)
    for changed, stack in zip(plain.stacks(), network.matrices(), strict=True):
        assert torch.equal(changed, stack)  # until it has learned, nothing is changed


def test_a_critic_hears_by_which_symmetry_a_board_was_turned() -> None:
    network = a_network()
    critic, board = a_critic(network), torch.from_numpy(some_boards(network, 1)).long()
    with torch.no_grad():
        scores, untold = critic(board.expand(8, -1), torch.arange(8)).tolist(), critic(board).tolist()
    assert len(set(scores)) == 8
    assert untold == pytest.approx(scores[:1], abs=1e-5)


def test_scores_are_the_networks_whatever_else_is_in_the_batch() -> None:
    network = a_network()
    critic, boards = a_critic(network), some_boards(network, 20)
    with torch.no_grad():
        expected = critic(torch.from_numpy(boards).long()).numpy()
    judge = TorchCritic(critic, batch=8)
    scores = judge.scores(boards)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(scores) > 0.1
    for which in ([3], [19, 3, 0], list(range(20))[::-1]):
        assert (judge.scores(boards[which]) == scores[which]).all()
    assert judge.scores(boards[:0]).shape == (0,)


def saved(folder: Path, critic: CriticNetwork, **changed: torch.Tensor) -> Path:
    """An exported folder with a critic."""
    preset = {"name": "tiny", "network": "interior", "dropout": 0, "diffusion_steps": 12,
              "height": 5, "width": 6, "d": 32, "blocks": 2, "heads": 2, "hidden": 64}  # fmt: skip
    weights = {f"net.{name}": value for name, value in critic.base.state_dict().items()}
    save_tensors(folder / "model.safetensors", weights, {"preset": json.dumps(preset)})
    added = {name: value.half() for name, value in critic.added().items()} | changed
    save_tensors(folder / "critic.safetensors", added, {})
    return folder


def test_a_saved_critic_scores_as_it_did(tmp_path: Path) -> None:
    critic = a_critic(a_network())
    boards = some_boards(critic.base, 10)
    loaded = load_torch_critic(saved(tmp_path, critic), "cpu")
    np.testing.assert_allclose(
        loaded.scores(boards), TorchCritic(critic).scores(boards), rtol=0.02, atol=0.01
    )


def test_onnx_runtime_and_torch_keep_the_same_boards(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    export(save_run(tmp_path / "run"), folder, critic=save_critic(tmp_path / "critic"))
    light = load(folder)
    denoiser, facts = load_torch(folder, "cpu")
    plain = light.sample(40, seed=3, sampler="plain")[:, 1:-1, 1:-1].reshape(40, -1)
    assert light.critic is not None
    cutoff = float(np.exp(light.critic.scores(plain).max()))  # it keeps some of them and rejects others
    first = Model(light.denoiser, light.card | {"critic": cutoff}, critic=light.critic).trajectory(40, seed=3)
    critic = load_torch_critic(folder, "cpu")
    second = Model(denoiser, facts | {"critic": cutoff}, critic=critic).trajectory(40, seed=3)
    assert 1 < first.attempts.mean() < 20
    assert (first.attempts == second.attempts).all()
    assert (first.boards == second.boards).all()


def test_a_critic_of_another_model_is_refused(tmp_path: Path) -> None:
    critic = a_critic(a_network())
    sentence = r"critic\.safetensors: not a critic of this model"
    with pytest.raises(MaskobanError, match=sentence + ".*tensor 'head' has shape"):
        load_torch_critic(saved(tmp_path, critic, head=torch.zeros(1, 99)), "cpu")
    save_tensors(tmp_path / "critic.safetensors", {"head": torch.zeros(1, 32)}, {})
    with pytest.raises(MaskobanError, match=r"critic\.safetensors: not a maskoban critic"):
        load_torch_critic(tmp_path, "cpu")
    save_tensors(tmp_path / "critic.safetensors", critic.added(), {"model": fingerprint(critic.base)})
    assert load_torch_critic(tmp_path, "cpu")
    save_tensors(tmp_path / "critic.safetensors", critic.added(), {"model": "0123456789abcdef"})
    with pytest.raises(MaskobanError, match=sentence + ": it was trained on the boards of another"):
        load_torch_critic(tmp_path, "cpu")
