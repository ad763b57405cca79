"""Compact files: small, of mixed sizes, block by block."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from maskoban.boards import Level, LevelFileError, read, read_boards, write
from maskoban.boards.formats import npy, npz


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


def test_a_plain_array_of_boards_is_read_too(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "_BYTES", 50)  # several parts
    boards = np.random.default_rng(3).integers(0, 8, (20, 3, 4), np.uint8)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "plain.npz", boards=boards, polish=1)
        assert (read_boards(tmp_path / "plain.npz") == boards).all()
        assert [level.tokens.tolist() for level in read(tmp_path / "plain.npz")] == boards.tolist()


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((2, 3, 4)), r"boards holds float64 of shape \(2, 3, 4\); expected whole numbers"),
        (np.zeros((2, 65, 4), np.uint8), "boards holds boards of 65x4; expected 1x1 to 64x64"),
        (np.zeros((2, 0, 4), np.uint8), "boards holds boards of 0x4; expected 1x1 to 64x64"),
        (np.full((2, 3, 4), 8, np.uint8), "boards holds the number 8; expected tiles, 0 to 7"),
        (np.array([{}]), r"boards holds object of shape \(1,\); expected whole numbers"),
    ],
)
def test_an_array_that_is_no_boards_is_refused(tmp_path, array, sentence):
    np.savez(tmp_path / "plain.npz", boards=array)
    with pytest.raises(LevelFileError, match=f"plain.npz: .*{sentence}"):
        read(tmp_path / "plain.npz")


def test_a_plain_array_cut_short_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "cut.npz", "w") as archive, archive.open("boards.npy", "w") as out:
        np.lib.format.write_array_header_1_0(
            out, {"descr": "|u1", "fortran_order": False, "shape": (9, 3, 3)}
        )
        out.write(bytes(80))
    with pytest.raises(LevelFileError, match=r"cut.npz: boards is not whole"):
        read_boards(tmp_path / "cut.npz")


def test_a_member_larger_than_it_says_is_not_unpacked(tmp_path):
    n = 50_000_000
    with zipfile.ZipFile(tmp_path / "liar.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0.sizes.npy", bytes(n))
        archive.writestr("0.planes.npy", b"")
    claimed = (tmp_path / "liar.npz").read_bytes().replace(struct.pack("<L", n), struct.pack("<L", 100))
    (tmp_path / "liar.npz").write_bytes(claimed)
    tracemalloc.start()
    with pytest.raises(LevelFileError, match=r"liar.npz: 0.sizes"):
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
    with pytest.raises(LevelFileError, match=r"bad.npz: boards (cannot be unpacked|has a header)"):
        read(tmp_path / "bad.npz")


@pytest.mark.parametrize("member", [b"hello", b"\x93NUMPY\x01\0\x10\0" + b"(" * 16, bytes(100_000)])
def test_an_array_beside_boards_is_damaged(tmp_path, member):
    np.savez(tmp_path / "b.npz", boards=np.zeros((1, 3, 3), np.uint8))
    with zipfile.ZipFile(tmp_path / "b.npz", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("odds.npy", member)
    with pytest.raises(LevelFileError, match=r"b.npz: odds cannot be unpacked"):
        npz.array_beside(tmp_path / "b.npz", "odds", 9)
    assert npz.array_beside(tmp_path / "b.npz", "evens", 9) is None
