"""Boards in a terminal."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from maskoban.boards import Level
from maskoban.pictures import board_text, palette, sheet_text
from tests.pictures.boards import HOUSE, SOLVED_IN_TWO


def test_a_terminal_gets_two_letters_a_cell_in_colour() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", no_color=False)
    text = board_text(HOUSE.tokens, console)
    rows = text.plain.split("\n")
    assert {len(row) for row in rows} == {18}
    assert rows[3] == "    []@@  ()??    "
    crate = next(span for span in text.spans if text.plain[span.start : span.end] == "[]")
    assert palette.CRATE_PLANK in str(crate.style)


def test_the_outside_has_no_colour() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", no_color=False)
    text = board_text(HOUSE.tokens, console)
    assert min(span.start for span in text.spans if span.style) == 6


def test_without_colours_there_are_plain_letters_that_can_be_read_back() -> None:
    for console in (
        Console(file=io.StringIO()),
        Console(file=io.StringIO(), force_terminal=True, no_color=True),
    ):
        for level in (HOUSE, Level.parse("#####\n-----\n#@$.#\n#####")):  # with a row of floor only
            assert Level.parse(board_text(level.tokens, console).plain) == level


def test_boards_stand_side_by_side_with_captions_wrapped_below() -> None:
    console = Console(file=io.StringIO(), width=51)
    captions = [Text("short"), Text("a caption that is longer than its board"), Text("last")]
    shown = sheet_text([SOLVED_IN_TWO.tokens] * 3, captions, console).plain
    assert shown.splitlines() == [
        "######                     ######",
        "#@$ .#                     #@$ .#",
        "######                     ######",
        "short                      a caption that is longer",
        "                           than its board",
        "",
        "######",
        "#@$ .#",
        "######",
        "last",
    ]


def test_the_right_wall_keeps_its_colour() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", no_color=False)
    text = sheet_text([SOLVED_IN_TWO.tokens], [Text("one")], console)
    assert text.plain.splitlines()[0] == " " * 12
    assert len([span for span in text.spans if span.end <= 12]) == 6
