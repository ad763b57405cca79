"""Exports: torch and ONNX Runtime must say the same, from one file of weights."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="exporting needs torch")
pytest.importorskip("onnx", reason="exporting needs onnx")

from torch import Tensor  # noqa: E402

from maskoban.boards.tiles import MASK  # noqa: E402
from maskoban.diffusion.loading import load  # noqa: E402
from maskoban.diffusion.onnx import OnnxCritic, OnnxDenoiser  # noqa: E402
from maskoban.errors import MaskobanError  # noqa: E402
from maskoban.nn.networks import NETWORKS, Network, pick  # noqa: E402
from maskoban.nn.weight_files import (  # noqa: E402
    dequantize,
    load_folder,
    load_tensors,
    save_tensors,
)
from maskoban.training import export as exporting  # noqa: E402
from maskoban.training.checkpoint import Progress, new_network, save_checkpoint  # noqa: E402
from maskoban.training.config import Preset  # noqa: E402
from maskoban.training.export import TOLERANCE, export  # noqa: E402
from maskoban.training.optim import build_optimizers  # noqa: E402
from tests.training.small_models import SMALL, SMALL_PAPER, WIDE, WIDE_PAPER, save_critic, save_run  # noqa: E402

MODELS = {
    "interior": (SMALL, 16),
    "paper": (SMALL_PAPER, 16),
    "paper-relu-norm": (dataclasses.replace(SMALL_PAPER, activation="relu", final_norm=True), 16),
    "interior-8": (WIDE, 8),
    "looped": (dataclasses.replace(SMALL, passes=3, symmetry=0.5, unit="gelu"), 16),
    "looped-8": (dataclasses.replace(WIDE, passes=2, least_passes=1), 8),
    "paper-8": (WIDE_PAPER, 8),
}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Preset, Path]:
    preset, bits = request.param
    run = save_run(tmp_path_factory.mktemp("run"), preset)
    facts = export(run, run / "model", name="small", bits=bits)
    assert facts["training_steps"] == 12
    return preset, run / "model"


def test_torch_and_onnx_agree_on_whole_boards(exported: tuple[Preset, Path]) -> None:
    """The same seed gives the same boards in both worlds: no draw falls into the tiny gap between them."""
    _, folder = exported
    light, heavy = load(folder), load(folder, device="cpu")
    from maskoban.nn.runtime import load_torch

    heavy.denoiser, _ = load_torch(folder, "cpu")
    assert (light.sample(6, seed=3) == heavy.sample(6, seed=3)).all()


def test_the_schedule_is_known_where_it_is_not_the_usual_one(tmp_path: Path) -> None:
    from maskoban.nn.runtime import load_torch

    run = save_run(tmp_path, dataclasses.replace(SMALL_PAPER, schedule="cosine"))
    export(run, run / "model")
    exported, again = load(run / "model").denoiser, load_torch(run / "model", "cpu")[0]
    assert (exported.schedule, again.schedule) == ("cosine", "cosine")


def test_logits_agree_at_sizes_not_exported_with(exported: tuple[Preset, Path]) -> None:
    from maskoban.nn.runtime import load_torch

    preset, folder = exported
    torch_side, facts = load_torch(folder, "cpu")
    assert facts["name"] == "small"
    rng = np.random.default_rng(1)
    margin = torch_side.margin
    cells = (preset.height - 2 * margin) * (preset.width - 2 * margin)
    tokens = rng.integers(0, MASK + 1, (7, cells)).astype(np.uint8)
    t, where = rng.integers(1, preset.diffusion_steps + 1, 7), rng.integers(0, cells, (7, 3))
    off = load(folder).denoiser.logits(tokens, t, where) - torch_side.logits(tokens, t, where)
    assert np.abs(off).max() < TOLERANCE


def test_the_weights_exist_once_and_the_graphs_are_small(exported: tuple[Preset, Path]) -> None:
    _, folder = exported
    card = load(folder).card
    assert (folder / "model.safetensors").stat().st_size < 1.2 * card["parameters"] * card[
        "bits"
    ] / 8 + 20_000
    weights = (folder / "model.safetensors").read_bytes()[-4000:]
    assert weights[:64] not in (folder / "model.onnx").read_bytes()


def test_a_looped_network_stores_its_weights_once_whatever_its_passes(tmp_path: Path) -> None:
    import onnx

    run = save_run(tmp_path / "run", dataclasses.replace(SMALL, passes=2))
    nodes = {}
    for passes in (2, 5):
        facts = export(run, tmp_path / str(passes), passes=passes)
        graph = onnx.load(tmp_path / str(passes) / "model.onnx", load_external_data=False).graph
        external = [tensor.name for tensor in graph.initializer if tensor.external_data]
        assert len(external) == len(set(external)) == 3 + 6 * SMALL.blocks + 1
        nodes[passes] = sum(node.op_type == "Attention" for node in graph.node)
    assert nodes == {2: 2 * SMALL.blocks, 5: 5 * SMALL.blocks}
    sizes = {(tmp_path / str(passes) / "model.safetensors").stat().st_size for passes in (2, 5)}
    assert max(sizes) - min(sizes) <= 64  # the settings are in its header
    two, five = (load(tmp_path / str(passes)).denoiser for passes in (2, 5))
    feed = np.full((1, 20), MASK, np.uint8), np.ones(1, np.int64), np.zeros((1, 1), np.int64)
    assert np.abs(two.logits(*feed) - five.logits(*feed)).max() > TOLERANCE
    assert facts["parameters"] == sum(p.numel() for p in new_network(SMALL).parameters()) + SMALL.d
    with pytest.raises(MaskobanError, match="passes: expected 1 for a network that is not looped, got 3"):
        export(save_run(tmp_path / "plain"), tmp_path / "out", passes=3)


def test_int8_is_near_and_the_same_in_any_batch(exported: tuple[Preset, Path]) -> None:
    _, folder = exported
    exact, small = (OnnxDenoiser(folder / graph) for graph in ("model.onnx", "model.int8.onnx"))
    rng = np.random.default_rng(2)
    cells = (exact.height - 2 * exact.margin) * (exact.width - 2 * exact.margin)
    tokens = rng.integers(0, MASK + 1, (9, cells)).astype(np.uint8)
    t, where = rng.integers(1, exact.steps + 1, 9), rng.integers(0, cells, (9, 1))
    together = small.logits(tokens, t, where)
    alone = np.concatenate(
        [small.logits(tokens[i : i + 1], t[i : i + 1], where[i : i + 1]) for i in range(9)]
    )
    assert (together == alone).all()
    spread = exact.logits(tokens, t, where)
    assert np.abs(together - spread).max() < 0.1 * np.abs(spread).max() + 0.05


def test_no_two_neighbours_in_an_int8_column_overflow_sixteen_bits(exported: tuple[Preset, Path]) -> None:
    """A CPU without VNNI adds x1 w1 + x2 w2 in 16 bits, and x is at most 255."""
    import onnx
    import onnxruntime

    preset, folder = exported
    model = onnx.load(folder / "model.int8.onnx", load_external_data=False)
    products = [node for node in model.graph.node if node.op_type == "MatMulIntegerToFloat"]
    assert len(products) == 6 * preset.blocks * preset.passes
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(node.input[1]) for node in products)
    (folder / "weights.onnx").write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(folder / "weights.onnx")
    feed = {
        i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], np.int64)
        for i in session.get_inputs()
    }
    for weight in session.run(None, feed):
        neighbours = np.abs(weight.astype(int)).reshape(-1, 2, weight.shape[1]).sum(1).max(0)
        assert (neighbours <= 128).all()
        assert (neighbours >= 126).all()  # and the range is used


@pytest.mark.parametrize("graph", ["model.onnx", "model.int8.onnx"])
def test_boards_shared_out_among_threads_keep_their_logits(exported: tuple[Preset, Path], graph: str) -> None:
    _, folder = exported
    alone, shared = OnnxDenoiser(folder / graph, threads=1), OnnxDenoiser(folder / graph, threads=3)
    rng = np.random.default_rng(4)
    cells = (alone.height - 2 * alone.margin) * (alone.width - 2 * alone.margin)
    for n in (1, 2, 7, 13):
        tokens, where = rng.integers(0, MASK + 1, (n, cells)).astype(np.uint8), rng.integers(0, cells, (n, 2))
        t = rng.integers(1, alone.steps + 1, n)
        np.testing.assert_allclose(shared.logits(tokens, t, where), alone.logits(tokens, t, where), atol=1e-5)


def test_the_safetensors_library_reads_the_weights(exported: tuple[Preset, Path]) -> None:
    safetensors = pytest.importorskip("safetensors.torch", reason="compares with the safetensors library")
    preset, folder = exported
    tensors = safetensors.load_file(folder / "model.safetensors")
    assert tensors["net.qkv"].shape == (preset.blocks, 3, preset.d, preset.d)
    assert tensors["net.qkv"].dtype == {16: torch.float16, 8: torch.int8}[load(folder).card["bits"]]


# --- weights in 8 bits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", [WIDE, WIDE_PAPER], ids=["interior", "paper"])
def test_eight_bits_are_near_and_are_kept_when_exported_again(preset: Preset, tmp_path: Path) -> None:
    run = save_run(tmp_path / "run", preset)
    export(run, tmp_path / "16")
    first = export(run, tmp_path / "8", bits=8)
    again = export(tmp_path / "8", tmp_path / "again")
    assert again == first
    for file in (tmp_path / "8").iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name
    whole, rounded = (load_folder(tmp_path / bits)[0] for bits in ("16", "8"))
    for name, value in whole.items():
        step = value.float().abs().amax(-1, keepdim=True) / 127
        assert ((rounded[name] - value).abs() <= 0.77 * step).all(), name
    assert not torch.equal(rounded["net.up"], whole["net.up"].float())


def test_weights_quantize_cost_nothing_once_loaded(tmp_path: Path) -> None:
    """They are dequantize when the graph is loaded, not at every evaluation."""
    import onnx
    import onnxruntime

    export(save_run(tmp_path / "run", WIDE), tmp_path, bits=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    onnxruntime.InferenceSession(tmp_path / "model.onnx", options)
    loaded = onnx.load(tmp_path / "loaded.onnx").graph
    assert not [node for node in loaded.node if node.op_type in ("Cast", "Transpose")]
    assert onnx.TensorProto.INT8 not in {tensor.data_type for tensor in loaded.initializer}


def test_only_eight_or_sixteen_bits(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match="bits: expected 8 or 16, got 4"):
        export(save_run(tmp_path / "run"), tmp_path / "out", bits=4)
    assert not (tmp_path / "out").exists()


# --- without idle units ------------------------------------------------------------------------------------


def with_idle_units(place: Path) -> tuple[Path, Path]:
    """A run, and the run of its critic, of which 40 of 256 units in the second block are shut whatever they see."""
    run, critic = save_run(place / "run", WIDE), save_critic(place / "critic", WIDE, rank=64)
    tensors, metadata = load_tensors(run / "state.safetensors")
    tensors["net.up"][1, 100:140] = 0
    save_tensors(run / "state.safetensors", tensors, metadata)
    tensors, metadata = load_tensors(critic / "critic.safetensors")
    tensors["wide.up"][1, 100:140] = 0
    save_tensors(critic / "critic.safetensors", tensors, metadata)
    return run, critic


@pytest.mark.parametrize("bits", [8, 16])
def test_idle_units_are_left_out_and_nothing_changes(bits: int, tmp_path: Path) -> None:
    run, critic = with_idle_units(tmp_path)
    rng = np.random.default_rng(7)
    levels = rng.integers(0, MASK, (300, WIDE.height, WIDE.width)).astype(np.uint8)
    export(run, tmp_path / "whole", critic=critic, bits=bits)
    export(run, tmp_path / "cut", critic=critic, bits=bits, levels=levels)
    before, after = ((tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "cut"))
    if bits == 16:  # in 8 bits the pieces of this small network are not worth rounding
        assert after < before - 32 * 2 * WIDE.d * 2 + 2000
    assert load_tensors(tmp_path / "cut" / "model.safetensors")[0]["net.up.1"].shape == (224, WIDE.d)
    for graph in ("model.onnx", "model.int8.onnx"):
        whole, cut = (OnnxDenoiser(tmp_path / name / graph) for name in ("whole", "cut"))
        tokens = rng.integers(0, MASK + 1, (6, 20)).astype(np.uint8)
        t, where = np.ones(6, np.int64), rng.integers(0, 20, (6, 3))
        off = np.abs(whole.logits(tokens, t, where) - cut.logits(tokens, t, where))
        assert off.max() < (1e-4 if (graph, bits) == ("model.onnx", 16) else 0.1)
    one, other = (OnnxCritic(tmp_path / name / "critic.onnx") for name in ("whole", "cut"))
    tokens = rng.integers(0, MASK, (6, 20)).astype(np.uint8)
    # Some of the smaller matrices are no longer large enough for int8.
    np.testing.assert_allclose(other.scores(tokens), one.scores(tokens), atol=0.03)


def test_a_model_without_idle_units_can_be_exported_onto_itself_and_read_by_torch(tmp_path: Path) -> None:
    from maskoban.nn.runtime import load_torch, load_torch_critic

    run, critic = with_idle_units(tmp_path)
    levels = np.random.default_rng(8).integers(0, MASK, (300, WIDE.height, WIDE.width)).astype(np.uint8)
    model = tmp_path / "model"
    export(run, model, critic=critic, levels=levels)
    files = {path.name: path.read_bytes() for path in model.iterdir()}
    export(model, model, critic=model)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == files
    light, (heavy, _) = load(model), load_torch(model, "cpu")
    tokens = np.random.default_rng(9).integers(0, MASK, (5, 20)).astype(np.uint8)
    t, where = np.ones(5, np.int64), np.arange(5)[:, None]
    assert np.abs(light.denoiser.logits(tokens, t, where) - heavy.logits(tokens, t, where)).max() < TOLERANCE
    assert light.critic is not None
    off = light.critic.scores(tokens) - load_torch_critic(model, "cpu").scores(tokens)
    assert np.abs(off).max() < TOLERANCE


def test_a_critic_comes_along_where_the_weights_change(tmp_path: Path) -> None:
    run, critic = with_idle_units(tmp_path)
    export(run, tmp_path / "model", critic=critic, cutoff=2.0)
    levels = np.zeros((1, WIDE.height, WIDE.width), np.uint8)
    rounded = export(tmp_path / "model", tmp_path / "out", bits=8)
    assert (rounded["bits"], rounded["critic"]) == (8, 2.0)
    export(tmp_path / "model" / "model.safetensors", tmp_path / "pruned", levels=levels)
    for model in (load(tmp_path / "out"), load(tmp_path / "pruned")):
        assert model.critic is not None
        assert model.critic.scores(np.zeros((1, 20), np.uint8)).shape == (1,)


def test_a_run_and_a_model_do_not_share_a_folder(tmp_path: Path) -> None:
    run = save_run(tmp_path / "run")
    with pytest.raises(
        MaskobanError, match="run: is the folder of a training run; expected another one for the model"
    ):
        export(run, run)
    assert not (run / "model.safetensors").exists()
    critic = save_critic(tmp_path / "critic")
    with pytest.raises(
        MaskobanError, match="critic: is the folder of a critic's run; expected another one for the model"
    ):
        export(run, critic)
    assert (critic / "critic.safetensors").is_file()


def test_a_place_that_can_be_no_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = save_run(tmp_path / "run")
    for place, why in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "x", "Not a directory")):
        with pytest.raises(MaskobanError, match=f"cannot be written: {why}"):
            export(run, place)


def test_broken_pieces_are_refused_by_name(tmp_path: Path) -> None:
    from maskoban.nn.runtime import load_torch

    run, _ = with_idle_units(tmp_path)
    levels = np.random.default_rng(8).integers(0, MASK, (300, WIDE.height, WIDE.width)).astype(np.uint8)
    export(run, tmp_path / "model", levels=levels)
    file = tmp_path / "model" / "model.safetensors"
    whole, metadata = load_tensors(file)
    pieces = {
        r"'net.up.1' is missing; the network expects \(256, 128\)": {"net.up.1": None},
        r"'net.up.1' has shape \(300, 128\)": {"net.up.1": torch.zeros(300, 128)},
        r"'net.up.1' has shape \(200, 100\)": {"net.up.1": torch.zeros(200, 100)},
        r"'net.up.0' has shape \(2, 256, 128\)": {"net.up.0": torch.zeros(2, 256, 128)},
        r"'net.down.1' has shape \(100, 224\)": {"net.down.1": torch.zeros(100, 224)},
        "'net.up' is missing": {"net.up.0": None},
    }
    for sentence, change in pieces.items():
        broken = {name: value for name, value in (whole | change).items() if value is not None}
        save_tensors(file, broken, metadata)
        with pytest.raises(MaskobanError, match=rf"model: not a maskoban model: tensor {sentence}"):
            load_torch(tmp_path / "model", "cpu")


def test_the_command_prunes_and_rounds(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from maskoban.cli.app import app

    run, critic = with_idle_units(tmp_path)
    levels = tmp_path / "levels.npz"
    for requested in (
        ["corpus", "synth", levels, "-n", 30, "--height", WIDE.height, "--width", WIDE.width, "--boxes", 1],
        ["export", run, tmp_path / "out", "--critic", critic, "--bits", 8, "--prune", levels],
    ):
        result = CliRunner().invoke(app, [str(word) for word in requested])
        assert result.exit_code == 0, result.output
    assert "bits: 8" in result.output
    kept = load_tensors(tmp_path / "out" / "model.safetensors")[0]["net.up.1"]
    assert 0 < len(kept) <= 224


def test_what_has_no_idle_units_to_leave_out_is_refused(tmp_path: Path) -> None:
    levels = np.zeros((1, 6, 7), np.uint8)
    with pytest.raises(MaskobanError, match="pruning: expected the interior network, got 'paper'"):
        export(save_run(tmp_path / "run", SMALL_PAPER), tmp_path / "out", levels=levels)
    with pytest.raises(
        MaskobanError, match="the corpus to prune with has 10x10 boards, but the network samples 6x7"
    ):
        export(save_run(tmp_path / "other"), tmp_path / "out", levels=np.zeros((1, 10, 10), np.uint8))
    assert not (tmp_path / "out").exists()


# --- a critic beside the model -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was exported without a critic, in a folder ``small``, and a critic's run beside it, ``critic``."""
    place = tmp_path_factory.mktemp("models")
    export(save_run(place / "run"), place / "small", polish=2)
    save_critic(place / "critic")
    return place / "small"


def critic_of(model: Path) -> Path:
    return model.parent / "critic"


def test_a_critic_comes_to_an_exported_model_and_its_weights_stay(small: Path, tmp_path: Path) -> None:
    facts = export(small, tmp_path, polish=2, critic=critic_of(small), cutoff=1.5)
    before, known = load_tensors(small / "model.safetensors")
    after, metadata = load_tensors(tmp_path / "model.safetensors")
    assert list(after) == list(before)
    assert all(torch.equal(after[name].view(torch.int16), before[name].view(torch.int16)) for name in before)
    assert facts == json.loads(known["facts"]) | {"critic": 1.5}
    assert facts["training_steps"] == 12
    assert facts["training_minutes"] == 0.57
    assert json.loads(metadata["facts"]) == load(tmp_path).card == facts
    assert (metadata["preset"], metadata["progress"]) == (known["preset"], known["progress"])
    (copy, metadata), (original, known) = (
        load_tensors(folder / "critic.safetensors") for folder in (tmp_path, critic_of(small))
    )
    assert list(copy) == list(original)
    assert all(torch.equal(copy[name], original[name]) for name in copy)
    assert {name: metadata[name] for name in known} == known
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "critic.onnx", "critic.safetensors", "model.int8.onnx", "model.onnx", "model.safetensors",
    ]  # fmt: skip


def test_a_model_and_its_critic_can_be_exported_onto_themselves(small: Path, tmp_path: Path) -> None:
    first = export(small, tmp_path / "model", critic=critic_of(small))
    files = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    assert export(tmp_path / "model", tmp_path / "model", critic=tmp_path / "model") == first
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == files


def test_a_critic_is_kept_quantize(tmp_path: Path) -> None:
    run, critic = save_run(tmp_path / "run", WIDE), save_critic(tmp_path / "critic", WIDE, rank=64)
    export(run, tmp_path / "model", critic=critic)
    whole, kept = (load_tensors(folder / "critic.safetensors")[0] for folder in (critic, tmp_path / "model"))
    assert kept["wide.qkv"].dtype == torch.int8
    off = (dequantize(kept)["wide.qkv"] - whole["wide.qkv"]).abs()
    assert 0 < float(off.max()) < 0.77 * float(whole["wide.qkv"].abs().max()) / 127
    again = export(tmp_path / "model", tmp_path / "again", critic=tmp_path / "model")
    assert again["bits"] == 16
    copy = (tmp_path / "again" / "critic.safetensors").read_bytes()
    assert copy == (tmp_path / "model" / "critic.safetensors").read_bytes()


def test_without_a_critic_nothing_is_said_of_one(small: Path) -> None:
    assert "critic" not in load(small).card
    assert not list(small.glob("critic*"))


def test_an_exported_model_keeps_its_name_and_sweeps_and_critic(small: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    named = export(small, model, name="tom", polish=2, critic=critic_of(small), cutoff=3.0)
    assert (named["name"], named["polish"], named["critic"]) == ("tom", 2, 3.0)
    files = {path.name: path.read_bytes() for path in model.iterdir()}
    assert export(model, model) == named
    assert {path.name: path.read_bytes() for path in model.iterdir()} == files
    assert export(model, tmp_path / "plain", polish=0)["polish"] == 0
    assert export(small, tmp_path / "named", critic=model)["critic"] == 3.0
    assert export(model, tmp_path / "strict", cutoff=5.0)["critic"] == 5.0
    with pytest.raises(MaskobanError, match="cutoff: expected a critic too"):
        export(small, tmp_path / "none", cutoff=5.0)


def test_a_model_is_replaced_whole_or_not_at_all(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    export(small, model, critic=critic_of(small))
    files = {path.name: path.read_bytes() for path in model.iterdir()}
    diverged = new_network(SMALL)
    torch.nn.init.constant_(diverged.head, torch.nan)  # type: ignore[arg-type]
    (tmp_path / "run").mkdir()
    save_checkpoint(tmp_path / "run", SMALL, Progress(1, 1.0), diverged, None, {})
    with pytest.raises(MaskobanError, match="differs from torch by nan"):
        export(tmp_path / "run", model)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == files
    monkeypatch.setattr(exporting, "_check_critic", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        export(model, model, bits=8)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == files


def test_a_model_without_a_critic_leaves_none_of_the_model_before_it(small: Path, tmp_path: Path) -> None:
    export(small, tmp_path, critic=critic_of(small))
    export(small, tmp_path)
    assert not list(tmp_path.glob("critic.*"))


def test_the_low_rank_changes_are_gone_once_the_critic_is_loaded(small: Path, tmp_path: Path) -> None:
    """Six products a block are left, and no weight: W + B A was computed at loading."""
    import onnx
    import onnxruntime

    export(small, tmp_path, critic=critic_of(small))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns that what it writes is for this machine only
    options.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    onnxruntime.InferenceSession(tmp_path / "critic.onnx", options)
    nodes = onnx.load(tmp_path / "loaded.onnx").graph.node
    assert sum(node.op_type == "MatMul" for node in nodes) == 6 * SMALL.blocks
    assert not [node for node in nodes if node.op_type in ("Cast", "Transpose")]


def test_what_is_no_critic_of_the_model_is_refused_before_anything_is_written(
    small: Path, tmp_path: Path
) -> None:
    out, deeper = tmp_path / "out", dataclasses.replace(SMALL, blocks=3)
    with pytest.raises(MaskobanError, match=r"run/critic\.safetensors: no such file"):
        export(small, out, critic=small.parent / "run")
    deep = save_critic(tmp_path / "deep", deeper)
    with pytest.raises(
        MaskobanError, match=r"critic\.safetensors: not a critic of this model: .*\(3, 3, 32\)"
    ):
        export(small, out, critic=deep)
    (tmp_path / "other").mkdir()
    shutil.copy(small / "model.safetensors", tmp_path / "other" / "critic.safetensors")
    with pytest.raises(MaskobanError, match=r"critic\.safetensors: not a maskoban critic"):
        export(small, out, critic=tmp_path / "other")
    tensors, _ = load_tensors(critic_of(small) / "critic.safetensors")
    del tensors["head"]
    save_tensors(tmp_path / "other" / "critic.safetensors", tensors, {})
    with pytest.raises(MaskobanError, match="tensor 'head' is missing"):
        export(small, out, critic=tmp_path / "other")
    for cutoff in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(MaskobanError, match="cutoff: expected a number above 0"):
            export(small, out, critic=critic_of(small), cutoff=cutoff)
    with pytest.raises(
        MaskobanError, match="expected an interior or a conditional network for a critic, got PaperNetwork"
    ):
        export(save_run(tmp_path / "paper", SMALL_PAPER), out, critic=critic_of(small))
    assert not out.exists()


def test_the_command_adds_a_critic(small: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from maskoban.cli.app import app

    requested = ["export", small, tmp_path, "--critic", critic_of(small), "--critic-cutoff", 2]
    result = CliRunner().invoke(app, [str(word) for word in requested])
    assert result.exit_code == 0, result.output
    assert "critic: 2.0" in result.output
    assert load(tmp_path).card["critic"] == 2


# --- a network of others ------------------------------------------------------------------------------------


class Convolutions(Network):
    """With a time input, an integer buffer and a matrix large enough for int8."""

    timed = True

    def __init__(self, height: int, width: int) -> None:
        super().__init__(height, width)
        self.token, self.time = torch.nn.Embedding(8, 64), torch.nn.Embedding(100, 64)
        self.conv, self.norm = torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64)
        self.head = torch.nn.Linear(64, 7)

    def forward(self, tokens: Tensor, t: Tensor, cells: Tensor | None = None, seeds: None = None) -> Tensor:
        x = (
            (self.token(tokens) + self.time(t)[:, None])
            .transpose(1, 2)
            .unflatten(2, (self.rows, self.columns))
        )
        x = self.norm(x + torch.relu(self.conv(x))).flatten(2).transpose(1, 2)
        logits = self.head(x)
        return logits if cells is None else pick(logits, cells)


@pytest.fixture
def convolutions(monkeypatch: pytest.MonkeyPatch) -> Preset:
    monkeypatch.setitem(NETWORKS._values, "conv", lambda s: Convolutions(s["height"], s["width"]))
    return dataclasses.replace(SMALL, network="conv", optimizer="adamw", diffusion_steps=20)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_network_of_others_is_traced_over_the_same_weights_file(
    convolutions: Preset, bits: int, tmp_path: Path
) -> None:
    run = save_run(tmp_path / "run", convolutions)
    facts = export(run, tmp_path / "model", bits=bits)  # which compares the graph with torch
    assert facts["timed"]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["model.onnx", "model.safetensors"]
    tensors, _ = load_tensors(tmp_path / "model" / "model.safetensors")
    assert tensors["net.conv.weight"].dtype == {8: torch.int8, 16: torch.float16}[bits]
    assert tensors["net.norm.num_batches_tracked"].dtype == torch.int64
    assert (tmp_path / "model" / "model.onnx").stat().st_size < 10_000  # the weights are not in it
    from maskoban.nn.runtime import load_torch

    light, heavy = load(tmp_path / "model"), load(tmp_path / "model")
    heavy.denoiser, _ = load_torch(tmp_path / "model", "cpu")
    assert (light.sample(6, seed=3) == heavy.sample(6, seed=3)).all()


def test_a_network_that_cannot_be_traced_is_an_error(
    convolutions: Preset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = save_run(tmp_path / "run", convolutions)
    monkeypatch.setattr(
        Convolutions, "forward", lambda self, *inputs: torch.fft.fft(self.head.weight)[None].real
    )
    with pytest.raises(MaskobanError, match="Convolutions cannot be exported to ONNX: "):
        export(run, tmp_path / "model")
    assert not list((tmp_path / "model").iterdir())


def test_muon_needs_matrices(convolutions: Preset) -> None:
    with pytest.raises(MaskobanError, match="network 'conv' has no matrices for Muon; set optimizer=adamw"):
        build_optimizers(
            new_network(convolutions),
            dataclasses.replace(convolutions, optimizer="muon"),
            torch.device("cpu"),
        )
