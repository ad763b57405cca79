"""Text files as people really keep them."""

from __future__ import annotations

import io

import numpy as np
import pytest

from maskoban.boards import Collection, Level, LevelFileWarning, Moves, Source, read_boards, write
from maskoban.boards import read as read_file
from maskoban.boards.formats import regular
from maskoban.boards.formats.regular import read_text_boards, regular_boards
from maskoban.boards.formats.text import read_text
from maskoban.errors import FileError

from .helpers import read_bytes, write_bytes

ROOM = "#####\n#@$.#\n#####"
HALL = "######\n#@ $.#\n######"


def read(text, encoding="utf-8"):
    return read_bytes(text.encode(encoding), "xsb")


def collection(text):
    """What is known about the collection."""
    source = Source(io.BytesIO(text.encode()), "file")
    list(read_text(source))
    return source.collection


def titles(text):
    return [level.title for level in read(text)]


def test_levels_with_blank_lines_between():
    assert [str(level) for level in read(f"\n\n{ROOM}\n\n   \n{HALL}")] == [ROOM, HALL]


def test_boxoban_headers():
    assert titles(f"; 0\n{ROOM}\n\n; 1\n{HALL}\n\n") == ["0", "1"]
    assert titles(f"; 0\n{ROOM}\n; 1\n{HALL}\n") == ["0", "1"]


def test_a_title_line_with_a_blank_line_below_it():
    assert titles(f"; 1\n\n{ROOM}\n\n; 2\n\n{HALL}") == ["1", "2"]
    assert titles(f"1\n\n{ROOM}\n\n2\n\n{HALL}") == ["1", "2"]


def test_titles_behind_a_semicolon_below_the_board():
    assert titles(f"{ROOM}\n; first\n\n{HALL}\n; second\n") == ["first", "second"]


def test_a_preamble_behind_semicolons_is_no_title():
    text = f";Copyright: me\n;Free to play.\n;\n;M001.XSB\n{ROOM}\n\n\n;M002.XSB\n{HALL}"
    assert [(level.title, level.comment) for level in read(text)] == [("M001.XSB", ""), ("M002.XSB", "")]
    assert collection(text).comment == "Copyright: me\nFree to play."


def test_a_block_right_above_ends_with_the_title():
    first, second = read(f"{ROOM}\n\nLonger than the room\nThe hall\nAuthor: Ann\n{HALL}")
    assert first.comment == ""
    assert (second.title, second.author, second.comment) == ("The hall", "Ann", "Longer than the room")


def test_a_collection_of_the_sok_kind():
    text = f"""
:::::::::::::::::::::::::::
:: only for text editors ::
:::::::::::::::::::::::::::

Collection: Two rooms
Author: Ann Other

A small room

{ROOM}

Author: Somebody
Title: not a second title
A note about it.

Another note.
Comment:
    Between these
#####

anything goes.
Comment-End:

Solution/Pushes
R

Saved game
r

A hall

6#|#@1-$.#|
6#

Solution: 1r
R
"""
    room, hall = read(text)
    assert room == Level(
        Level.parse(ROOM).tokens,
        "A small room",
        "Somebody",
        "Title: not a second title\nA note about it.\n\nAnother note.\n"
        "    Between these\n#####\n\nanything goes.",
        (Moves("R", "Solution/Pushes"),),
        (Moves("r", "Saved game"),),
    )
    assert collection(text) == Collection((), "Two rooms", "Ann Other")
    assert hall == Level(Level.parse(HALL).tokens, "A hall", "Ann Other", "", ("rR",))


def test_run_lengths_in_rows_and_moves():
    (level,) = read("5#|#@$.#\n5#|\n\nSolution\n2r 3U\nL\n")
    assert str(level) == ROOM
    assert level.solutions == ("rrUUUL",)


def test_words_of_moves_are_only_moves_below_a_heading():
    (level,) = read(f"{ROOM}\n\nSolution unknown\nso far\ndull\n")
    assert level.solutions == ()
    assert level.comment == "Solution unknown\nso far\ndull"


def test_dots_and_dashes_are_text():
    levels = read(f"-----\n\n{ROOM}\n\n......\n***\n\n{HALL}\n")
    assert [str(level) for level in levels] == [ROOM, HALL]
    assert levels[0].comment == "......\n***"


def test_a_board_without_a_wall_needs_a_player_or_the_mark():
    assert [level.shape for level in read("@$.")] == [(1, 3)]
    assert [level.shape for level in read("Board:\n.$*\n---")] == [(2, 3)]
    assert read(".$*|---|") == []
    assert read(".$*") == []


def test_masked_boards():
    (level,) = read("?????\n?@$.?\n?????")
    assert str(level) == "?????\n?@$.?\n?????"


def test_spaces_at_the_end_of_a_row_are_floor():
    (level,) = read("#@ \n#  ")
    assert level.shape == (2, 3)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end(newline):
    (level,) = read(f"; ü\n{ROOM}".replace("\n", newline))
    assert (level.title, str(level)) == ("ü", ROOM)


def test_text_from_before_utf8():
    assert [level.title for level in read(f"; Über\n{ROOM}", "cp1252")] == ["Über"]


def test_the_first_steps_as_we_write_them():
    level = Level(Level.parse(ROOM).tokens, "First steps", "Ann", "Push\n\nonce.", ("R",))
    text = (
        f"; First steps\n{ROOM}\n; Author: Ann\n"
        "; Comment:\n; Push\n;\n; once.\n; Comment-End:\n; Solution\n; R\n"
    )
    assert write_bytes("xsb", [level, level]).decode() == f"{text}\n{text}"
    assert write_bytes("sok", [level]).decode() == (
        f"First steps\n{ROOM}\n\nAuthor: Ann\nComment:\nPush\n\nonce.\nComment-End:\nSolution\nR\n"
    )


# --- Boxoban


def test_a_folder_of_files_of_a_thousand(tmp_path):
    levels = [Level(Level.parse(ROOM).tokens, title=str(i % 1000)) for i in range(2500)]
    write(f"{tmp_path}/train/", levels)
    assert sorted(path.name for path in (tmp_path / "train").iterdir()) == ["000.txt", "001.txt", "002.txt"]
    assert (tmp_path / "train" / "001.txt").read_text().startswith("; 0\n#####\n#@$.#\n#####\n\n; 1\n")
    assert read_file(tmp_path / "train") == levels
    assert read_boards(tmp_path / "train").shape == (2500, 3, 5)


def test_what_is_no_level_file_in_a_folder_is_passed_over(tmp_path):
    write(tmp_path, [Level.parse(ROOM)])
    (tmp_path / "README.md").write_text("# Not a board\n")
    assert len(read_file(tmp_path)) == 1


def test_the_number_is_the_title_or_the_place(tmp_path):
    write(
        tmp_path / "two.txt",
        [Level(Level.parse(ROOM).tokens, "17"), Level(Level.parse(ROOM).tokens, "seventeen")],
        format="boxoban",
    )
    assert [level.title for level in read_file(tmp_path / "two.txt")] == ["17", "1"]


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
    assert regular_boards(text.encode()) is None


def test_fast_reading_of_files_without_last_newline_and_from_windows():
    source = Source(io.BytesIO(b"\xef\xbb\xbf; 0\r\n###\r\n#@#"), "file")
    assert [boards.tolist() for boards in read_text_boards(source)] == [[[[0, 0, 0], [0, 2, 0]]]]


@pytest.mark.parametrize("chunk", [10, 40, 100, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fast_reading_in_chunks_of_any_size(monkeypatch, chunk, end):
    monkeypatch.setattr(regular, "_CHUNK_BYTES", chunk)
    levels = [Level(Level.parse(ROOM).tokens, str(i)) for i in range(30)]
    for last in ("", f"\n\nsome text\n\n{ROOM}\n"):
        data = (write_bytes("boxoban", levels).decode() + last).replace("\n", end).encode()
        boards = np.concatenate(list(read_text_boards(Source(io.BytesIO(data), "file"))))
        assert boards.tolist() == [level.tokens.tolist() for level in read_bytes(data)]


def test_after_a_regular_beginning_errors_still_name_the_line(monkeypatch, tmp_path):
    monkeypatch.setattr(regular, "_CHUNK_BYTES", 50)
    (tmp_path / "a.txt").write_text(f"; 1\n{ROOM}\n\n" * 10 + "; 2\n###\n#x#\n###\n")
    with pytest.warns(
        LevelFileWarning, match=r"a.txt, line 53, column 2: a level \('2'\) is skipped: 'x' is no tile"
    ):
        assert len(read_boards(tmp_path / "a.txt")) == 10
    (tmp_path / "a.txt").write_text(f"; 1\n{ROOM}\n\n" * 10 + "x" * 200_001)
    with pytest.raises(
        FileError, match=r"a.txt, line 51, column 200001: a line of more than 200000 characters"
    ):
        read_boards(tmp_path / "a.txt")


def test_files_of_two_sizes_are_no_batch(tmp_path):
    write(tmp_path / "a.txt", [Level.parse(ROOM)])
    write(tmp_path / "b.txt", [Level.parse("#@#")])
    with pytest.raises(FileError, match=r"b.txt: boards of 3x5 and of 1x3; expected one size"):
        read_boards(tmp_path)


def test_real_levels_come_back_to_the_byte(boxoban, tmp_path):
    source = boxoban / "medium" / "valid" / "000.txt"
    levels = read_file(source)
    write(tmp_path / "000.txt", levels, format="boxoban")
    assert (tmp_path / "000.txt").read_bytes() == source.read_bytes()
    assert [level.tokens.tolist() for level in levels] == read_boards(source).tolist()


def test_all_of_the_training_levels(boxoban):
    boards = read_boards(boxoban / "medium" / "train")
    assert boards.shape == (450_000, 10, 10)
    assert round(float((boards == 0).sum(axis=(1, 2)).mean()), 3) == 68.601
