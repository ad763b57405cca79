"""Boards as numpy saves them."""

import numpy as np
import pytest

from maskoban.boards import Level, LevelFileError, MaskobanError, read, read_boards, write
from maskoban.boards.formats import npy


def test_an_array_that_numpy_saved_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "_BYTES", 50)  # several parts
    boards = np.random.default_rng(3).integers(0, 8, (20, 3, 4), np.uint8)
    np.save(tmp_path / "boards.npy", boards)
    assert (read_boards(tmp_path / "boards.npy") == boards).all()
    assert [level.tokens.tolist() for level in read(tmp_path / "boards.npy")] == boards.tolist()


KINDS = ["i1", "u1", "<i2", ">i2", "<u4", ">i4", "<i8", ">u8"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_whole_numbers_of_any_kind_and_order_are_read(tmp_path, monkeypatch, kind, order, version):
    monkeypatch.setattr(npy, "_BYTES", 50)  # several parts
    boards = np.random.default_rng(3).integers(0, 8, (20, 3, 4))
    with open(tmp_path / "boards.npy", "wb") as out:
        np.lib.format.write_array(out, np.asarray(boards.astype(kind), order=order), version)
    assert read_boards(tmp_path / "boards.npy").dtype == np.uint8
    assert (read_boards(tmp_path / "boards.npy") == boards).all()
    assert [level.tokens.tolist() for level in read(tmp_path / "boards.npy")] == boards.tolist()
    np.savez(tmp_path / "plain.npz", boards=np.asarray(boards.astype(kind), order=order))
    assert (read_boards(tmp_path / "plain.npz") == boards).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_single_board_is_one_board(tmp_path, order):
    board = np.random.default_rng(3).integers(0, 8, (3, 4))
    np.save(tmp_path / "board.npy", np.asarray(board, order=order))
    assert [level.tokens.tolist() for level in read(tmp_path / "board.npy")] == [board.tolist()]


def test_an_array_in_fortran_order_may_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "_FORTRAN_CELLS", 100)
    np.save(tmp_path / "many.npy", np.asfortranarray(np.zeros((9, 3, 4), np.uint8)))
    with pytest.raises(LevelFileError, match=r"holds more than 100 cells in Fortran order; expected C order"):
        read(tmp_path / "many.npy")


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
        (np.zeros((2, 3)), r"holds float64 of shape \(2, 3\); expected whole numbers \(n, h, w\)"),
        (np.zeros((2, 3, 4), bool), r"holds bool of shape \(2, 3, 4\); expected whole numbers"),
        (np.zeros(12, np.uint8), r"holds uint8 of shape \(12,\); expected whole numbers"),
        (np.zeros((2, 2, 3, 4), np.uint8), r"holds uint8 of shape \(2, 2, 3, 4\); expected whole numbers"),
        (np.array([[{}]]), r"holds object of shape \(1, 1\); expected whole numbers"),
        (np.zeros((2, 3), "M8[s]"), r"holds <M8\[s\] of shape \(2, 3\); expected whole numbers"),
        (np.zeros(3, "i4,i4"), "has a header that is not read; expected whole numbers"),
        (np.zeros((2, 65, 4), np.uint8), "holds boards of 65x4; expected 1x1 to 64x64"),
        (np.zeros((0, 4), np.uint8), "holds boards of 0x4; expected 1x1 to 64x64"),
        (np.full((2, 3, 4), -1), "holds the number -1; expected tiles, 0 to 7"),
        (np.full((2, 3, 4), 263), "holds the number 263; expected tiles, 0 to 7"),
        (np.full((2, 3, 4), 9, np.uint8), "holds the number 9; expected tiles, 0 to 7"),
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
    with pytest.raises(LevelFileError, match=r"half.npy: is not whole"):
        read_boards(tmp_path / "half.npy")


def test_an_array_of_no_boards_is_refused_by_the_fast_reader_too(tmp_path):
    np.save(tmp_path / "none.npy", np.zeros((0, 3, 4), np.uint8))
    np.savez(tmp_path / "none.npz", boards=np.zeros((0, 3, 4), np.uint8))
    np.save(tmp_path / "one.npy", np.zeros((1, 3, 4), np.uint8))
    for name, told in (("none.npy", "none.npy"), ("none.npz", "none.npz"), ("", "none.npy")):
        with pytest.raises(LevelFileError, match=f"{told}: no level in it; expected at least one board"):
            read_boards(tmp_path / name)


def test_a_kind_of_several_lines_is_not_repeated(tmp_path):
    np.save(tmp_path / "lines.npy", np.zeros((2, 3, 4), np.uint8))
    data = (tmp_path / "lines.npy").read_bytes()
    (tmp_path / "lines.npy").write_bytes(data.replace(b"'|u1'", b"'|\n1'"))
    with pytest.raises(LevelFileError, match=r"lines.npy: has a header that is not read; expected whole"):
        read(tmp_path / "lines.npy")
