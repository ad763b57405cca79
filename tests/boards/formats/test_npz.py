"""Compact files: small, of mixed sizes, block by block."""

from __future__ import annotations

import io

import numpy as np
import pytest

from maskoban.boards import Level, LevelFileError, read_boards, write
from maskoban.boards.formats import npz


def test_mixed_sizes_and_several_blocks(monkeypatch):
    monkeypatch.setattr(npz, "_CELLS", 50)
    monkeypatch.setattr(npz, "_LETTERS", 30)
    rng = np.random.default_rng(1)
    levels = [Level(rng.integers(0, 8, rng.integers(1, 6, 2)), title=f"number {i}") for i in range(20)]
    npz.write_npz(out := io.BytesIO(), levels)
    assert sum(name.endswith("planes") for name in np.load(io.BytesIO(out.getvalue()))) > 5
    assert list(npz.read_npz(out, "mixed.npz")) == levels


def test_a_board_takes_few_bytes(tmp_path):
    """Walls at random cannot be packed into less than a bit a cell; the border and the rest cost little."""
    rng = np.random.default_rng(2)
    boards = np.zeros((20_000, 10, 10), np.uint8)
    boards[:, 1:-1, 1:-1] = rng.integers(0, 2, (20_000, 8, 8))
    for tile in (2, 3, 3, 3, 3, 4, 4, 4, 4):
        boards[np.arange(20_000), rng.integers(1, 9, 20_000), rng.integers(1, 9, 20_000)] = tile
    write(tmp_path / "many.npz", boards)
    assert (tmp_path / "many.npz").stat().st_size < 18 * 20_000
    assert (read_boards(tmp_path / "many.npz") == boards).all()


def test_boards_of_several_sizes_are_no_batch(tmp_path):
    write(tmp_path / "two.npz", [Level.parse("@"), Level.parse("@@")])
    with pytest.raises(LevelFileError, match=r"two.npz: boards of several sizes; expected one size"):
        read_boards(tmp_path / "two.npz")
