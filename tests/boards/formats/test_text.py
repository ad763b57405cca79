"""Text files as people really keep them."""

from __future__ import annotations

import io

import pytest

from maskoban.boards import Level
from maskoban.boards.formats.text import read_text
from maskoban.boards.formats.xsb import write_sok, write_xsb

ROOM = "#####\n#@$.#\n#####"
HALL = "######\n#@ $.#\n######"


def read(text, encoding="utf-8"):
    return list(read_text(io.BytesIO(text.encode(encoding)), "file"))


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
    first, second = read(f";Copyright: me\n;Free to play.\n;\n;M001.XSB\n{ROOM}\n\n\n;M002.XSB\n{HALL}")
    assert (first.title, second.title) == ("M001.XSB", "M002.XSB")
    assert first.comment == "Copyright: me\nFree to play."


def test_a_block_right_above_begins_with_the_title():
    first, second = read(f"{ROOM}\n\nThe hall\nAuthor: Ann\nlonger than the room\n{HALL}")
    assert first.comment == ""
    assert (second.title, second.author, second.comment) == ("The hall", "Ann", "longer than the room")


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
        "Collection: Two rooms\n\nTitle: not a second title\nA note about it.\n\nAnother note.\n"
        "    Between these\n#####\n\nanything goes.\n\nSaved game\nr",
        ("R",),
    )
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


def test_a_board_without_a_wall_needs_a_player_or_bars():
    assert [level.shape for level in read("@$.")] == [(1, 3)]
    assert [level.shape for level in read(".$*|---|")] == [(2, 3)]
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
    write_xsb(xsb := io.BytesIO(), [level, level])
    text = (
        f"; First steps\n{ROOM}\n; Author: Ann\n"
        "; Comment:\n; Push\n;\n; once.\n; Comment-End:\n; Solution\n; R\n"
    )
    assert xsb.getvalue().decode() == f"{text}\n{text}"
    write_sok(sok := io.BytesIO(), [level])
    assert sok.getvalue().decode() == (
        f"First steps\n{ROOM}\n\nAuthor: Ann\nComment:\nPush\n\nonce.\nComment-End:\nSolution\nR\n"
    )
