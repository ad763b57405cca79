"""The shipped model as people use it. Few steps keep it quick: what is tested here does not depend on quality."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

import maskoban
from maskoban.boards import Level, Tokens
from maskoban.boards.tiles import BOX, BOX_ON_GOAL, FLOOR, MASK, PLAYER, WALL
from maskoban.diffusion.loading import load, model_folder, push_to_hub, shipped_models, weights_hash
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import Precision, SamplerConfig, softmax
from maskoban.errors import MaskobanError
from maskoban.evaluation.sample import identity
from maskoban.training.checkpoint import named_folder
from tests.diffusion.dummies import Dummy

QUICK = SamplerConfig(steps=4)


@pytest.fixture(scope="module")
def model() -> Model:
    return load()


def test_the_shipped_model_is_best_and_says_what_it_is(model: Model) -> None:
    assert "best" in shipped_models()
    assert model.name == "best"
    assert (model.height, model.width) == (10, 10)
    assert model.card["parameters"] > 4_000_000


def test_sample_gives_finished_boards_inside_a_wall(model: Model) -> None:
    boards = model.sample(3, seed=7, sampler=QUICK)
    assert boards.shape == (3, 10, 10)
    assert boards.dtype == np.uint8
    assert (boards < MASK).all()
    assert (boards[:, [0, -1]] == WALL).all()
    assert (boards[:, :, [0, -1]] == WALL).all()


def test_a_board_is_the_same_whatever_is_sampled_beside_it(model: Model) -> None:
    boards = model.sample(5, seed=7, sampler=QUICK)
    assert (model.sample(2, seed=7, sampler=QUICK, first=3) == boards[3:]).all()
    assert (model.generate(5, seed=7, sampler=QUICK)[4].tokens == boards[4]).all()
    assert not (model.sample(5, seed=8, sampler=QUICK) == boards).all()


def test_a_trajectory_ends_in_the_sampled_board_and_keeps_every_probability(model: Model) -> None:
    board = model.sample(1, seed=7, sampler=SamplerConfig(steps=4, sweeps=1), first=1)[0]
    commits = model.trajectory(seed=7, numbers=[1], sampler=SamplerConfig(steps=4, sweeps=1))
    frames = commits.frames()
    assert (frames[0, 0, 1:-1, 1:-1] == MASK).all()
    assert (frames[-1, 0] == board).all()
    assert np.allclose(commits.probabilities[commits.cell >= 0].sum(-1), 1, atol=1e-5)
    probability = commits.probability()[0]
    assert np.isnan(probability[0, 0])  # the border is given, not sampled
    assert ((probability[1:-1, 1:-1] > 0) & (probability[1:-1, 1:-1] <= 1)).all()


def test_best_has_the_sweeps_of_the_card_unless_changed_and_none_with_fewer_steps(model: Model) -> None:
    own = Model(model.denoiser, model.card | {"polish": 2})
    three_left = np.full((10, 10), WALL, np.uint8)
    three_left[4, 2:5] = MASK
    three_left[4, 5:7] = PLAYER, FLOOR
    changes: list[dict[str, Any]] = [
        {},
        {"sweeps": None},
        {"sweeps": 1},
        {"sweeps": 0},
        {"steps": 1},
        {"steps": 1, "sweeps": 1},
    ]
    configs = [own.sampler("best", **change) for change in changes]
    trajectories = [own.trajectory(seed=7, sampler=config, board=three_left) for config in configs]
    assert [int(each.step.max()) + 1 for each in trajectories] == [9, 9, 6, 3, 1, 4]


class Picky:
    """Keeps boards whose first sampled cell is a wall, others once in ten times."""

    evaluated = 0

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        self.evaluated += len(tokens)
        return np.where(tokens[:, 0] == WALL, 0.0, np.log(0.1)).astype(np.float32)


def with_critic(**card: Any) -> Model:
    """A model of two tiles that samples 3x3 boards, and its critic."""
    tiles = np.tile([0.3, 0.7, 0, 0, 0, 0, 0], (9, 1))
    return Model(Dummy(tiles, 3, 3), {"name": "picky", "critic": 1.0} | card, critic=Picky())


def attempts(model: Model, sampler: str | SamplerConfig = "best") -> int:
    """The most attempts any of 50 boards took."""
    return int(model.trajectory(50, 3, sampler).attempts.max())


@pytest.mark.parametrize(
    "change", [{}, {"critic": None}, {"sweeps": 1}, {"temperature": 1.0, "order": "uniform"}]
)
def test_best_uses_the_critic(change: dict[str, Any]) -> None:
    model = with_critic()
    assert attempts(model, model.sampler("best", **change)) > 2
    assert attempts(model, model.sampler("best", **change | {"critic": False})) == 1


@pytest.mark.parametrize(
    "change", [{"temperature": 0.8}, {"order": "confidence"}, {"steps": 3}, {"steps": 9}]
)
def test_another_temperature_order_or_number_of_steps_turns_the_critic_off(change: dict[str, Any]) -> None:
    model = with_critic()
    assert attempts(model, model.sampler("best", **change)) == 1
    assert attempts(model, model.sampler("best", **change, critic=True)) > 2


def test_a_critic_without_a_bound_on_the_card_is_not_used() -> None:
    silent = with_critic(critic=None)
    assert silent.critic is None
    assert attempts(silent) == 1
    for sample in (silent.sample, silent.trajectory):
        with pytest.raises(MaskobanError, match="model 'picky' has no critic"):
            sample(1, sampler=SamplerConfig(critic=True))


def test_named_samplers() -> None:
    model = with_critic(polish=2)
    assert model.sampler() == SamplerConfig(sweeps=2, critic=True)
    assert model.sampler("plain") == SamplerConfig()
    assert model.sampler("fast") == SamplerConfig(steps=16)
    with pytest.raises(MaskobanError, match=r"^sampler: expected one of best, plain, fast, got 'better'"):
        model.sampler("better")
    with pytest.raises(MaskobanError, match="model 'picky' has no int8 version"):
        model.sampler(precision="int8")


def test_with_a_critic_everything_shows_the_boards_that_sample_gives() -> None:
    model = with_critic()
    boards = model.sample(30, seed=3)
    assert (boards != model.sample(30, seed=3, sampler="plain")).any()
    assert (model.trajectory(30, seed=3).frames()[-1] == boards).all()
    assert (model.trajectory(30, seed=3).boards == boards).all()
    assert (model.trajectory(seed=3, numbers=[17, 4]).frames()[-1] == boards[[17, 4]]).all()
    assert (model.generate(30, seed=3)[29].tokens == boards[29]).all()


def test_accepted_boards_are_given_in_their_order_before_all_are_accepted() -> None:
    model = with_critic()
    model.denoiser.batch = 5
    whole, given, reported = model.sample(60, seed=3), list[int](), list[int]()
    for number, level in model.stream(60, seed=3, on_progress=lambda done, _: reported.append(done)):
        assert (level.tokens == whole[number]).all()
        given.append(number)
        if number == 0:
            assert reported[-1] < 60
    assert given == list(range(60))


def test_ctrl_c_is_raised_after_all_finished_boards_were_given() -> None:
    model, given = with_critic(), list[int]()
    model.denoiser.batch = 5
    whole = model.sample(60, seed=3)

    def stop_at_20(done: int, total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    def consume() -> None:
        for number, level in model.stream(60, seed=3, on_progress=stop_at_20):
            assert (level.tokens == whole[number]).all()
            given.append(number)

    with pytest.raises(KeyboardInterrupt):
        consume()
    assert given == sorted(given)
    assert 15 <= len(given) < 60


def test_half_sampled_boards_are_completed_without_a_critic() -> None:
    model = with_critic()
    half = np.full((3, 3), MASK, np.uint8)
    half[0, 0] = FLOOR
    half[2, 2] = PLAYER
    model.complete(half, n=5)
    model.complete(half, n=5, sampler="plain")
    model.trajectory(5, board=half)
    assert isinstance(model.critic, Picky)
    assert model.critic.evaluated == 0
    sentence = "a critic is for boards sampled from nothing, not for partly given ones"
    with pytest.raises(MaskobanError, match=sentence):
        model.complete(half, sampler=SamplerConfig(critic=True))
    with pytest.raises(MaskobanError, match=sentence):
        model.trajectory(board=half, sampler=SamplerConfig(critic=True))


def test_an_exports_critic_is_loaded_when_it_is_first_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Path] = []

    class Graph(Picky):
        def __init__(self, path: Path, threads: int | None) -> None:
            loaded.append(path)

    class Exported(Dummy):
        def __init__(self, path: Path, threads: int | None) -> None:
            self.facts = {"name": "exported", "critic": 1.0}
            super().__init__(np.tile([0.3, 0.7, 0, 0, 0, 0, 0], (9, 1)), 3, 3)

    onnx = SimpleNamespace(OnnxDenoiser=Exported, OnnxCritic=Graph)
    monkeypatch.setitem(sys.modules, "maskoban.diffusion.onnx", onnx)
    (tmp_path / "model.onnx").touch()
    (tmp_path / "model.int8.onnx").touch()
    assert load(tmp_path).critic is None  # the card has a number, but there is no critic
    (tmp_path / "critic.onnx").touch()
    for precision in get_args(Precision):
        model = load(tmp_path)
        model.sample(3, sampler=SamplerConfig(precision=precision))
        assert loaded == []
        assert attempts(model, SamplerConfig(critic=True, precision=precision)) > 2
        model.sample(1)
        assert loaded == [tmp_path / "critic.onnx"]
        loaded.clear()


def test_torch_loads_a_critic_beside_its_model(tmp_path: Path) -> None:
    from maskoban.nn.critic import CriticNetwork
    from maskoban.nn.networks import InteriorNetwork
    from maskoban.nn.weight_files import save_tensors

    tiny = {"height": 5, "width": 5, "d": 16, "blocks": 1, "heads": 1, "hidden": 16}
    preset = tiny | {"name": "tiny", "network": "interior", "dropout": 0, "diffusion_steps": 9}
    critic = CriticNetwork(InteriorNetwork(**tiny), rank=2)
    weights = {f"net.{name}": value for name, value in critic.base.state_dict().items()}
    metadata = {"preset": json.dumps(preset), "facts": json.dumps({"name": "tiny", "critic": 1e-9})}
    save_tensors(tmp_path / "model.safetensors", weights, metadata)
    assert load(tmp_path).critic is None
    save_tensors(tmp_path / "critic.safetensors", critic.added(), {})
    loaded = load(tmp_path)
    assert (
        loaded.sample(3) == loaded.sample(3, sampler="plain")
    ).all()  # a new critic scores 0, and c is small
    (tmp_path / "critic.safetensors").write_bytes(b"no tensors")
    assert load(tmp_path).sample(3, sampler="plain").shape == (3, 5, 5)
    with pytest.raises(MaskobanError, match=r"critic\.safetensors: not a safetensors file, or a broken one"):
        load(tmp_path).sample(3)


def test_the_whole_way_of_drawing_makes_boards_that_are_well_formed_and_mostly_solvable(model: Model) -> None:
    boards = model.sample(16, seed=1)
    verdicts = [maskoban.solve(board).verdict for board in boards]
    assert verdicts.count("malformed") <= 1
    assert (
        verdicts.count("solved") >= 9
    )  # 82.7 % on average: fewer than 9 of 16 is three chances in a thousand
    assert 55 < (boards == WALL).sum((1, 2)).mean() < 80


def test_complete_keeps_every_given_cell(model: Model) -> None:
    half = Level.parse("""
        ##########
        #@ ??????#
        #  ??????#
        # $ ?????#
        #  ??????#
        ##?????.?#
        ##???????#
        ##???????#
        ##???????#
        ##########
    """.replace("        ", ""))  # fmt: skip
    for level in model.complete(half, n=2, seed=3, sampler=QUICK):
        given = half.tokens != MASK
        assert (level.tokens[given] == half.tokens[given]).all()
        assert (level.tokens < MASK).all()


def test_a_board_with_nothing_masked_completes_to_itself(model: Model) -> None:
    whole = model.sample(1, seed=7, sampler=QUICK)[0]
    assert (model.complete(whole)[0].tokens == whole).all()


def room(**cells: str) -> np.ndarray:
    """An empty 10x10 room of masks with some cells sampled: room(r1c1="@")."""
    tokens = np.full((10, 10), MASK, np.uint8)
    tokens[[0, -1]] = tokens[:, [0, -1]] = WALL
    for name, symbol in cells.items():
        row, column = name[1:].split("c")
        tokens[int(row), int(column)] = "# @$.*+?".index(symbol)
    return tokens


def crowded(symbols: str) -> np.ndarray:
    """A room with nothing masked but one cell, and these tiles in its second row."""
    tokens = np.full((10, 10), WALL, np.uint8)
    tokens[1, 1 : 1 + len(symbols)] = ["# @$.*+?".index(s) for s in symbols]
    tokens[2, 1] = MASK
    return tokens


@pytest.mark.parametrize(
    ("board", "sentence"),
    [
        (room(r1c1="@", r5c5="@"), "the board has 2 players; expected at most one"),
        (room(r1c1="@", r5c5="+", r6c6="+"), "the board has 3 players; expected at most one"),
        (room(r0c3="$"), "the border must be wall, but row 0, column 3 (from 0) is not"),
        (room(r9c9="?"), None),  # it becomes wall
        (crowded("@$$$."), "the board has 3 boxes and 1 goals, and 1 masked cells cannot make up the difference"),
        (crowded("$$.."), None),  # the one cell becomes the player
        (crowded("$..") , "the board has 1 boxes and 2 goals, and 1 masked cells cannot make up the difference"),
        (room(r1c1="@") + 9 * np.eye(10, dtype=np.uint8), "row 0, column 0 (from 0) holds 9; expected a tile, 0 to 7"),
        (
            np.full((8, 8), WALL, np.uint8),
            "the board is 8x8, but model 'best' samples 10x10 boards; surround it with #",
        ),
        (np.full((8, 12), WALL, np.uint8), "the board is 8x12, but model 'best' samples 10x10 boards"),
    ],
)  # fmt: skip
def test_impossible_demands_are_refused_with_a_sentence(
    model: Model, board: np.ndarray, sentence: str | None
) -> None:
    if sentence is None:
        assert model.complete(board, sampler=SamplerConfig(steps=1))
        return
    with pytest.raises(MaskobanError) as caught:
        model.complete(board)
    assert str(caught.value) == sentence


def test_a_board_of_nothing_but_masks_is_sampled_from_nothing(model: Model) -> None:
    (completed,) = model.complete(np.full((10, 10), MASK, np.uint8), seed=3, sampler=QUICK)
    assert np.array_equal(completed.tokens, model.sample(1, seed=3, sampler=QUICK)[0])


def test_no_boards_are_refused(model: Model) -> None:
    for none in (model.sample, model.generate, partial(model.complete, room(r1c1="@"))):
        with pytest.raises(MaskobanError, match="number of boards: expected at least 1, got 0"):
            none(n=0)


def test_filters_keep_the_first_that_pass(model: Model) -> None:
    plain = model.generate(12, seed=5, sampler="fast")
    solvable = model.generate(2, seed=5, sampler="fast", only_solvable=True)
    expected = [level for level in plain if maskoban.solve(level).solved][:2]
    assert [level.tokens.tolist() for level in solvable[: len(expected)]] == [
        e.tokens.tolist() for e in expected
    ]
    (easy,) = model.generate(1, seed=5, sampler="fast", difficulty="easy")
    assert maskoban.rate(easy).difficulty == "easy"
    (four,) = model.generate(1, seed=5, sampler="fast", boxes=4)
    assert np.isin(four.tokens, (BOX, BOX_ON_GOAL)).sum() == 4


def test_a_filter_that_nothing_passes_gives_up_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, model: Model
) -> None:
    monkeypatch.setattr("maskoban.diffusion.model.RAREST", 4)
    with pytest.raises(MaskobanError, match=r"only 0 of 4 sampled boards match \(40 boxes\); gave up"):
        model.generate(1, seed=5, sampler=QUICK, boxes=40)
    with pytest.raises(
        MaskobanError, match="difficulty: expected one of easy, medium, hard, expert, got 'fiendish'"
    ):
        model.generate(1, difficulty="fiendish")


def test_int8_samples_much_the_same_probabilities(model: Model) -> None:
    tokens = model.sample(8, seed=2, sampler="fast")[:, 1:-1, 1:-1].reshape(8, 64)
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 64, (8, 1))
    np.put_along_axis(tokens, cells, MASK, 1)
    t = np.ones(8, np.int64)
    int8, *_ = model._resolved(SamplerConfig(precision="int8"), model.start(1))
    exact, small = (softmax(denoiser.logits(tokens, t, cells)) for denoiser in (model.denoiser, int8))
    assert np.abs(exact - small).sum(-1).mean() / 2 < 0.05
    assert (exact != small).any()


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match=r"^no model 'no-such-model': expected one of any, best, paper"):
        load("no-such-model")
    (tmp_path / "passwd").write_text("root")
    with pytest.raises(
        MaskobanError, match=r": not a model; expected model\.onnx or a checkpoint in that folder$"
    ):
        load(tmp_path)


@pytest.mark.parametrize("threads", [0, -1])
def test_a_model_needs_a_thread(threads: int) -> None:
    with pytest.raises(MaskobanError, match=f"threads: expected at least 1, got {threads}"):
        load(threads=threads)


def test_a_graph_is_loaded_by_its_folder(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match=r"model\.int8\.onnx: expected the folder of the model"):
        load(tmp_path / "model.int8.onnx")


def test_a_broken_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(MaskobanError, match=r"model\.onnx: not a model maskoban can load"):
        load(tmp_path)


def test_a_graph_that_does_not_say_what_it_samples_is_refused(tmp_path: Path, model: Model) -> None:
    assert model.folder is not None
    for file in ("model.onnx", "model.safetensors"):
        (tmp_path / file).write_bytes((model.folder / file).read_bytes().replace(b'"margin"', b'"margon"'))
    with pytest.raises(MaskobanError, match=r"model\.onnx: .*margin"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("said", "instead"), [(b'"height": 10', b'"height": 20'), (b'"timed": false', b'"timed": true ')]
)
def test_metadata_of_another_network_is_refused(
    tmp_path: Path, model: Model, said: bytes, instead: bytes
) -> None:
    assert model.folder is not None
    graph = (model.folder / "model.onnx").read_bytes()
    assert graph.count(said) == 1
    (tmp_path / "model.onnx").write_bytes(graph.replace(said, instead))
    shutil.copy(model.folder / "model.safetensors", tmp_path)
    with pytest.raises(MaskobanError, match=r"model\.onnx: .* its metadata describes .* its graph has "):
        load(tmp_path)


def test_weights_missing_beside_the_graph_are_missed(tmp_path: Path, model: Model) -> None:
    assert model.folder is not None
    (tmp_path / "model.onnx").write_bytes((model.folder / "model.onnx").read_bytes())
    with pytest.raises(MaskobanError, match=r"model\.onnx: not a model maskoban can load"):
        load(tmp_path)


def test_without_torch_another_device_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "maskoban.nn.runtime", None)
    with pytest.raises(MaskobanError, match=r"best on cuda needs torch: pip install 'maskoban\[train\]'"):
        load("best", device="cuda")


def test_a_hub_id_is_downloaded(monkeypatch: pytest.MonkeyPatch, model: Model) -> None:
    evaluated = []

    def download(hub_id: str, allow_patterns: list[str]) -> str:
        evaluated.append((hub_id, allow_patterns))
        return str(model.folder)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=download))
    assert load("somebody/boards").name == "best"
    assert evaluated == [("somebody/boards", ["model.*", "critic.*", "README.md"])]


def test_an_export_is_uploaded_with_its_card(monkeypatch: pytest.MonkeyPatch, model: Model) -> None:
    sent: dict[str, Any] = {}

    class Api:
        def create_repo(self, repo_id: str, private: bool, exist_ok: bool) -> str:
            return f"https://hub.example/{repo_id}"

        def upload_folder(self, **what: Any) -> None:
            sent.update(what)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=Api))
    assert push_to_hub(model, "somebody/boards") == "https://hub.example/somebody/boards"
    assert sent["folder_path"] == model.folder
    assert sent["allow_patterns"] == ["model.*", "critic.*", "README.md"]
    with pytest.raises(MaskobanError, match="was not loaded from an export"):
        push_to_hub(Model(model.denoiser, {}), "somebody/boards")


def test_weights_are_identified_by_their_files(model: Model, tmp_path: Path) -> None:
    for name in ("model.safetensors", "model.onnx", "model.int8.onnx"):
        (tmp_path / name).write_bytes(name.encode())
    before = weights_hash(tmp_path), weights_hash(tmp_path, "int8")
    (tmp_path / "model.onnx").write_bytes(b"another version of the same graph")
    assert (weights_hash(tmp_path), weights_hash(tmp_path, "int8")) == before
    (tmp_path / "model.int8.onnx").write_bytes(b"rounded differently")
    assert weights_hash(tmp_path) == before[0]
    assert weights_hash(tmp_path, "int8") != before[1]
    (tmp_path / "critic.safetensors").write_bytes(b"a critic")
    assert weights_hash(tmp_path) != before[0]
    assert identity(Model(model.denoiser, {}, tmp_path))["weights"] == weights_hash(tmp_path)


def test_a_board_as_text_is_refused_in_a_sentence() -> None:
    with pytest.raises(MaskobanError, match="board: expected a Level or an array of tokens, got a str"):
        load().complete("#?#")  # type: ignore[arg-type]


def test_a_path_is_a_path_and_only_the_bare_word_a_shipped_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "best"
    mine.mkdir()
    assert model_folder("best") != mine
    for source in ("./best", "best/", Path("best"), str(mine)):
        assert model_folder(source).resolve() == mine
        assert named_folder(source).resolve() == mine
    assert named_folder("best") == model_folder("best")


@pytest.mark.parametrize("seed", [1.5, None, "7", 2**64, -(2**63) - 1])
def test_a_seed_is_a_whole_number_of_64_bits(model: Model, seed: Any) -> None:
    with pytest.raises(MaskobanError, match="seed: expected a whole number of 64 bits, got "):
        model.sample(1, seed=seed, sampler=QUICK)


def test_boards_are_counted_from_zero_and_have_a_box(model: Model) -> None:
    with pytest.raises(MaskobanError, match="numbers of boards: expected 0 or more, got -1"):
        model.sample(1, first=-1, sampler=QUICK)
    with pytest.raises(MaskobanError, match="boxes: expected at least 1, got 0"):
        model.generate(1, boxes=0)
