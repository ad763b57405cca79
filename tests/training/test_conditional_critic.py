"""A critic of a conditional model: its samples, its training, and sampling with it at every size."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("onnx", reason="exporting needs onnx")

from maskoban.boards import WALL, Level  # noqa: E402
from maskoban.boards.tiles import MASK  # noqa: E402
from maskoban.diffusion.conditions import NOWHERE, Conditioned, positions  # noqa: E402
from maskoban.diffusion.loading import load  # noqa: E402
from maskoban.diffusion.model import Model  # noqa: E402
from maskoban.errors import MaskobanError  # noqa: E402
from maskoban.nn.runtime import load_torch, load_torch_critic  # noqa: E402
from maskoban.training import critic as training  # noqa: E402
from maskoban.training.conditional_critic import give_some, sample_like  # noqa: E402
from maskoban.training.critic import train_critic  # noqa: E402
from maskoban.training.export import TOLERANCE, export  # noqa: E402
from maskoban.training.mixed import Batch  # noqa: E402
from maskoban.training.options import CriticOptions  # noqa: E402
from tests.training.small_models import SIZES, train_conditional  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

CHANCE = math.log(2)


def options(place: Path, out: Path, **changes: Any) -> CriticOptions:
    given: dict[str, Any] = {"model": place / "model", "corpus": place / "corpus", "out": out, "device": "cpu",
                             "samples": 600, "polish": 1, "minutes": 1, "rank": 4, "batch": 32, "warmup": 5,
                             "validate_every": 20, "learning_rate": 0.01}  # fmt: skip
    return CriticOptions(**{k: v if isinstance(v, int | float) and k != "samples" else str(v)
                            for k, v in (given | changes).items()})  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, a conditional model that has learned little, its critic, and both as one model."""
    place = train_conditional(tmp_path_factory.mktemp("any"))
    with pytest.MonkeyPatch.context() as patch:  # a step takes a second, whatever the machine
        patch.setattr(training, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
        train_critic(options(place, place / "critic"))
    export(place / "model", place / "judged", critic=place / "critic", polish=1)
    return place


@pytest.fixture(scope="module")
def model(place: Path) -> Model:
    return load(place / "judged")


def batch_of(*wishes: tuple[int, int, int], filled: int) -> Batch:
    """Boards to sample: height, width and boxes of each."""
    where = torch.full((len(wishes), filled), NOWHERE)
    conditions = torch.zeros(len(wishes), 5, dtype=torch.int64)
    for row, (height, width, boxes) in enumerate(wishes):
        places = torch.from_numpy(positions(height, width))
        where[row, : len(places)] = places
        conditions[row, :3] = torch.tensor([height, width, boxes])
    return Batch(torch.full_like(where, MASK), where, conditions)


# -- samples


def test_samples_on_the_device_are_those_of_the_sampler_in_distribution(place: Path) -> None:
    denoiser, _ = load_torch(place / "model", "cpu")
    assert isinstance(denoiser, Conditioned)
    network = denoiser.net.network  # type: ignore[attr-defined]
    sizes = [(6, 6, 1), (6, 8, 2)]
    torch.manual_seed(0)
    made = sample_like(network, batch_of(*(400 * sizes), filled=30), 1, network.block)
    there = made.where != NOWHERE
    assert (made.tokens[~there] == WALL).all()
    assert (made.tokens[there] < MASK).all()
    for number, (height, width, boxes) in enumerate(sizes):
        rows = slice(number, None, 2)
        walls = (made.tokens[rows] == WALL)[there[rows]].view(400, -1).sum(1).double()
        usual = load(place / "model").given((height, width), boxes).sample(400, 3)[:, 1:-1, 1:-1]
        expected = (usual == WALL).sum((1, 2))
        off = abs(float(walls.mean()) - expected.mean())
        assert off < 5 * math.hypot(float(walls.std()), expected.std()) / 400**0.5


def test_the_size_is_always_given_and_the_rest_half_of_the_time() -> None:
    torch.manual_seed(0)
    conditions = torch.tensor([6, 8, 2, 3, 1]).repeat(4000, 1)
    told = give_some(Batch(conditions, conditions, conditions)).conditions
    assert (told[:, :2] == conditions[:, :2]).all()
    assert set(told[:, 3].tolist()) == {0, 3}
    np.testing.assert_allclose((told[:, 2:] > 0).double().mean(0), 0.5, atol=0.04)


# -- learning


def test_it_learns_to_tell_samples_from_the_corpus(place: Path) -> None:
    log = [json.loads(line) for line in (place / "critic" / "log.jsonl").read_text().splitlines()]
    assert log[0]["held_out_loss"] == pytest.approx(CHANCE, abs=1e-5)
    assert min(each["held_out_loss"] for each in log) < 0.8 * CHANCE
    with np.load(place / "critic" / "scores.npz") as scores:
        assert scores["real"].mean() > 0 > scores["sampled"].mean()
        assert 30 < len(scores["sampled"]) <= 60  # a tenth


@pytest.mark.parametrize("size", [*SIZES, (9, 11), (16, 16)])
def test_scores_are_the_same_on_both_runtimes_and_in_any_batch(place: Path, size: tuple[int, int]) -> None:
    boards = np.random.default_rng(0).integers(0, 5, (9, (size[0] - 2) * (size[1] - 2))).astype(np.uint8)
    exported = load(place / "judged").given(size, 2)
    assert isinstance(exported.denoiser, Conditioned)
    light = exported.denoiser.critic(exported.critic)  # type: ignore[arg-type]
    heavy = exported.denoiser.critic(load_torch_critic(place / "judged", "cpu"))  # type: ignore[arg-type]
    np.testing.assert_allclose(light.scores(boards), heavy.scores(boards), atol=TOLERANCE)
    assert (light.scores(boards)[4:6] == light.scores(boards[4:6])).all()
    assert light.scores(boards[:0]).shape == (0,)


def test_the_score_depends_on_the_conditions(model: Model) -> None:
    boards = model.given((6, 6), 1).sample(5, 1, "plain")[:, 1:-1, 1:-1].reshape(5, -1)
    scores = []
    for boxes in (1, 2):
        told = model.given((6, 6), boxes)
        assert isinstance(told.denoiser, Conditioned)
        scores.append(told.denoiser.critic(told.critic).scores(boards))  # type: ignore[arg-type]
    assert (scores[0] != scores[1]).all()


# -- sampling


def test_by_default_boards_are_rejected_by_the_critic_and_do_not_depend_on_the_batch(model: Model) -> None:
    told = model.given((6, 8), 2)
    assert told.sampler("best").critic
    made = told.trajectory(12, seed=5)
    assert made.attempts.mean() > 1
    assert (told.sample(3, 5, first=7) == made.boards[7:10]).all()
    assert (
        made.boards[made.attempts == 1]
        == told.sample(12, 5, told.sampler("best", critic=False))[made.attempts == 1]
    ).all()


def test_a_partly_given_board_is_completed_without_the_critic(model: Model) -> None:
    start = Level.parse("########\n#??????#\n#??????#\n#@?????#\n#??????#\n########")
    plain = model.sampler("best", critic=False)
    assert model.complete(start, 2, seed=1) == model.complete(start, 2, seed=1, sampler=plain)


def test_the_rank_can_be_cut_where_the_rest_counts_little(model: Model, place: Path, tmp_path: Path) -> None:
    boards = model.given((6, 8), 2).sample(40, 1, "plain")[:, 1:-1, 1:-1].reshape(40, -1)
    scores = []
    for rank in (4, 3, 1):
        export(place / "model", tmp_path / str(rank), critic=place / "critic", critic_rank=rank)
        told = load(tmp_path / str(rank)).given((6, 8), 2)
        assert isinstance(told.denoiser, Conditioned)
        scores.append(told.denoiser.critic(told.critic).scores(boards))  # type: ignore[arg-type]
    off = [float(np.abs(each - scores[0]).max()) for each in scores]
    assert off[0] == 0 < off[1] < off[2]
    sizes = [(tmp_path / rank / "critic.safetensors").stat().st_size for rank in ("4", "3", "1")]
    assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(MaskobanError, match="the critic's rank: expected a critic and a rank of at least 1"):
        export(place / "model", tmp_path / "none", critic_rank=2)


def test_a_model_exported_again_keeps_its_critic(place: Path, tmp_path: Path) -> None:
    assert export(place / "judged", tmp_path / "again")["critic"] == 1
    again, first = (load(each).given((7, 5), 1) for each in (tmp_path / "again", place / "judged"))
    assert (again.sample(4, 2) == first.sample(4, 2)).all()


# -- refusals


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"samples": "boards.npz"}, "expected a number for a model with conditions"),
        ({"boards_out": "boards.npz"}, "no --boards-out"),
        ({"samples": 5}, "expected at least 160, a tenth to hold out; got 5"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(
    place: Path, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(MaskobanError, match=sentence):
        train_critic(options(place, tmp_path / "critic", **changes))
