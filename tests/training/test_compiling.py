"""A compiled step is held against the plain one before it is used."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from maskoban.boards.synth import synthesize
from maskoban.errors import MaskobanError
from maskoban.nn.networks import Network
from maskoban.training.checkpoint import new_network
from maskoban.training.compiling import check_gradients, compiled, gradients, same_step
from maskoban.training.config import Preset
from maskoban.training.options import TrainOptions
from maskoban.training.trainer import Trainer
from tests.training.small_models import SMALL, SMALL_PAPER

pytestmark = pytest.mark.usefixtures("one_thread")


def squares(network: Network) -> Callable[[], Tensor]:
    """A loss without noise."""
    tokens = torch.randint(0, 8, (4, network.cells), generator=torch.Generator().manual_seed(0))
    t, seeds = torch.tensor([1, 5, 20, 42]), network.draw_seeds()
    return lambda: network(tokens, t, seeds=seeds).square().mean()


def spoiled(
    network: Network, name: str, change: Callable[[Tensor], object]
) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
    """The loss of :func:`squares` with one parameter's gradient changed, and as it is."""
    wrong = False

    def hook(grad: Tensor) -> Tensor:
        grad = grad.clone()
        if wrong:
            change(grad)
        return grad

    def loss(spoil: bool) -> Tensor:
        nonlocal wrong
        wrong = spoil
        return squares(network)()

    network.get_parameter(name).register_hook(hook)
    return lambda: loss(True), lambda: loss(False)


@pytest.mark.parametrize("preset", [SMALL, SMALL_PAPER], ids=["ours", "paper"])
def test_what_is_right_passes_and_leaves_weights_and_gradients_as_they_were(preset: Preset) -> None:
    torch.manual_seed(0)
    network = new_network(preset).eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    assert check_gradients(network, new_network(preset), squares(network), squares(network)) < 1e-6
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert all(p.grad is None for p in network.parameters())


@pytest.mark.parametrize(
    ("name", "part", "change"),
    [
        ("norm_weight", "[1, 0]", lambda grad: grad[1, 0, 3].add_(1)),
        ("norm_weight", "[0, 0]", lambda grad: grad[0, 0].fill_(math.nan)),  # memory that was never written
        ("norm_bias", "[0, 1]", lambda grad: grad[0, 1].zero_()),
        ("qkv", "[0, 1]", lambda grad: grad[0, 1].zero_()),
        ("qkv_bias", "[1, 2]", lambda grad: grad[1].chunk(3)[2].zero_()),
        ("up_bias", "[1]", lambda grad: grad[1, ::4].zero_()),
        ("down", "[0]", lambda grad: grad[0].mul_(0.9)),
        ("head.weight", "", lambda grad: grad.mul_(1.1)),
    ],
)
def test_a_wrong_gradient_is_refused_and_named_though_all_others_are_right(
    name: str, part: str, change: Callable[[Tensor], object]
) -> None:
    torch.manual_seed(0)
    network = new_network(SMALL_PAPER).eval()
    made, plain = spoiled(network, name, change)
    named = re.escape(f"the gradient of {name}{part} is ") + ".*% off; train with --no-compile"
    with pytest.raises(MaskobanError, match=named):
        check_gradients(network, new_network(SMALL_PAPER), made, plain)


def test_interrupted_it_leaves_the_weights_as_they_were() -> None:
    network = new_network(SMALL)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    for times in range(3):  # while it is compiled, while it runs, in plain torch
        left = iter(range(times))

        def loss(left: Iterator[int] = left) -> Tensor:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return squares(network)()

        with pytest.raises(KeyboardInterrupt):
            check_gradients(network, new_network(SMALL), loss, loss)
        assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_a_gradient_that_is_left_out_is_refused_however_the_network_starts() -> None:
    torch.manual_seed(0)
    network = new_network(SMALL).eval()  # its head starts with zeros, so that nothing else has a gradient
    assert not any(g.any() for name, g in gradients(network, squares(network)).items() if name != "head")

    def without_place() -> Tensor:
        network.place.requires_grad_(False)
        loss = squares(network)()
        network.place.requires_grad_(True)
        return loss + 0 * network.place.sum()

    with pytest.raises(MaskobanError, match="gradient of place is 100% off"):
        check_gradients(network, new_network(SMALL), without_place, squares(network))


@pytest.mark.parametrize("known", [True, False])
def test_sums_of_both_kinds_stay_apart_where_torch_would_join_them(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: dict[str, object] = {}
    monkeypatch.setattr(torch, "compile", lambda function, **options: requested.update(options))
    name = "triton.mix_order_reduction"
    if not known:  # before torch 2.10
        monkeypatch.setattr(torch._inductor, "list_options", lambda: ["max_autotune"])
    compiled(torch.sin)
    assert requested["options"] == ({name: False} if known and name in torch._inductor.list_options() else {})


@pytest.mark.parametrize("wrong", [None, 0.0, 100.0, math.nan])
@pytest.mark.parametrize("preset", [SMALL, SMALL_PAPER], ids=["ours", "paper"])
def test_a_recording_is_held_against_the_step_and_neither_is_taken(
    preset: Preset, wrong: float | None, tmp_path: Path
) -> None:
    boards = synthesize(40, height=6, width=7, boxes=1, seed=3)
    short = replace(preset, batch=8, precision="fp32", diffusion_steps=20, validation_boards=8)
    trainer = Trainer(
        short, boards[:32], boards[32:], tmp_path, TrainOptions(device="cpu", compile=False, quiet=True)
    )
    for _ in range(3):
        trainer.train_step()
    batch, name = trainer.batches(3), "qkv_bias" if preset is SMALL_PAPER else "down"

    def replay(boards: Tensor) -> Tensor:
        """As a recording does it, but for one block's gradient."""
        loss = trainer.step.update(boards)
        grad = trainer.network.get_parameter(name).grad
        assert grad is not None
        if wrong is not None:
            grad[1] *= wrong
        return loss

    before = {n: v.clone() for n, v in trainer.network.state_dict().items()}
    moments = [copy.deepcopy(list(o.state.values())) for o in trainer.step.optimizers.values()]
    network, optimizers = trainer.network, trainer.step.optimizers
    assert same_step(network, optimizers, replay, trainer.step.update, batch, preset.seed) == (wrong is None)
    assert all(torch.equal(before[n], v) for n, v in trainer.network.state_dict().items())
    for optimizer, states in zip(trainer.step.optimizers.values(), moments, strict=True):
        for state, was in zip(optimizer.state.values(), states, strict=True):
            assert all(torch.equal(state[key], value) for key, value in was.items())


@pytest.mark.parametrize("preset", [SMALL, SMALL_PAPER], ids=["ours", "paper"])
def test_a_compiled_run_proves_itself_and_takes_the_steps_of_the_plain_one(
    preset: Preset, tmp_path: Path
) -> None:
    boards = synthesize(40, height=6, width=7, boxes=1, seed=3)
    short = replace(preset, batch=8, steps=3, warmup=1, validate_every=3, sample_every=9, sample_boards=2,
                    validation_boards=8, precision="fp32", diffusion_steps=20)  # fmt: skip
    logs = []
    for name in ("plain", "compiled"):
        options = TrainOptions(device="cpu", compile=name == "compiled", quiet=True)
        Trainer(short, boards[:32], boards[32:], tmp_path / name, options).run()
        logs.append([json.loads(line) for line in (tmp_path / name / "log.jsonl").read_text().splitlines()])
    plain, made = logs
    assert [entry["event"] for entry in plain if "event" in entry] == ["start", "end"]
    assert [entry["event"] for entry in made if "event" in entry] == ["start", "checked", "end"]
    assert made[1]["gradients_off"] < 1e-4
    losses = [next(entry for entry in log if "train" in entry) for log in (plain, made)]
    for kind in ("train", "valid"):
        assert losses[0][kind] == pytest.approx(losses[1][kind], rel=1e-4)
