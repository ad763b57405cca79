"""A level is a value: it says what it was given, and never changes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given

from maskoban.boards import FLOOR, SYMBOLS, Level
from maskoban.errors import FileError, MaskobanError

from .strategies import boards, levels


def test_every_tile_has_its_letter():
    level = Level.parse(SYMBOLS)
    assert level.tokens.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7]]


def test_floor_is_written_in_three_ways():
    assert Level.parse("# #\n#-#\n#_#").tokens[:, 1].tolist() == [FLOOR] * 3


def test_blank_lines_around_and_ragged_rows():
    level = Level.parse("\n   \n####\n#@\n####\n\n  ")
    assert level.shape == (3, 4)
    assert str(level) == "####\n#@\n####"


def test_a_blank_row_inside_is_floor():
    assert Level.parse("##\n\n##") == Level.parse("##\n--\n##")


def test_lines_of_windows():
    assert Level.parse("###\r\n#@#\r\n") == Level.parse("###\n#@#")


@pytest.mark.parametrize("rows", [["#@ ", "#  "], ["   ", "#@#", "   "], ["   "], [" @ "]])
def test_floor_at_the_edges_is_kept(rows):
    level = Level.parse("\n".join(row.replace(" ", "-") for row in rows))
    assert level.shape == (len(rows), 3)
    assert Level.parse(str(level)) == level


@given(boards())
def test_text_gives_the_same_board_back(tokens):
    level = Level(tokens)
    assert Level.parse(str(level)) == level
    assert not any(row.endswith(" ") for row in str(level).split("\n"))


@given(levels)
def test_equal_by_value_and_survives_pickling(level):
    copy = pickle.loads(pickle.dumps(level))
    assert copy == level
    assert hash(copy) == hash(level)
    assert not copy.tokens.flags.writeable


def test_different_by_value():
    level = Level.parse("#@$.#")
    assert level != Level.parse("#@.$#")
    assert level != Level(level.tokens, title="x")
    assert Level(np.zeros((2, 3), np.uint8)) != Level(np.zeros((3, 2), np.uint8))
    assert level != "#@$.#"


def test_the_board_is_a_copy_that_nobody_can_change():
    tokens = np.zeros((2, 2), np.uint8)
    level = Level(tokens)
    tokens[0, 0] = 3
    assert level.tokens[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        level.tokens[0, 0] = 1


def test_a_string_is_one_solution_and_not_one_for_each_letter():
    assert Level([[0]], solutions="RR") == Level([[0]], solutions=("RR",))


def test_blanks_around_text_and_empty_solutions_are_dropped():
    level = Level(np.zeros((1, 1), int), " a ", "\tb", "\n  c  \r\nd\n\n", ("", "rR"))
    assert (level.title, level.author, level.comment, level.solutions) == ("a", "b", "  c\nd", ("rR",))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Level([1, 2]),
            "a board is a two-dimensional array of whole numbers, not 1-dimensional int64",
        ),
        (
            lambda: Level([[0.5]]),
            "a board is a two-dimensional array of whole numbers, not 2-dimensional float64",
        ),
        (lambda: Level([[0, 1], [2]]), "a board is a two-dimensional array; its rows have different lengths"),
        (lambda: Level(np.zeros((201, 2), int)), "a board of 201x2; expected 1x1 to 200x200"),
        (lambda: Level(np.zeros((0, 2), int)), "a board of 0x2; expected 1x1 to 200x200"),
        (lambda: Level([[8]]), "a board holds tokens 0 to 7, not 8 to 8"),
        (lambda: Level([[-1, 0]]), "a board holds tokens 0 to 7, not -1 to 0"),
        (lambda: Level([[0]], title="a\nb"), "a level's title is one line, not 2"),
        (
            lambda: Level([[0]], comment="a\0"),
            "the control character U+0000 in a level's comment; expected text",
        ),
        (
            lambda: Level([[0]], author="\ud800"),
            "the control character U+D800 in a level's author; expected text",
        ),
        (
            lambda: Level([[0]], title="a" * 100_001),
            "a level's title of 100001 characters; expected at most 100000",
        ),
        (
            lambda: Level([[0]], solutions=("rx",)),
            "'x' is no move (step 2 of a solution); expected one of lurdLURD",
        ),
        (
            lambda: Level([[0]], solutions=("r" * 100_001,)),
            "a solution of 100001 moves; expected at most 100000",
        ),
        (lambda: Level([[0]], solutions=("r",) * 21), "21 solutions of one level; expected at most 20"),
        (lambda: Level([[0]], title=None), "a level's title is text, not NoneType"),
        (lambda: Level([[0]], comment=b"a"), "a level's comment is text, not bytes"),
        (lambda: Level([[0]], solutions=(7,)), "a level's solution is text, not int"),
        (lambda: Level([[0]], solutions=None), "a level's solutions are strings of moves, not NoneType"),
    ],
)
def test_what_is_no_level_says_why(make, sentence):
    with pytest.raises(MaskobanError) as caught:
        make()
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "board, line 1: an empty board; expected rows of # @ $ . * + and floor"),
        (
            "\n###\n#x#",
            "board, line 3, column 2: 'x' is no tile; expected one of # @ $ . * + ? or floor (space, - or _)",
        ),
        (
            "###\n#\t#",
            "board, line 2, column 2: a tab inside a board, whose width is unknown; expected spaces, - or _",
        ),
        ("#" * 201, "board, line 1, column 201: a row of 201 cells; expected at most 200"),
        ("#\n" * 201, "board, line 201: a board of more than 200 rows; expected at most 200"),
    ],
)
def test_text_that_is_no_board_says_where(text, sentence):
    with pytest.raises(FileError) as caught:
        Level.parse(text)
    assert str(caught.value) == sentence
