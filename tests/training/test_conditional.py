"""A conditional model from end to end on small sizes: a corpus of many sizes, training, export, sampling, refusals."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("onnx", reason="exporting needs onnx")

from typer.testing import CliRunner  # noqa: E402

from maskoban.boards import Level  # noqa: E402
from maskoban.boards.tiles import BOX, BOX_ON_GOAL, MASK, WALL  # noqa: E402
from maskoban.cli.app import app  # noqa: E402
from maskoban.diffusion import conditions  # noqa: E402
from maskoban.diffusion.conditions import NOWHERE, Conditioned, Conditions, positions  # noqa: E402
from maskoban.diffusion.loading import load  # noqa: E402
from maskoban.diffusion.model import Model  # noqa: E402
from maskoban.errors import MaskobanError  # noqa: E402
from maskoban.nn.conditional import LENGTHS, ConditionalNetwork, start_tensors  # noqa: E402
from maskoban.nn.networks import InteriorNetwork  # noqa: E402
from maskoban.nn.runtime import load_torch  # noqa: E402
from maskoban.nn.weight_files import load_tensors, load_weights, save_tensors  # noqa: E402
from maskoban.solving import rating  # noqa: E402
from maskoban.training.config import ANY  # noqa: E402
from maskoban.training.export import TOLERANCE, export  # noqa: E402
from maskoban.training.mixed import Batch, MixedBatches, MixedCorpus, MixedLoss, Sized, load_mixed  # noqa: E402
from maskoban.training.options import TrainOptions  # noqa: E402
from maskoban.training.run import train  # noqa: E402
from tests.training.small_models import SETTINGS, SIZES, make_corpus, train_conditional  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, a run and its exported model."""
    return train_conditional(tmp_path_factory.mktemp("any"))


@pytest.fixture(scope="module")
def model(place: Path) -> Model:
    return load(place / "model")


def boxes_of(levels: list[Level]) -> float:
    return float(np.mean([np.isin(level.tokens, (BOX, BOX_ON_GOAL)).sum() for level in levels]))


def test_it_learns_and_its_boxes_follow_the_condition(place: Path, model: Model) -> None:
    losses = [json.loads(line) for line in (place / "run" / "log.jsonl").read_text().splitlines()]
    valid = [line["valid"] for line in losses if "valid" in line]
    assert valid[-1] < valid[0] < np.log(7)
    one, two = (model.generate(24, 5, "plain", size=(6, 6), boxes=boxes) for boxes in (1, 2))
    assert boxes_of(one) + 0.3 < boxes_of(two)


@pytest.mark.parametrize("size", [(6, 6), (8, 6), (5, 5), (7, 12)])
def test_size_is_obeyed_also_where_it_was_never_seen(model: Model, size: tuple[int, int]) -> None:
    for level in model.generate(2, 1, "fast", size=size, boxes=1, difficulty="easy"):
        assert level.shape == size
        border = level.tokens.copy()
        border[1:-1, 1:-1] = WALL
        assert (border == WALL).all()
        assert (level.tokens != MASK).all()


def test_boards_of_a_seed_do_not_depend_on_the_batch_nor_on_the_runtime(place: Path, model: Model) -> None:
    given = model.given(size=(6, 8), boxes=2)
    boards = given.sample(9, seed=2, sampler="fast")
    assert (given.sample(3, seed=2, sampler="fast", first=4) == boards[4:7]).all()
    heavy, facts = load_torch(place / "model", "cpu")
    assert (Model(heavy, facts).given(size=(6, 8), boxes=2).sample(9, seed=2, sampler="fast") == boards).all()
    assert not (model.given(size=(6, 8), boxes=1).sample(9, seed=2, sampler="fast") == boards).all()


def test_int8_boards_are_of_the_wished_size_and_nearly_those_of_fp32(model: Model) -> None:
    given = model.given(size=(6, 8), boxes=2)
    exact, rounded = (given.sample(16, 3, given.sampler("fast", precision=p)) for p in ("fp32", "int8"))
    assert rounded.shape == exact.shape
    assert (rounded == exact).mean() > 0.9
    other = given.given(boxes=1)
    assert not (other.sample(16, 3, other.sampler("fast", precision="int8")) == rounded).all()


def test_hidden_units_without_weights_are_not_exported(place: Path, model: Model, tmp_path: Path) -> None:
    shutil.copytree(place / "run", tmp_path / "run")
    file = tmp_path / "run" / "state.safetensors"
    tensors, metadata = load_tensors(file)
    tensors["net.up"][0, 16:] = 0
    save_tensors(file, tensors, metadata)
    export(tmp_path / "run", tmp_path / "cut")
    stored, _ = load_tensors(tmp_path / "cut" / "model.safetensors")
    assert stored["net.up.0"].shape == (16, 32)
    assert stored["net.down.1"].shape == (32, 64)
    heavy, facts = load_torch(tmp_path / "cut", "cpu")
    boards = Model(heavy, facts).given(size=(7, 6)).sample(4, 1, "fast")
    assert (load(tmp_path / "cut").given(size=(7, 6)).sample(4, 1, "fast") == boards).all()


def test_without_a_size_boards_have_the_usual_one_and_every_sampler_works(model: Model) -> None:
    assert (model.height, model.width) in SIZES
    level = model.generate(1, seed=1, sampler="plain")[0]
    assert level.shape == (model.height, model.width)
    polished = model.sample(2, 1, model.sampler("plain", sweeps=1))
    assert polished.shape == (2, *level.shape)
    assert np.isfinite(model.negative_log_likelihood(level)).all()


def test_guidance_moves_the_logits_away_from_those_without_the_difficulty(model: Model) -> None:
    tokens, t, cells = np.full((1, 16), MASK, np.uint8), np.ones(1, np.int64), np.arange(16)[None]

    def logits(**conditions: Any) -> np.ndarray:
        given = model.given(size=(6, 6), boxes=1, **conditions)
        return given.denoiser.logits(tokens, t, cells)

    without, wished, guided = logits(), logits(difficulty="hard", guidance=1), logits(difficulty="hard")
    assert np.abs(wished - without).max() > 0
    np.testing.assert_allclose(guided, without + 3 * (wished - without), rtol=1e-5, atol=1e-5)
    assert (logits(guidance=3) == without).all()  # there is no difficulty to obey
    assert (logits(difficulty="hard", guidance=0) == without).all()


def test_a_board_of_any_size_is_completed_and_given_cells_stay(model: Model) -> None:
    board = Level.parse("########\n#??????#\n#?@ $?.#\n#??????#\n########")
    for level in model.complete(board, 3, seed=4, sampler="plain"):
        given = board.tokens != MASK
        assert (level.tokens[given] == board.tokens[given]).all()
        assert (level.tokens != MASK).all()


def test_odds_and_likelihoods_are_those_of_the_boards_size(model: Model) -> None:
    board = Level.parse("########\n#??????#\n#?@ $?.#\n#??????#\n########")
    given = model.given(size=board.shape)
    assert (model.odds(board) == given.odds(board)).all()
    whole = given.generate(2, 3, "plain")
    assert (model.negative_log_likelihood(whole) == given.negative_log_likelihood(whole)).all()


def test_only_solvable_still_filters_and_difficulty_does_not(model: Model) -> None:
    from maskoban.solving.filters import BoardFilter

    given, left = model.conditioned(BoardFilter(only_solvable=True, difficulty="hard", boxes=1), (6, 6))
    assert left == BoardFilter(only_solvable=True)
    assert isinstance(given.denoiser, Conditioned)
    assert given.denoiser.conditions == Conditions(6, 6, 1, "hard")
    by_groups = BoardFilter(difficulty="hard", difficulty_by="decomposed")
    assert model.conditioned(by_groups, (6, 6))[1] == by_groups


@pytest.mark.parametrize(
    ("conditions", "sentence"),
    [
        ({"size": (4, 8)}, "height: expected 5 to 16, got 4"),
        ({"size": (8, 17)}, "width: expected 5 to 16, got 17"),
        ({"size": (5, 5), "boxes": 5}, "boxes: expected 1 to 4 on a 5x5 board, got 5"),
        ({"size": (9, 9), "boxes": 9}, "boxes: expected 1 to 8 on a 9x9 board, got 9"),
        ({"difficulty": "cruel"}, "difficulty: expected one of easy, medium, hard, expert, got 'cruel'"),
        ({"guidance": -1.0}, "guidance: expected 0 to 20, got -1"),
        ({"corpus": "mine"}, "corpus: expected one of synth, boxoban, got 'mine'"),
    ],
)
def test_a_condition_that_cannot_be_is_refused_with_a_sentence(
    model: Model, conditions: dict[str, object], sentence: str
) -> None:
    with pytest.raises(MaskobanError) as error:
        model.given(**conditions)  # type: ignore[arg-type]
    assert str(error.value) == sentence


def test_a_model_without_conditions_says_what_it_samples() -> None:
    best = load("best")
    assert best.given(size=(10, 10)) is best
    with pytest.raises(MaskobanError) as error:
        best.generate(1, size=(8, 12))
    assert str(error.value) == "model 'best' samples 10x10 boards, not 8x12; model 'any' samples other sizes"


def test_the_command_line(place: Path, tmp_path: Path) -> None:
    runner, named = CliRunner(), ["--model", str(place / "model"), "--sampler", "fast", "-n", "2"]
    given = [*named, "--size", "7x9", "--boxes", "2", "--difficulty", "hard", "--guidance", "2"]
    made = runner.invoke(app, ["generate", *given, "--out", str(tmp_path / "made.npz")])
    assert made.exit_code == 0, made.output
    assert np.load(tmp_path / "made.npz")["boards"].shape == (2, 7, 9)
    (tmp_path / "idea.xsb").write_text("######\n#@$??#\n#????#\n#???.#\n######\n\n####\n#@?#\n####\n")
    arguments = ["complete", str(tmp_path / "idea.xsb"), *named, "--out", str(tmp_path / "whole.npz")]
    completed = runner.invoke(app, arguments)
    assert completed.exit_code == 1  # the second level is too small
    assert np.load(tmp_path / "whole.npz")["boards"].shape == (2, 5, 6)
    assert "height: expected 5 to 16, got 3" in completed.output
    for model_name, size in ((str(place / "model"), "3x3"), (str(place / "model"), "wide"), ("best", "8x8")):
        refused = runner.invoke(app, ["generate", "--model", model_name, "--size", size])
        assert refused.exit_code == 2
        assert "expected" in refused.output or "samples 10x10" in refused.output
        assert "Traceback" not in refused.output


def test_resuming_takes_the_same_steps(place: Path, tmp_path: Path) -> None:
    settings = [f"{name}={value}" for name, value in (SETTINGS | {"steps": 8}).items()]
    common = TrainOptions(
        preset="any", corpus=str(place / "corpus"), settings=settings, device="cpu", quiet=True
    )
    train(replace(common, out=str(tmp_path / "whole")))
    train(replace(common, out=str(tmp_path / "parts"), stop_at=5))
    train(replace(common, out=str(tmp_path / "parts"), resume=True, preset=None, settings=[]))
    one, other = (load_torch(tmp_path / name, "cpu")[0] for name in ("whole", "parts"))
    assert isinstance(one, Conditioned)
    assert isinstance(other, Conditioned)
    tokens, t = np.full((1, (one.height - 2) * (one.width - 2)), MASK, np.uint8), np.ones(1, np.int64)
    cells = np.arange(tokens.size)[None]
    assert (one.logits(tokens, t, cells) == other.logits(tokens, t, cells)).all()


# --- its parts


def test_the_names_of_difficulties_are_the_solvers() -> None:
    assert conditions.DIFFICULTIES == rating.DIFFICULTIES


def test_what_fills_up_a_batch_changes_nothing() -> None:
    torch.manual_seed(0)
    network = ConditionalNetwork(["a"], d=32, blocks=2, heads=2, hidden=64, passes=2)
    with torch.no_grad():
        for p in network.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    where = torch.from_numpy(positions(5, 6)).repeat(2, 1)
    tokens, numbers = torch.randint(0, 8, (2, 12)), torch.tensor([[5, 6, 2, 0, 1], [0, 0, 0, 3, 0]])
    filled_tokens = torch.cat([tokens, torch.randint(0, 8, (2, 9))], dim=1)
    filled_where = torch.cat([where, torch.full((2, 9), NOWHERE)], dim=1)
    for module in (network.train(), network.eval()):
        exact = module(tokens, where=where, conditions=numbers)
        filled = module(filled_tokens, where=filled_where, conditions=numbers)
        torch.testing.assert_close(filled[:, :12], exact, rtol=1e-4, atol=1e-5)
        other = module(tokens, where=where, conditions=torch.zeros_like(numbers))
        assert (other - exact).abs().amax((1, 2)).min() > TOLERANCE


def test_a_place_is_known_by_its_distances_from_the_sides() -> None:
    network = ConditionalNetwork(["a"], d=32, blocks=1, heads=2, hidden=64)
    where = torch.from_numpy(np.append(positions(5, 6), NOWHERE))[
        None
    ]  # 3 rows of 4 cells, and one that fills up
    rows = network.places(where)[0]
    top, left, bottom, right = network.sides
    torch.testing.assert_close(rows[0], top[0] + left[0] + bottom[2] + right[3])
    torch.testing.assert_close(rows[6], top[1] + left[2] + bottom[1] + right[1])
    assert (rows[12] == 0).all()


def test_training_can_start_from_a_network_for_one_size() -> None:
    """Where the table of places is a sum over distances, only the condition tokens make a difference."""
    torch.manual_seed(1)
    interior = InteriorNetwork(height=8, width=8, d=32, blocks=2, heads=2, hidden=64)
    rows, columns = torch.randn(2, 6, 32)
    with torch.no_grad():
        for p in interior.parameters():
            p.add_(torch.randn_like(p) * 0.1)
        interior.place.copy_((rows[:, None] + columns + 0.5).flatten(0, 1))
    saved = {f"net.{name}": value for name, value in interior.state_dict().items()}
    network = ConditionalNetwork(["a"], height=8, width=8, d=32, blocks=2, heads=2, hidden=64)
    load_weights(network, start_tensors(network, saved), "net.")
    tokens, where = torch.randint(0, 8, (2, 36)), torch.from_numpy(positions(8, 8)).repeat(2, 1)
    place = network.token(tokens) + network.places(where)
    torch.testing.assert_close(place, interior.token(tokens) + interior.place, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(network.qkv, interior.qkv)
    with pytest.raises(MaskobanError, match="square boards"):
        start_tensors(network, saved | {"net.place": torch.zeros(35, 32)})


def test_a_run_starts_from_the_shipped_model(place: Path, tmp_path: Path) -> None:
    small = {"passes": 1, "blocks": 12, "batch": 8, "precision": "fp32", "steps": 1, "sample_boards": 1}
    train(TrainOptions(preset="any", corpus=str(place / "corpus"), out=str(tmp_path), start_from="best", device="cpu",
                       settings=[f"{name}={value}" for name, value in small.items()], quiet=True))  # fmt: skip
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert log[0]["before"] > 0
    assert (
        next(line["valid"] for line in log if "valid" in line) < 1.5
    )  # of synthetic boards it has never seen


def test_only_synthetic_boards_are_turned_and_their_sizes_with_them(place: Path) -> None:
    corpus = load_mixed(str(place / "corpus"))
    boards, conditions = corpus.sizes[0]
    conditions = conditions.copy()
    conditions[::3, 4] = 2  # of the other corpus
    mixed = MixedCorpus([Sized(boards, conditions)], corpus.corpora).with_symmetries()
    synthetic = int((conditions[:, 4] == 1).sum())
    assert len(mixed) == 8 * synthetic + len(boards) - synthetic
    whole = corpus.with_symmetries()
    assert len(whole) == 8 * len(corpus)
    shapes = {each.boards.shape[1:] for each in whole.sizes}
    assert shapes == {*SIZES, *((width, height) for height, width in SIZES)}
    turned = {shape: {board.tobytes() for board in boards} for (boards, _), shape in
              ((each, each.boards.shape[1:]) for each in whole.sizes)}  # fmt: skip
    for boards, _ in corpus.sizes:
        assert np.rot90(boards[0]).tobytes() in turned[boards.shape[:0:-1]]
        assert boards[0, :, ::-1].tobytes() in turned[boards.shape[1:]]
    for boards, conditions in whole.sizes:
        assert (conditions[:, :2] == boards.shape[1:]).all()
        assert (conditions[:, 2] == np.isin(boards, (BOX, BOX_ON_GOAL)).sum((1, 2))).all()
    foreign = replace(corpus, corpora=("mine", "boxoban"))
    assert len(foreign.with_symmetries()) == len(corpus)


def test_batches_are_of_one_bucket_each_epoch_in_another_order_and_masks_stay_on_the_board(
    place: Path,
) -> None:
    corpus = load_mixed(str(place / "corpus"))
    assert corpus.corpora == ("synth", "boxoban")
    batches = MixedBatches(corpus, 16, seed=1, device=torch.device("cpu"))
    steps = len(corpus) // 16
    first = [batches(step) for step in range(steps)]
    assert {batch.tokens.shape[1] for batch in first} <= set(LENGTHS)
    assert torch.equal(MixedBatches(corpus, 16, 1, torch.device("cpu"))(3).tokens, first[3].tokens)
    assert not torch.equal(batches(steps).tokens, first[0].tokens)
    held = batches.some(4)
    assert [len(batch) for batch in held] == [16] * 4
    assert {batch.tokens.shape[1] for batch in held} == {batch.tokens.shape[1] for batch in first}
    seen: list[Batch] = []

    class Grading(ConditionalNetwork):
        def forward(self, tokens, *_, where, conditions, **__):  # type: ignore[no-untyped-def]
            seen.append(Batch(tokens, where, conditions))
            return torch.zeros(*tokens.shape, 7, requires_grad=True)

    preset = replace(ANY, condition_dropout=0.5)
    loss = MixedLoss(
        Grading(["a", "b"], d=8, blocks=1, heads=1, hidden=8), preset, slice(None), torch.device("cpu")
    )
    for batch in first:
        value = loss.loss(batch, *loss.noise(batch))
        masked = seen[-1].tokens == MASK
        assert masked.any(1).all()
        assert not (masked & (batch.where == NOWHERE)).any()
        assert torch.isfinite(value)
    kept = torch.cat([given.conditions != 0 for given in seen]).float().mean(0)
    assert ((kept[:2] > 0.3) & (kept[:2] < 0.7)).all()


@pytest.mark.parametrize(
    ("name", "array", "sentence"),
    [
        ("boxes", np.zeros(3, np.uint8), "boxes: expected 240 numbers, got the shape (3,)"),
        ("kind", np.full(240, 7, np.uint8), "kind: expected numbers below 2"),
    ],
)
def test_a_mixed_corpus_with_wrong_labels_is_refused(
    tmp_path: Path, name: str, array: np.ndarray, sentence: str
) -> None:
    folder = make_corpus(tmp_path / "corpus")
    with np.load(folder / "6x6.npz") as file:
        arrays = dict(file)
    np.savez(folder / "6x6.npz", **(arrays | {name: array}))
    with pytest.raises(MaskobanError) as error:
        load_mixed(str(folder))
    assert sentence in str(error.value)
