"""A critic learns to tell samples from corpus boards, and its scores are calibrated."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("onnx", reason="exporting needs onnx")

from typer.testing import CliRunner

from maskoban.boards import MASK, Tokens, write
from maskoban.boards.geometry import symmetries
from maskoban.boards.synth import synthesize
from maskoban.cli.app import app
from maskoban.diffusion.denoiser import blank_boards, interior_cells
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.diffusion.trajectory import sample_boards
from maskoban.errors import MaskobanError
from maskoban.nn.critic import fingerprint
from maskoban.nn.runtime import load_torch, load_torch_critic
from maskoban.nn.weight_files import load_tensors
from maskoban.training import __main__ as command
from maskoban.training import critic as training
from maskoban.training.critic import (
    TurnedBoards,
    auc,
    calibration,
    cross_entropy,
    train_critic,
    turning_tables,
)
from maskoban.training.export import export
from maskoban.training.options import CriticOptions
from tests.training.small_models import SMALL_PAPER, save_run

pytestmark = pytest.mark.usefixtures("one_thread")

CHANCE = math.log(2)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model of 6x7 boards that samples with one sweep; a corpus; held-out boards."""
    folder = tmp_path_factory.mktemp("critic")
    export(save_run(folder / "run"), folder / "model", polish=1)
    boards = synthesize(400, height=6, width=7, boxes=1, seed=1)
    write(folder / "corpus.npz", boards[:300])
    write(folder / "held-out.npz", boards[300:])
    return folder


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes a second, whatever the machine."""
    monkeypatch.setattr(training, "time", SimpleNamespace(perf_counter=itertools.count().__next__))


def options(place: Path, **changes: Any) -> CriticOptions:
    given = {"model": place / "model", "corpus": place / "corpus.npz", "held_out": place / "held-out.npz",
             "device": "cpu", "rank": 4, "batch": 32, "warmup": 5, "validate_every": 10,
             "learning_rate": 0.01}  # fmt: skip
    return CriticOptions(**{k: str(v) if isinstance(v, Path) else v for k, v in (given | changes).items()})


def run(place: Path, out: Path, **changes: Any) -> float:
    return train_critic(options(place, **{"out": out} | changes))


def known(out: Path) -> dict[str, dict[str, float]]:
    _, metadata = load_tensors(out / "critic.safetensors")
    return {name: json.loads(metadata[name]) for name in ("settings", "facts")}


def sampled(place: Path, n: int, polish: int, first: int = training.FIRST) -> Tokens:
    denoiser, _ = load_torch(place / "model", "cpu")
    config, numbers = SamplerConfig(sweeps=polish), range(first, first + n)
    return sample_boards(denoiser, blank_boards(denoiser, n), 0, config, numbers).boards


# -- learning


def test_a_critic_learns_to_tell_the_corpus_from_samples(place: Path, tmp_path: Path, clock: None) -> None:
    loss = run(place, tmp_path, samples="200", minutes=1, boards_out=tmp_path / "boards.npz")
    assert loss < 0.3 * CHANCE

    # The boards are sampled as the model samples, and saved.
    with np.load(tmp_path / "boards.npz") as file:
        boards = file["boards"]
        assert int(file["polish"]) == 1  # the model's own
    assert (boards[:30] == sampled(place, 30, polish=1)).all()
    assert known(tmp_path)["settings"]["polish"] == 1
    _, metadata = load_tensors(tmp_path / "critic.safetensors")
    assert metadata["model"] == fingerprint(load_torch(place / "model", "cpu")[0].network)

    # The best critic is saved, and the scores of the file are those that were measured.
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert log[0]["held_out_loss"] == pytest.approx(CHANCE, abs=1e-5)
    assert min(each["held_out_loss"] for each in log) == known(tmp_path)["facts"]["held_out_loss"]
    assert known(tmp_path)["facts"]["held_out_loss"] == pytest.approx(loss, abs=1e-5)
    (place / "model" / "critic.safetensors").write_bytes((tmp_path / "critic.safetensors").read_bytes())
    critic = load_torch_critic(place / "model", "cpu")
    inside = interior_cells(load_torch(place / "model", "cpu")[0])
    with np.load(tmp_path / "scores.npz") as scores:
        again = critic.scores(boards[-40:].reshape(40, -1)[:, inside])
        np.testing.assert_allclose(again, scores["sampled"], rtol=0.02, atol=0.05)
        assert cross_entropy(scores["real"], scores["sampled"]) == pytest.approx(loss, abs=1e-4)


def test_another_number_of_sweeps(
    place: Path, tmp_path: Path, clock: None, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "boards.npz"
    run(place, tmp_path / "swept", samples="20", minutes=0.5, polish=2, boards_out=saved)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "sampled 20 of 20 boards"
    assert len(lines) <= 10
    assert known(tmp_path / "swept")["settings"]["polish"] == 2
    with np.load(saved) as file:
        assert (file["boards"] == sampled(place, 20, polish=2)).all()
        # None of the boards that people sample: the critic would recognise them.
        assert not (file["boards"] == sampled(place, 20, polish=2, first=0)).all((1, 2)).any()
    # The file gives the number of sweeps.
    run(place, tmp_path / "again", samples=saved, minutes=0.5)
    assert known(tmp_path / "again")["settings"]["polish"] == 2
    np.savez(tmp_path / "silent.npz", boards=sampled(place, 20, polish=0))
    run(place, tmp_path / "given", samples=tmp_path / "silent.npz", minutes=0.5, polish=3)
    assert known(tmp_path / "given")["settings"]["polish"] == 3


def test_both_commands_train_a_critic(
    place: Path, tmp_path: Path, clock: None, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--model", place / "model", "--corpus", place / "corpus.npz", "--held-out", place / "held-out.npz",
             "--device", "cpu", "--rank", 4, "--batch", 32, "--samples", 40, "--minutes", 0.5]  # fmt: skip
    words = [str(word) for word in given]
    result = CliRunner().invoke(app, ["train", "critic", *words, "--out", str(tmp_path / "one")])
    assert result.exit_code == 0, result.output
    assert "held-out cross-entropy 0." in result.output
    command.main(["critic", *words, "--out", str(tmp_path / "two")])
    one, two = (load_tensors(tmp_path / name / "critic.safetensors")[0] for name in ("one", "two"))
    assert all((one[name] == two[name]).all() for name in one)


# -- its parts


def test_tables_turn_boards_as_symmetries_do() -> None:
    rng = np.random.default_rng(1)
    board = rng.integers(0, 7, (4, 4)).astype(np.uint8)
    turned = board.ravel()[turning_tables(4, 4)]
    assert (turned == [each.ravel() for each in symmetries(board)]).all()


def test_an_oblong_board_is_not_turned_by_a_quarter() -> None:
    tables = turning_tables(2, 3)
    assert (tables[:, 0] >= 0).tolist() == [True, False] * 4
    assert (tables[1::2] == -1).all()
    board = np.arange(6, dtype=np.uint8)
    assert (board[tables[::2]] == [each.ravel() for each in symmetries(board.reshape(2, 3))[::2]]).all()


def test_calibration_recovers_a_slope_and_a_shift() -> None:
    """Of normal distributions half a unit off on either side, x itself is the log of the ratio."""
    rng = np.random.default_rng(0)
    real, fake = rng.normal(0.5, 1, 40_000), rng.normal(-0.5, 1, 30_000)
    assert calibration(real, fake) == pytest.approx((1, 0), abs=0.03)
    slope, shift = calibration(4 * real + 2, 4 * fake + 2)  # four times too sure, and for no reason in favour
    assert (slope, shift) == pytest.approx((0.25, -0.5), abs=0.03)
    raw, better = (
        cross_entropy(a * (4 * real + 2) + b, a * (4 * fake + 2) + b) for a, b in ((1, 0), (slope, shift))
    )
    assert better < raw
    assert better == pytest.approx(cross_entropy(real, fake), abs=1e-3)


def test_scores_that_say_nothing_stay_as_they_are() -> None:
    assert calibration(np.zeros(5), np.zeros(4)) == (1, 0)


def test_scores_that_say_everything_stay_numbers() -> None:
    real, fake = np.linspace(5, 60, 50), np.linspace(-60, -5, 50)
    slope, shift = calibration(real, fake)
    assert cross_entropy(slope * real + shift, slope * fake + shift) <= cross_entropy(real, fake)
    assert 0 < slope < 100


def test_a_coin_has_the_cross_entropy_of_a_coin() -> None:
    assert cross_entropy(np.zeros(3), np.zeros(5)) == pytest.approx(math.log(2))
    assert auc(np.array([0.1, 0.9]), np.array([0.5])) == 0.5


# -- errors


def test_what_cannot_be_trained_on_is_an_error(place: Path, tmp_path: Path) -> None:
    def error(**changes: Any) -> str:
        with pytest.raises(MaskobanError) as raised:
            train_critic(options(place, **{"out": tmp_path / "out"} | changes))
        assert not (tmp_path / "out").exists()
        return str(raised.value)

    write(tmp_path / "square.npz", synthesize(5, height=6, width=6, boxes=1))
    square = tmp_path / "square.npz"
    assert error(corpus=square) == f"{square} has 6x6 boards, but the model samples 6x7"
    assert error(samples="4") == "--samples: expected at least 5 boards, a fifth to hold out; got 4"
    assert error(minutes=0) == "--minutes: expected a number above 0, got 0"
    assert error(learning_rate=math.nan) == "--learning-rate: expected a number from 0 on, got nan"
    assert error(batch=1) == "--batch: expected a number from 2 on, got 1"
    assert error(polish=-1) == "--polish: expected a number from 0 on, got -1"
    nowhere = tmp_path / "nowhere" / "boards.npz"
    assert error(boards_out=nowhere) == f"{nowhere}: cannot be written: No such file or directory"
    text = tmp_path / "text.npz"
    text.write_text("no boards")
    assert error(out=text / "deeper") == f"{text}: is a file; expected a folder for the run"
    assert (
        error(samples=nowhere) == f"--samples: expected a number of boards or a file of them, got {nowhere}"
    )
    boards = np.full((9, 6, 7), MASK - 1, np.uint8)
    np.savez(tmp_path / "silent.npz", boards=boards)
    np.savez(tmp_path / "said.npz", boards=boards, polish=2)
    sentence = f"{tmp_path / 'silent.npz'}: does not say how many Gibbs sweeps its boards had; give --polish"
    assert error(samples=tmp_path / "silent.npz") == sentence
    sentence = f"{tmp_path / 'said.npz'}: its boards had 2 Gibbs sweeps, got --polish 1"
    assert error(samples=tmp_path / "said.npz", polish=1) == sentence
    paper = save_run(tmp_path / "paper", SMALL_PAPER)
    sentence = "a critic needs a model with the interior or the conditional network"
    assert error(model=paper, samples=str(10**9)) == sentence  # before it samples


def test_samples_that_are_no_boards_are_an_error(place: Path, tmp_path: Path) -> None:
    file, boards = tmp_path / "samples.npz", np.ones((9, 6, 7), np.uint8)

    def error(**arrays: Any) -> str:
        np.savez(file, **{"boards": boards, "polish": 0} | arrays)
        with pytest.raises(MaskobanError) as raised:
            run(place, tmp_path / "out", samples=file)
        assert not (tmp_path / "out").exists()
        return str(raised.value).removeprefix(f"{file}: ")

    assert error(boards=boards[:4]) == "expected at least 5 boards, a fifth to hold out; got 4"
    assert error(boards=MASK * boards) == "expected finished boards, got masked cells"
    for polish in ([1, 1], 0.5, -1, "one"):
        assert error(polish=polish) == "polish: expected one whole number from 0 on"
    np.save(tmp_path / "samples.npy", boards)
    with pytest.raises(MaskobanError, match="does not say how many Gibbs sweeps its boards had"):
        run(place, tmp_path / "out", samples=tmp_path / "samples.npy")


def test_a_critic_does_not_replace_another(place: Path, tmp_path: Path, clock: None) -> None:
    run(place, tmp_path / "critic", samples="40", minutes=0.5)
    before = (tmp_path / "critic" / "critic.safetensors").read_bytes()
    with pytest.raises(MaskobanError, match="holds a critic already; give another --out"):
        run(place, tmp_path / "critic", samples=str(10**9))  # before it samples
    assert (tmp_path / "critic" / "critic.safetensors").read_bytes() == before


def test_one_that_has_learned_nothing_is_not_saved(place: Path, tmp_path: Path, clock: None) -> None:
    with pytest.raises(MaskobanError, match="the critic is no better than chance and is not saved"):
        run(place, tmp_path, samples="40", minutes=0.01)
    assert not (tmp_path / "critic.safetensors").exists()


def test_a_critic_with_a_negative_slope_is_not_saved(
    place: Path, tmp_path: Path, clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "calibration", lambda real, sampled: (-1.0, 0.0))
    with pytest.raises(MaskobanError, match="no better than chance"):
        run(place, tmp_path, samples="40", minutes=0.5)
    assert not (tmp_path / "critic.safetensors").exists()


def test_ctrl_c_keeps_what_was_learned(
    place: Path,
    tmp_path: Path,
    clock: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain, taken = TurnedBoards.batch, itertools.count(1)

    def pressed(self: TurnedBoards) -> Any:
        if next(taken) == 16:
            raise KeyboardInterrupt
        return plain(self)

    monkeypatch.setattr(TurnedBoards, "batch", pressed)
    monkeypatch.setattr(
        command, "parse", lambda *_: options(place, out=tmp_path, samples="40", validate_every=100)
    )
    with pytest.raises(SystemExit) as left:
        command.main(["critic"])
    assert left.value.code == 130
    assert capsys.readouterr().err.splitlines()[-1] == f"interrupted; the best critic so far is in {tmp_path}"
    assert known(tmp_path)["facts"]["step"] == 15


def test_the_command_reports_an_error_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, sentence in (
        (["--model", "nowhere", "--corpus", "x"], "maskoban train critic: nowhere"),
        (["--samples", "0"], "maskoban train critic: --samples: expected at least 5 boards"),
    ):
        with pytest.raises(SystemExit) as left:
            command.main(["critic", *arguments, "--device", "cpu"])
        assert left.value.code == 2
        said = capsys.readouterr().err
        assert said.startswith(sentence)
        assert said.count("\n") == 1
