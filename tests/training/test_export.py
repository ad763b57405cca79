"""Exports: torch and ONNX Runtime must say the same, from one file of weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="exporting needs torch")
pytest.importorskip("onnx", reason="exporting needs onnx")

from maskoban.boards.tiles import MASK  # noqa: E402
from maskoban.diffusion.model import load  # noqa: E402
from maskoban.diffusion.onnx_denoiser import OnnxDenoiser  # noqa: E402
from maskoban.training.checkpoint import Progress, new_network, save_checkpoint  # noqa: E402
from maskoban.training.export import TOLERANCE, export  # noqa: E402
from maskoban.training.presets import PAPER, TINY, Preset  # noqa: E402

SMALL_PAPER = dataclasses.replace(PAPER, height=6, width=7, d=32, blocks=2, heads=2, hidden=64)
SMALL = dataclasses.replace(TINY, height=6, width=7, d=32, blocks=2, heads=2, hidden=64)


@pytest.fixture(scope="module", params=[SMALL, SMALL_PAPER], ids=["interior", "paper"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Preset, Path]:
    preset: Preset = request.param
    run = tmp_path_factory.mktemp("run")
    network = new_network(preset)
    with torch.no_grad():
        for p in network.parameters():  # zero output projections would hide half the network
            p.add_(torch.randn_like(p) * 0.05)
    save_checkpoint(run, preset, Progress(12, 34.0), network, None, {})
    facts = export(run, run / "model", name="small")
    assert facts["training_steps"] == 12
    return preset, run / "model"


def test_torch_and_onnx_agree_on_whole_boards(exported: tuple[Preset, Path]) -> None:
    """The same seed gives the same boards in both worlds: no draw falls into the tiny gap between them."""
    _, folder = exported
    light, heavy = load(folder), load(folder, device="cpu")
    from maskoban.diffusion.torch_model import load_torch

    heavy.denoiser, _ = load_torch(folder, "cpu")
    assert (light.sample(6, seed=3) == heavy.sample(6, seed=3)).all()


def test_logits_agree_at_sizes_not_exported_with(exported: tuple[Preset, Path]) -> None:
    from maskoban.diffusion.torch_model import load_torch

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
    parameters = load(folder).card["parameters"]
    assert (folder / "model.safetensors").stat().st_size < 2 * parameters + 10_000
    weights = (folder / "model.safetensors").read_bytes()[-4000:]
    assert weights[:64] not in (folder / "model.onnx").read_bytes()


def test_int8_is_near_and_the_same_in_any_batch(exported: tuple[Preset, Path]) -> None:
    _, folder = exported
    exact, small = load(folder).denoiser, load(folder, precision="int8").denoiser
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
    assert len(products) == 6 * preset.blocks
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
    assert tensors["net.qkv"].dtype == torch.float16
