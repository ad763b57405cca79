"""Boards come from a model a part at a time, or from any file."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskoban.boards import BOX, GOAL, PLAYER, WALL, write
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import FileError, MaskobanError
from maskoban.evaluation import sample as samples
from maskoban.evaluation.sample import (
    Sample,
    commit_probabilities,
    identity,
    random_boards,
    read_sample,
    sample_model,
)
from maskoban.evaluation.stages import Stages

from .boards import NO_PLAYER, SOLVABLE, drawn
from .recall import recalling_model

BOARDS = drawn(SOLVABLE, NO_PLAYER)


@pytest.mark.parametrize("precision", [np.float16, np.float32])
def test_an_archive_of_boards_and_probabilities(tmp_path: Path, precision: type) -> None:
    chances = np.full(BOARDS.shape, 0.25, precision)
    chances[:, 0] = np.nan
    np.savez(tmp_path / "b.npz", boards=BOARDS, probabilities=chances)
    read = read_sample(tmp_path / "b.npz")
    np.testing.assert_array_equal(read.boards, BOARDS)
    np.testing.assert_array_equal(read.probabilities, chances.astype(np.float32))


def test_probabilities_may_be_missing(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "b.npz", boards=BOARDS.astype(np.int64))
    read = read_sample(tmp_path / "b.npz")
    assert read.probabilities is None
    assert read.boards.dtype == np.uint8


@pytest.mark.parametrize("name", ["b.xsb", "b.sok", "b.npz"])
def test_any_level_file(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, BOARDS)
    np.testing.assert_array_equal(read_sample(tmp_path / name).boards, BOARDS)


ONE_BOARD = np.zeros((1, 3, 3), np.uint8)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"boards": np.zeros((0, 3, 3), np.uint8)}, "no level in it"),
        ({"boards": np.zeros((1, 3, 3))}, "expected whole numbers \\(n, h, w\\)"),
        ({"boards": np.full((1, 3, 3), 8)}, "expected tiles, 0 to 7"),
        ({"boards": np.full((1, 3, 3), -1)}, "expected tiles, 0 to 7"),
        ({"boards": np.zeros((1, 3, 3), int), "probabilities": np.zeros((1, 9))}, "expected the same"),
        (
            {"boards": ONE_BOARD, "probabilities": np.full((1, 3, 3), -0.1)},
            "from -0.1 to -0.1; expected 0 to 1",
        ),
        ({"boards": ONE_BOARD, "probabilities": np.full((1, 3, 3), 7.0)}, "from 7 to 7; expected 0 to 1"),
        ({"boards": ONE_BOARD, "probabilities": np.full((1, 3, 3), "half")}, "expected float16 or float32"),
        ({"boards": np.array([{}])}, "boards holds object of shape"),
        ({"boards": ONE_BOARD, "probabilities": np.array([{}])}, "probabilities cannot be unpacked"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, arrays: dict[str, Any], sentence: str) -> None:
    np.savez(tmp_path / "b.npz", **arrays)
    with pytest.raises(FileError, match=sentence):
        read_sample(tmp_path / "b.npz")


def test_a_damaged_archive_is_said_or_makes_no_difference(tmp_path: Path) -> None:
    chances = np.random.default_rng(0).random(BOARDS.shape).astype(np.float32)
    np.savez_compressed(tmp_path / "b.npz", boards=BOARDS, probabilities=chances)
    whole = (tmp_path / "b.npz").read_bytes()
    refused = 0
    for place in range(0, len(whole), 7):
        spoiled = bytearray(whole)
        spoiled[place] ^= 0xFF
        (tmp_path / "b.npz").write_bytes(spoiled)
        try:
            read = read_sample(tmp_path / "b.npz")
        except FileError:
            refused += 1
        else:
            np.testing.assert_array_equal(read.boards, BOARDS)
    assert refused > 10


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "b.npz", BOARDS)
    os.mkfifo(tmp_path / "pipe")
    filling = threading.Thread(
        target=lambda: (tmp_path / "pipe").write_bytes((tmp_path / "b.npz").read_bytes())
    )
    filling.start()
    np.testing.assert_array_equal(read_sample(tmp_path / "pipe").boards, BOARDS)
    filling.join()


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        read_sample(tmp_path / "nowhere.npz")


def test_parts_are_the_boards_of_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = recalling_model()
    model.denoiser.batch = 8  # type: ignore[misc]
    monkeypatch.setattr(samples, "SAVED_EVERY", 1)
    parts = sample_model(model, 70, 3, model.sampler("best"), Stages(tmp_path), "boards")
    assert len(list(tmp_path.iterdir())) == 3  # 32 + 32 + 6
    at_once = model.trajectory(70, 3)
    np.testing.assert_array_equal(parts.attempts, at_once.attempts)
    np.testing.assert_array_equal(parts.boards, at_once.boards)
    np.testing.assert_array_equal(parts.probabilities, commit_probabilities(at_once).astype(np.float16))


def test_attempts_are_kept(tmp_path: Path) -> None:
    model = recalling_model()
    drawn = [sample_model(model, 70, 3, model.sampler("best"), Stages(tmp_path), "boards") for _ in range(2)]
    assert drawn[0].mean_attempts == drawn[1].mean_attempts > 1
    assert drawn[0].fingerprint == drawn[1].fingerprint
    assert drawn[0].first(9).mean_attempts == drawn[0].attempts[:9].mean()  # type: ignore[index]
    assert Sample(BOARDS).mean_attempts == 1


def test_probabilities_are_those_of_the_first_commit() -> None:
    """As in the paper, whatever sweeps come after; a cell that a sweep changed has none."""
    model = recalling_model()
    plain = model.trajectory(40, 3, SamplerConfig())
    np.testing.assert_array_equal(commit_probabilities(plain), plain.probability())
    swept = model.trajectory(40, 3, SamplerConfig(sweeps=1))
    found, last = commit_probabilities(swept), swept.probability()
    same = swept.boards == plain.boards
    changed = ~same & ~np.isnan(last)
    np.testing.assert_array_equal(found[same], plain.probability()[same])
    assert np.isnan(found[changed]).all()
    inside = ~np.isnan(found)
    assert (found[inside] != last[inside]).any()


def test_random_boards_have_the_counts_of_boxoban_and_nothing_else_of_it() -> None:
    boards = random_boards(400, seed=3)
    assert boards.shape == (400, 10, 10)
    for tile, count in ((PLAYER, 1), (BOX, 4), (GOAL, 4)):
        assert ((boards == tile).sum(axis=(1, 2)) == count).all()
    border = boards.copy()
    border[:, 1:-1, 1:-1] = WALL
    assert (border == WALL).all()
    assert (boards == WALL).sum() / 400 == pytest.approx(68.6, abs=0.6)
    np.testing.assert_array_equal(boards, random_boards(400, seed=3))
    with pytest.raises(MaskobanError, match="a 4x4 board has 4 cells inside its border; expected at least 9"):
        random_boards(1, 4, 4)


def test_samples_and_models_are_told_apart(tmp_path: Path) -> None:
    assert Sample(BOARDS).fingerprint != Sample(BOARDS, np.ones(BOARDS.shape, np.float32)).fingerprint
    assert Sample(BOARDS).fingerprint != Sample(BOARDS, attempts=np.ones(len(BOARDS), int)).fingerprint
    one, other = recalling_model(), recalling_model()
    for model, content in ((one, b"a"), (other, b"b")):
        model.folder = tmp_path / content.decode()
        model.folder.mkdir()
        (model.folder / "model.safetensors").write_bytes(content)
    assert identity(one) != identity(other)
