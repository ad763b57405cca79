"""Boxoban's own files, where they are at hand; and ones of the same shape of our own."""

from __future__ import annotations

import pytest

from maskoban.boards import Level, LevelFileError, read, read_boards, write
from maskoban.boards.formats.boxoban import boards_of_text

ROOM = Level.parse("#####\n#@$.#\n#####")


def test_a_folder_of_files_of_a_thousand(tmp_path):
    levels = [Level(ROOM.tokens, title=str(i % 1000)) for i in range(2500)]
    write(f"{tmp_path}/train/", levels)
    assert sorted(path.name for path in (tmp_path / "train").iterdir()) == ["000.txt", "001.txt", "002.txt"]
    assert (tmp_path / "train" / "001.txt").read_text().startswith("; 0\n#####\n#@$.#\n#####\n\n; 1\n")
    assert read(tmp_path / "train") == levels
    assert read_boards(tmp_path / "train").shape == (2500, 3, 5)


def test_what_is_no_level_file_in_a_folder_is_passed_over(tmp_path):
    write(tmp_path, [ROOM])
    (tmp_path / "README.md").write_text("# Not a board\n")
    assert len(read(tmp_path)) == 1


def test_the_number_is_the_title_or_the_place(tmp_path):
    write(tmp_path / "two.txt", [Level(ROOM.tokens, "17"), Level(ROOM.tokens, "seventeen")], format="boxoban")
    assert [level.title for level in read(tmp_path / "two.txt")] == ["17", "1"]


@pytest.mark.parametrize(
    "text",
    [
        "Level 1\n###\n",  # text
        "###\n#@\n",  # ragged
        "###\n#@#\n\n###\n",  # two sizes
        "3#\n",  # run lengths
        "###\n   \n###\n",  # a blank line of spaces
        "...\n",  # might be text
        "",
    ],
)
def test_what_is_not_regular_is_left_to_the_careful_reader(text):
    assert boards_of_text(text.encode()) is None


def test_fast_reading_of_files_without_last_newline_and_from_windows():
    assert boards_of_text(b"\xef\xbb\xbf; 0\r\n###\r\n#@#").tolist() == [[[0, 0, 0], [0, 2, 0]]]


def test_files_of_two_sizes_are_no_batch(tmp_path):
    write(tmp_path / "a.txt", [ROOM])
    write(tmp_path / "b.txt", [Level.parse("#@#")])
    with pytest.raises(LevelFileError, match=r"b.txt: boards of 3x5 and of 1x3; expected one size"):
        read_boards(tmp_path)


def test_real_levels_come_back_to_the_byte(boxoban, tmp_path):
    source = boxoban / "medium" / "valid" / "000.txt"
    levels = read(source)
    write(tmp_path / "000.txt", levels, format="boxoban")
    assert (tmp_path / "000.txt").read_bytes() == source.read_bytes()
    assert [level.tokens.tolist() for level in levels] == read_boards(source).tolist()


def test_all_of_the_training_levels(boxoban):
    boards = read_boards(boxoban / "medium" / "train")
    assert boards.shape == (450_000, 10, 10)
    assert round(float((boards == 0).sum(axis=(1, 2)).mean()), 3) == 68.601
