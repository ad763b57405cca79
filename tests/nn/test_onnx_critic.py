"""A critic under ONNX Runtime: what torch says, of every board alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="making a critic needs torch")
pytest.importorskip("onnx", reason="exporting needs onnx")

from maskoban.boards.tiles import TILES, Tokens  # noqa: E402
from maskoban.diffusion.onnx import OnnxCritic  # noqa: E402
from maskoban.errors import MaskobanError  # noqa: E402
from maskoban.nn.critic import CriticNetwork  # noqa: E402
from maskoban.nn.networks import InteriorNetwork  # noqa: E402
from maskoban.nn.runtime import load_torch  # noqa: E402
from maskoban.nn.weight_files import load_tensors  # noqa: E402
from maskoban.training.export import TOLERANCE, export  # noqa: E402
from tests.training.small_models import save_critic, save_run  # noqa: E402

CELLS = 4 * 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("critic")
    export(save_run(place / "run"), place / "model", critic=save_critic(place / "critic"), cutoff=3)
    return place / "model"


def boards(n: int) -> Tokens:
    return np.random.default_rng(n).integers(0, TILES, (n, CELLS)).astype(np.uint8)


def test_it_says_what_torch_says(folder: Path) -> None:
    denoiser, _ = load_torch(folder, "cpu")
    assert isinstance(denoiser.network, InteriorNetwork)
    torch_critic = CriticNetwork(denoiser.network, rank=3)
    added, _ = load_tensors(folder / "critic.safetensors")
    torch_critic.load_state_dict(added, strict=False)
    with torch.no_grad():
        expected = torch_critic(torch.from_numpy(boards(50)).long()).numpy()
    scores = OnnxCritic(folder / "critic.onnx").scores(boards(50))
    assert scores.dtype == np.float32
    assert np.abs(scores - expected).max() < TOLERANCE
    assert expected.std() > 100 * TOLERANCE  # or it would be no wonder


@pytest.mark.parametrize("threads", [1, 3])
def test_a_board_has_one_score_whatever_is_judged_beside_it(folder: Path, threads: int) -> None:
    critic = OnnxCritic(folder / "critic.onnx", threads)
    together = critic.scores(boards(13))
    assert together.shape == (13,)
    assert (together == np.concatenate([critic.scores(board[None]) for board in boards(13)])).all()
    assert (together[::-1] == critic.scores(boards(13)[::-1])).all()
    assert (together[5:9] == OnnxCritic(folder / "critic.onnx").scores(boards(13)[5:9])).all()


def test_no_boards_have_no_scores(folder: Path) -> None:
    assert OnnxCritic(folder / "critic.onnx").scores(boards(0)).shape == (0,)


def test_it_knows_its_model(folder: Path) -> None:
    facts = OnnxCritic(folder / "critic.onnx").facts
    assert (facts["name"], facts["critic"]) == ("tiny", 3)


def test_without_its_weights_it_is_refused_with_a_sentence(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "critic.onnx").write_bytes((folder / "critic.onnx").read_bytes())
    with pytest.raises(MaskobanError, match=r"critic\.onnx: not a model maskoban can load"):
        OnnxCritic(tmp_path / "critic.onnx")
