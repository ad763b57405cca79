"""Boards as numpy saves them."""

import numpy as np
import pytest

from maskoban.boards import Level, LevelFileError, MaskobanError, read, read_boards, write
from maskoban.boards.formats import npy


def test_an_array_that_numpy_saved_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "_CELLS", 50)  # several parts
    boards = np.random.default_rng(3).integers(0, 8, (20, 3, 4), np.uint8)
    np.save(tmp_path / "boards.npy", boards)
    assert (read_boards(tmp_path / "boards.npy") == boards).all()
    assert [level.tokens.tolist() for level in read(tmp_path / "boards.npy")] == boards.tolist()


def test_numpy_reads_what_is_written(tmp_path):
    boards = np.random.default_rng(3).integers(0, 8, (20, 3, 4), np.uint8)
    write(tmp_path / "boards.npy", boards)
    loaded = np.load(tmp_path / "boards.npy")
    assert loaded.dtype == np.uint8
    assert (loaded == boards).all()


def test_levels_of_several_sizes_are_not_written(tmp_path):
    with pytest.raises(MaskobanError, match=r"levels of several sizes cannot be written as \.npy"):
        write(tmp_path / "two.npy", [Level.parse("@"), Level.parse("@@")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((3, 4), np.uint8), "boards is no array of uint8"),
        (np.zeros((2, 3, 4)), "boards is no array of uint8"),
        (np.full((2, 3, 4), 9, np.uint8), "boards holds the number 9; expected tiles, 0 to 7"),
        (np.zeros((0, 3, 4), np.uint8), "no level in it"),
    ],
)
def test_an_array_that_is_no_boards_is_refused(tmp_path, array, sentence):
    np.save(tmp_path / "odd.npy", array)
    with pytest.raises(LevelFileError, match=f"odd.npy: .*{sentence}"):
        read(tmp_path / "odd.npy")


def test_half_an_array_is_refused(tmp_path):
    np.save(tmp_path / "half.npy", np.zeros((9, 3, 3), np.uint8))
    (tmp_path / "half.npy").write_bytes((tmp_path / "half.npy").read_bytes()[:-1])
    with pytest.raises(LevelFileError, match=r"half.npy: boards is not whole"):
        read_boards(tmp_path / "half.npy")


def test_an_array_of_no_boards_is_refused_by_the_fast_reader_too(tmp_path):
    np.save(tmp_path / "none.npy", np.zeros((0, 3, 4), np.uint8))
    np.savez(tmp_path / "none.npz", boards=np.zeros((0, 3, 4), np.uint8))
    np.save(tmp_path / "one.npy", np.zeros((1, 3, 4), np.uint8))
    for name, told in (("none.npy", "none.npy"), ("none.npz", "none.npz"), ("", "none.npy")):
        with pytest.raises(LevelFileError, match=f"{told}: no level in it; expected at least one board"):
            read_boards(tmp_path / name)
