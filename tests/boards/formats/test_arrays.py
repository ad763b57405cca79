"""Arrays of tokens: what numpy saves is read, and numpy loads what is written."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from maskoban.boards import Level, read, read_boards, write
from maskoban.boards.formats import arrays
from maskoban.errors import FileError, MaskobanError

from .helpers import write_blocks, write_bytes


def write_bytes_npz(levels):
    return write_bytes("npz", levels)


def test_an_array_that_numpy_saved_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_PART_BYTES", 50)  # several parts
    boards = np.random.default_rng(3).integers(0, 8, (20, 3, 4), np.uint8)
    np.save(tmp_path / "boards.npy", boards)
    assert (read_boards(tmp_path / "boards.npy") == boards).all()
    assert [level.tokens.tolist() for level in read(tmp_path / "boards.npy")] == boards.tolist()


KINDS = ["i1", "u1", "<i2", ">i2", "<u4", ">i4", "<i8", ">u8"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_whole_numbers_of_any_kind_and_order_are_read(tmp_path, monkeypatch, kind, order, version):
    monkeypatch.setattr(arrays, "_PART_BYTES", 50)  # several parts
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
    monkeypatch.setattr(arrays, "_MAX_FORTRAN_CELLS", 100)
    np.save(tmp_path / "many.npy", np.asfortranarray(np.zeros((9, 3, 4), np.uint8)))
    with pytest.raises(FileError, match=r"holds more than 100 cells in Fortran order; expected C order"):
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
        (np.zeros((2, 201, 4), np.uint8), "holds boards of 201x4; expected 1x1 to 200x200"),
        (np.zeros((0, 4), np.uint8), "holds boards of 0x4; expected 1x1 to 200x200"),
        (np.full((2, 3, 4), -1), "holds the number -1; expected tiles, 0 to 7"),
        (np.full((2, 3, 4), 263), "holds the number 263; expected tiles, 0 to 7"),
        (np.full((2, 3, 4), 9, np.uint8), "holds the number 9; expected tiles, 0 to 7"),
        (np.zeros((0, 3, 4), np.uint8), "no level in it"),
    ],
)
def test_an_array_that_is_no_boards_is_refused(tmp_path, array, sentence):
    np.save(tmp_path / "odd.npy", array)
    with pytest.raises(FileError, match=f"odd.npy: .*{sentence}"):
        read(tmp_path / "odd.npy")


def test_half_an_array_is_refused(tmp_path):
    np.save(tmp_path / "half.npy", np.zeros((9, 3, 3), np.uint8))
    (tmp_path / "half.npy").write_bytes((tmp_path / "half.npy").read_bytes()[:-1])
    with pytest.raises(FileError, match=r"half.npy: is not whole"):
        read_boards(tmp_path / "half.npy")


def test_an_array_of_no_boards_is_refused_by_the_fast_reader_too(tmp_path):
    np.save(tmp_path / "none.npy", np.zeros((0, 3, 4), np.uint8))
    np.savez(tmp_path / "none.npz", boards=np.zeros((0, 3, 4), np.uint8))
    np.save(tmp_path / "one.npy", np.zeros((1, 3, 4), np.uint8))
    for name, told in (("none.npy", "none.npy"), ("none.npz", "none.npz"), ("", "none.npy")):
        with pytest.raises(FileError, match=f"{told}: no level in it; expected at least one board"):
            read_boards(tmp_path / name)


def test_a_kind_of_several_lines_is_not_repeated(tmp_path):
    np.save(tmp_path / "lines.npy", np.zeros((2, 3, 4), np.uint8))
    data = (tmp_path / "lines.npy").read_bytes()
    (tmp_path / "lines.npy").write_bytes(data.replace(b"'|u1'", b"'|\n1'"))
    with pytest.raises(FileError, match=r"lines.npy: has a header that is not read; expected whole"):
        read(tmp_path / "lines.npy")


# --- .npz


def test_a_board_takes_few_bytes(tmp_path):
    """Walls at random cannot be packed into less than a bit a cell, 8 bytes here; the rest costs little."""
    rng = np.random.default_rng(2)
    boards = np.zeros((20_000, 10, 10), np.uint8)
    boards[:, 1:-1, 1:-1] = rng.integers(0, 2, (20_000, 8, 8))
    for tile in (2, 3, 3, 3, 3, 4, 4, 4, 4):
        boards[np.arange(20_000), rng.integers(1, 9, 20_000), rng.integers(1, 9, 20_000)] = tile
    write(tmp_path / "many.npz", boards)
    assert (tmp_path / "many.npz").stat().st_size < 24 * 20_000
    assert (read_boards(tmp_path / "many.npz") == boards).all()


def test_numpy_loads_boards_of_one_size_as_one_array(tmp_path):
    boards = np.random.default_rng(3).integers(0, 8, (20, 3, 4), np.uint8)
    write(tmp_path / "boards.npz", boards)
    with np.load(tmp_path / "boards.npz") as loaded:
        assert list(loaded) == ["boards"]
        assert loaded["boards"].dtype == np.uint8
        assert (loaded["boards"] == boards).all()


def test_numpy_loads_boards_of_several_sizes_and_what_is_known_about_them(tmp_path):
    rng = np.random.default_rng(1)
    levels = [Level(rng.integers(0, 8, rng.integers(1, 6, 2))) for _ in range(20)]
    levels[3] = Level(levels[3].tokens, "a title", solutions=("lurd",))
    write(tmp_path / "mixed.npz", levels)
    with np.load(tmp_path / "mixed.npz") as loaded:
        assert loaded["sizes"].tolist() == [list(level.shape) for level in levels]
        cells = np.split(loaded["boards"], np.cumsum(loaded["sizes"].astype(int).prod(axis=1))[:-1])
        shaped = [part.reshape(size) for part, size in zip(cells, loaded["sizes"], strict=True)]
        assert [board.tolist() for board in shaped] == [level.tokens.tolist() for level in levels]
        notes = [json.loads(line) for line in bytes(loaded["notes"]).splitlines()]
    assert notes == [{"level": 3, "title": "a title", "solutions": ["lurd"]}]
    assert read(tmp_path / "mixed.npz") == levels


@pytest.mark.parametrize("save", [write_bytes_npz, write_blocks])
def test_boards_of_several_sizes_are_no_batch(tmp_path, save):
    (tmp_path / "two.npz").write_bytes(save([Level.parse("@"), Level.parse("@@")]))
    with pytest.raises(FileError, match=r"two.npz: boards of .*; expected one size"):
        read_boards(tmp_path / "two.npz")


def test_a_plain_array_of_boards_is_read_too(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_PART_BYTES", 50)  # several parts
    boards = np.random.default_rng(3).integers(0, 8, (20, 3, 4), np.uint8)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "plain.npz", boards=boards, polish=1)
        assert (read_boards(tmp_path / "plain.npz") == boards).all()
        assert [level.tokens.tolist() for level in read(tmp_path / "plain.npz")] == boards.tolist()


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((2, 3, 4)), r"boards holds float64 of shape \(2, 3, 4\); expected whole numbers"),
        (np.zeros((2, 201, 4), np.uint8), "boards holds boards of 201x4; expected 1x1 to 200x200"),
        (np.zeros((2, 0, 4), np.uint8), "boards holds boards of 0x4; expected 1x1 to 200x200"),
        (np.full((2, 3, 4), 8, np.uint8), "boards holds the number 8; expected tiles, 0 to 7"),
        (np.array([{}]), r"boards holds object of shape \(1,\); expected whole numbers"),
    ],
)
def test_an_array_in_an_archive_that_is_no_boards_is_refused(tmp_path, array, sentence):
    np.savez(tmp_path / "plain.npz", boards=array)
    with pytest.raises(FileError, match=f"plain.npz: .*{sentence}"):
        read(tmp_path / "plain.npz")


def test_a_plain_array_cut_short_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "cut.npz", "w") as archive, archive.open("boards.npy", "w") as out:
        np.lib.format.write_array_header_1_0(
            out, {"descr": "|u1", "fortran_order": False, "shape": (9, 3, 3)}
        )
        out.write(bytes(80))
    with pytest.raises(FileError, match=r"cut.npz: boards is not whole"):
        read_boards(tmp_path / "cut.npz")


def test_a_member_larger_than_it_says_is_not_unpacked(tmp_path):
    n = 50_000_000
    with zipfile.ZipFile(tmp_path / "liar.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0.sizes.npy", bytes(n))
        archive.writestr("0.planes.npy", b"")
    claimed = (tmp_path / "liar.npz").read_bytes().replace(struct.pack("<L", n), struct.pack("<L", 100))
    (tmp_path / "liar.npz").write_bytes(claimed)
    tracemalloc.start()
    with pytest.raises(FileError, match=r"liar.npz: 0.sizes"):
        read(tmp_path / "liar.npz")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5_000_000


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_damaged_plain_array_is_refused(tmp_path, packing):
    np.save(out := io.BytesIO(), np.zeros((500, 3, 3), np.uint8))
    with zipfile.ZipFile(tmp_path / "bad.npz", "w", packing) as archive:
        archive.writestr("boards.npy", out.getvalue())
    data = bytearray((tmp_path / "bad.npz").read_bytes())
    data[data.index(b"boards.npy") + 14] ^= 255
    (tmp_path / "bad.npz").write_bytes(data)
    with pytest.raises(FileError, match=r"bad.npz: boards (cannot be unpacked|has a header)"):
        read(tmp_path / "bad.npz")


@pytest.mark.parametrize("member", [b"hello", b"\x93NUMPY\x01\0\x10\0" + b"(" * 16, bytes(100_000)])
def test_an_extra_array_is_damaged(tmp_path, member):
    np.savez(tmp_path / "b.npz", boards=np.zeros((1, 3, 3), np.uint8))
    with zipfile.ZipFile(tmp_path / "b.npz", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("odds.npy", member)
    with pytest.raises(FileError, match=r"b.npz: odds cannot be unpacked"):
        arrays.extra_array(tmp_path / "b.npz", "odds", 9)
    assert arrays.extra_array(tmp_path / "b.npz", "evens", 9) is None
