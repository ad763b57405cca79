"""What is written is what is read: every format but Boxoban keeps all of a level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from maskoban.boards import FORMATS, Level, read, read_boards, write

from ..strategies import TRAPS, boards, collections
from .helpers import read_bytes, write_blocks, write_bytes

LOSSLESS = [name for name in FORMATS if name not in ("boxoban", "npy")]


@pytest.mark.parametrize("name", LOSSLESS)
@given(levels=collections)
def test_nothing_is_lost(name, levels):
    assert read_bytes(write_bytes(name, levels)) == levels


@given(levels=collections)
def test_files_of_earlier_versions_are_read(levels):
    assert read_bytes(write_blocks(levels)) == levels


@given(levels=collections)
def test_boxoban_keeps_the_boards(levels):
    assert [level.tokens.tolist() for level in read_bytes(write_bytes("boxoban", levels))] == [
        level.tokens.tolist() for level in levels
    ]


@pytest.mark.parametrize("name", ["xsb", "sok"])
@given(levels=collections)
def test_windows_line_ends_and_byte_order_mark(name, levels):
    data = b"\xef\xbb\xbf" + write_bytes(name, levels).replace(b"\n", b"\r\n")
    assert read_bytes(data) == levels


@pytest.mark.parametrize("name", LOSSLESS)
@pytest.mark.parametrize("trap", TRAPS)
def test_text_that_looks_like_something_else(name, trap):
    board = Level.parse("#####\n#@$.#\n#####").tokens
    titled = Level(board, title=trap)
    levels = [titled, Level(board), Level(board, author=trap, comment=trap), Level(board), titled]
    assert read_bytes(write_bytes(name, levels)) == levels


@pytest.mark.parametrize("name", LOSSLESS)
def test_the_largest_of_everything(name):
    board = np.random.default_rng(3).integers(0, 8, (64, 64))
    comment = "\n".join(["line; of | text"] * 6000)
    level = Level(board, "t" * 100_000, "ü" * 100_000, comment, ("lurdLURD" * 12_500,) * 20)
    assert read_bytes(write_bytes(name, [level, level])) == [level, level]


@pytest.mark.parametrize("name", LOSSLESS)
def test_the_same_levels_give_the_same_bytes(name):
    levels = [Level.parse("#@$.#"), Level.parse("#+*?#")]
    assert write_bytes(name, levels) == write_bytes(name, levels)


@given(board=boards(most=6))
def test_fast_reading_agrees_with_careful_reading(tmp_path_factory, board):
    folder = tmp_path_factory.mktemp("boards")
    for ending in ("txt", "npz", "npy", "slc", "sok"):
        path = folder / f"three.{ending}"
        write(path, [Level(board), Level(board[::-1]), Level(board[:, ::-1])])
        assert read_boards(path).tolist() == [level.tokens.tolist() for level in read(path)]
