"""A critic learns to tell drawings from the corpus, and its scores are what they should be."""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("onnx", reason="exporting needs onnx")

from maskoban.boards import MASK, MaskobanError, Tokens, write
from maskoban.boards.symmetry import symmetries
from maskoban.diffusion.critic_network import fingerprint
from maskoban.diffusion.sampler import Drawing, blank, draw_many, drawn_cells
from maskoban.diffusion.tensorfile import load_tensors
from maskoban.diffusion.torch_model import load_torch, load_torch_critic
from maskoban.training import critic as command
from maskoban.training import critic_trainer
from maskoban.training.critic_scores import cross_entropy
from maskoban.training.critic_trainer import CriticTrainer, turning_tables
from maskoban.training.export import export
from maskoban.training.synth import synthesize
from tests.training.small_models import SMALL_PAPER, save_run

pytestmark = pytest.mark.usefixtures("one_thread")

COIN = math.log(2)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 6x7 boards that has learned nothing and draws with one sweep; a corpus; what was held out of it."""
    folder = tmp_path_factory.mktemp("critic")
    export(save_run(folder / "run"), folder / "model", polish=1)
    boards = synthesize(400, height=6, width=7, boxes=1, seed=1)
    write(folder / "corpus.npz", boards[:300])
    write(folder / "held-out.npz", boards[300:])
    return folder


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes a second, whatever the machine."""
    monkeypatch.setattr(critic_trainer, "time", SimpleNamespace(perf_counter=itertools.count().__next__))


def run(place: Path, out: Path, *arguments: object) -> float:
    given = ["--model", place / "model", "--corpus", place / "corpus.npz", "--held-out", place / "held-out.npz",
             "--device", "cpu", "--out", out, "--rank", 4, "--batch", 32, "--warmup", 5, "--look-every", 10,
             "--learning-rate", 0.01, *arguments]  # fmt: skip
    return command.run([str(each) for each in given])


def known(out: Path) -> dict[str, dict[str, float]]:
    _, metadata = load_tensors(out / "critic.safetensors")
    return {name: json.loads(metadata[name]) for name in ("settings", "facts")}


def drawn(place: Path, n: int, polish: int, first: int = command.FIRST) -> Tokens:
    denoiser, _ = load_torch(place / "model", "cpu")
    return draw_many(denoiser, blank(denoiser, n), 0, Drawing(polish=polish), first).boards


# -- learning


def test_a_critic_learns_to_tell_the_corpus_from_drawings(place: Path, tmp_path: Path, clock: None) -> None:
    loss = run(place, tmp_path, "--drawn", 200, "--minutes", 1, "--boards-out", tmp_path / "boards.npz")
    assert loss < 0.3 * COIN

    # What it saw was drawn in the model's own way, and is kept.
    with np.load(tmp_path / "boards.npz") as file:
        boards = file["boards"]
        assert int(file["polish"]) == 1  # the model's own
    assert (boards[:30] == drawn(place, 30, polish=1)).all()
    assert known(tmp_path)["settings"]["polish"] == 1
    _, metadata = load_tensors(tmp_path / "critic.safetensors")
    assert metadata["model"] == fingerprint(load_torch(place / "model", "cpu")[0].network)

    # What is kept is the best there was, and the scores of the file are those that were measured.
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert log[0]["held_out_loss"] == pytest.approx(COIN, abs=1e-5)
    assert min(each["held_out_loss"] for each in log) == known(tmp_path)["facts"]["held_out_loss"]
    assert known(tmp_path)["facts"]["held_out_loss"] == pytest.approx(loss, abs=1e-5)
    (place / "model" / "critic.safetensors").write_bytes((tmp_path / "critic.safetensors").read_bytes())
    critic = load_torch_critic(place / "model", "cpu")
    inside = drawn_cells(load_torch(place / "model", "cpu")[0])
    with np.load(tmp_path / "scores.npz") as scores:
        again = critic.scores(boards[-40:].reshape(40, -1)[:, inside])
        np.testing.assert_allclose(again, scores["drawn"], rtol=0.02, atol=0.05)
        assert cross_entropy(scores["real"], scores["drawn"]) == pytest.approx(loss, abs=1e-4)


def test_other_sweeps_can_be_asked_for(
    place: Path, tmp_path: Path, clock: None, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "boards.npz"
    run(place, tmp_path / "swept", "--drawn", 20, "--minutes", 0.5, "--polish", 2, "--boards-out", kept)
    told = capsys.readouterr().err.splitlines()
    assert told == [f"drawn: {n} of 20 boards" for n in range(2, 21, 2)]
    assert known(tmp_path / "swept")["settings"]["polish"] == 2
    with np.load(kept) as file:
        assert (file["boards"] == drawn(place, 20, polish=2)).all()
        # None of those that people draw: the critic would know them again.
        assert not (file["boards"] == drawn(place, 20, polish=2, first=0)).all((1, 2)).any()
    # The file says how its boards were drawn.
    run(place, tmp_path / "again", "--drawn", kept, "--minutes", 0.5)
    assert known(tmp_path / "again")["settings"]["polish"] == 2
    np.savez(tmp_path / "silent.npz", boards=drawn(place, 20, polish=0))
    run(place, tmp_path / "told", "--drawn", tmp_path / "silent.npz", "--minutes", 0.5, "--polish", 3)
    assert known(tmp_path / "told")["settings"]["polish"] == 3


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


# -- refusals


def test_what_cannot_be_learned_from_is_refused(place: Path, tmp_path: Path) -> None:
    def said(*arguments: object) -> str:
        with pytest.raises(MaskobanError) as refused:
            run(place, tmp_path / "out", *arguments)
        assert not (tmp_path / "out").exists()
        return str(refused.value)

    write(tmp_path / "square.npz", synthesize(5, height=6, width=6, boxes=1))
    square = tmp_path / "square.npz"
    assert said("--corpus", square) == f"{square} has 6x6 boards, but the model draws 6x7"
    assert said("--drawn", 4) == "a fifth of the drawings is held out, and 4 are too few for that"
    assert said("--minutes", 0) == "the training time must be above 0 minutes, not 0"
    assert said("--learning-rate", "nan") == "learning_rate must be a number from 0 on, not nan"
    assert said("--batch", 1) == "batch must be at least 2, not 1"
    assert said("--drawn", 9, "--polish", -1) == "the number of polish sweeps cannot be negative, and is -1"
    nowhere = tmp_path / "nowhere" / "boards.npz"
    assert said("--boards-out", nowhere) == f"{nowhere}: cannot be written: No such file or directory"
    text = tmp_path / "text.npz"
    text.write_text("no boards")
    assert said("--out", text / "deeper") == f"{text}: is a file, and a folder for the run is wanted"
    assert said("--drawn", nowhere) == f"{nowhere}: neither a number of drawings nor a file of them"
    assert said("--drawn", text) == f"{text}: no level in it; expected at least one board"
    boards = np.full((9, 6, 7), MASK - 1, np.uint8)
    np.savez(tmp_path / "silent.npz", boards=boards)
    np.savez(tmp_path / "told.npz", boards=boards, polish=2)
    sentence = (
        f"{tmp_path / 'silent.npz'}: does not say how many polish sweeps its boards had; say it with --polish"
    )
    assert said("--drawn", tmp_path / "silent.npz") == sentence
    sentence = f"{tmp_path / 'told.npz'}: its boards had 2 polish sweeps, not 1"
    assert said("--drawn", tmp_path / "told.npz", "--polish", 1) == sentence
    paper = save_run(tmp_path / "paper", SMALL_PAPER)
    sentence = "a critic can be made of the interior network only, not of the paper's"
    assert said("--model", paper, "--drawn", 10**9) == sentence  # before it draws


def test_drawings_that_are_no_boards_are_refused(place: Path, tmp_path: Path) -> None:
    file, boards = tmp_path / "drawn.npz", np.ones((9, 6, 7), np.uint8)

    def said(**arrays: Any) -> str:
        np.savez(file, **{"boards": boards, "polish": 0} | arrays)
        with pytest.raises(MaskobanError) as refused:
            run(place, tmp_path / "out", "--drawn", file)
        assert not (tmp_path / "out").exists()
        return str(refused.value).removeprefix(f"{file}: ")

    assert said(boards=boards[:0]) == "no level in it; expected at least one board"
    assert said(boards=boards[:4]) == "a fifth of the drawings is held out, and 4 are too few for that"
    assert (
        said(boards=boards / 2) == "boards holds float64 of shape (9, 6, 7); expected whole numbers (n, h, w)"
    )
    assert said(boards=9 * boards) == "boards holds the number 9; expected tiles, 0 to 7"
    assert (
        said(boards=MASK * boards) == "there are cells left to draw (?) on its boards; expected finished ones"
    )
    for polish in ([1, 1], 0.5, -1, "one"):
        assert said(polish=polish) == "polish must be one whole number of sweeps, 0 or more"
    np.save(tmp_path / "drawn.npy", boards)
    with pytest.raises(MaskobanError, match="does not say how many polish sweeps its boards had"):
        run(place, tmp_path / "out", "--drawn", tmp_path / "drawn.npy")


def test_no_drawings_are_refused_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--model", "nowhere", "--corpus", "x", "--held-out", "x", "--out", str(tmp_path), "--drawn", "0"]
    monkeypatch.setattr(sys, "argv", ["critic", *given])
    with pytest.raises(SystemExit) as left:
        command.main()
    assert left.value.code == 2
    told = "maskoban critic: a fifth of the drawings is held out, and 0 are too few for that\n"
    assert capsys.readouterr().err == told


def test_a_critic_is_not_replaced_by_another(place: Path, tmp_path: Path, clock: None) -> None:
    run(place, tmp_path / "critic", "--drawn", 40, "--minutes", 0.5)
    before = (tmp_path / "critic" / "critic.safetensors").read_bytes()
    with pytest.raises(MaskobanError, match="a critic is there already; give another --out"):
        run(place, tmp_path / "critic", "--drawn", 10**9)  # before it draws
    assert (tmp_path / "critic" / "critic.safetensors").read_bytes() == before


def test_one_that_has_learned_nothing_is_not_kept(place: Path, tmp_path: Path, clock: None) -> None:
    with pytest.raises(MaskobanError, match="this critic cannot tell drawings from levels, and is not kept"):
        run(place, tmp_path, "--drawn", 40, "--minutes", 0.01)
    assert not (tmp_path / "critic.safetensors").exists()


def test_a_critic_that_reads_upside_down_is_not_kept(
    place: Path, tmp_path: Path, clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(critic_trainer, "calibration", lambda real, drawn: (-1.0, 0.0))
    with pytest.raises(MaskobanError, match="cannot tell drawings from levels"):
        run(place, tmp_path, "--drawn", 40, "--minutes", 0.5)
    assert not (tmp_path / "critic.safetensors").exists()


def test_ctrl_c_keeps_what_was_learned(
    place: Path, tmp_path: Path, clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, taken = CriticTrainer.batch, itertools.count(1)

    def pressed(self: CriticTrainer) -> Any:
        if next(taken) == 16:
            raise KeyboardInterrupt
        return plain(self)

    monkeypatch.setattr(CriticTrainer, "batch", pressed)
    with pytest.raises(KeyboardInterrupt):
        run(place, tmp_path, "--drawn", 40, "--minutes", 1, "--look-every", 100)
    assert known(tmp_path)["facts"]["step"] == 15


def test_the_command_refuses_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--model", "nowhere", "--corpus", "x", "--held-out", "x", "--out", "x", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["critic", *given])
    with pytest.raises(SystemExit) as left:
        command.main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("maskoban critic: nowhere")
    assert said.count("\n") == 1


def test_ctrl_c_ends_the_command_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pressed(_: list[str]) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", pressed)
    with pytest.raises(SystemExit) as left:
        command.main()
    assert left.value.code == 130
    assert (
        capsys.readouterr().err
        == "maskoban critic: interrupted; if it was learning already, the best critic so far is in its folder\n"
    )
