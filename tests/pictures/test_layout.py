"""The places on a sheet, and captions in letters that the font has."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from maskoban.boards import Level
from maskoban.pictures import sheet, sheet_svg, solution_gif
from maskoban.pictures.layout import LETTERS, Layout, font, transliterate
from tests.pictures.boards import HOUSE, SOLVED_IN_TWO

BOARDS = [HOUSE.tokens, SOLVED_IN_TWO.tokens, HOUSE.tokens]


def test_cards_fill_rows_from_the_left() -> None:
    layout = Layout(BOARDS, columns=2)
    (left, top, right, _), second, third = (layout.card(i) for i in range(3))
    assert second[0] > right
    assert second[1] == top
    assert third[0] == left
    assert third[1] > top


def test_a_sheet_is_about_as_wide_as_high_by_default() -> None:
    assert [Layout([HOUSE.tokens] * n).columns for n in (1, 2, 4, 9, 10)] == [1, 2, 2, 3, 4]
    assert Layout(BOARDS, columns=7).columns == 3


def test_a_caption_too_long_for_its_card_is_cut() -> None:
    ((line, _),) = Layout([SOLVED_IN_TWO.tokens], ["long " * 40]).caption(0)
    assert line.startswith("long long")
    assert line.endswith("...")
    assert len(line) < 60


def test_one_tile_makes_a_sheet() -> None:
    assert sheet([Level.parse("@").tokens], cell=8).width > 8


MISSING = font(64).getmask("\uffff")


def test_no_listed_letter_is_drawn_as_a_box() -> None:
    assert bytes(font(64).getmask("ü")) == bytes(MISSING)  # the reason for transliteration
    for letter in LETTERS:
        assert bytes(font(64).getmask(letter)) != bytes(MISSING), letter


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("plain ASCII, 100 %", "plain ASCII, 100 %"),
        ("Für Élise – Größe", "Fur Elise - Grosse"),
        ("nai\u0308ve", "naive"),  # the accent as a character of its own
        ("Łódź, Ærø, Þórr, Ǿ", "Lodz, AEro, Thorr, O"),
        ("“it’s” «so»…", "“it’s” «so»…"),  # these it has
        ("„unten“ ‚so‘", "”unten“ ’so‘"),
        ("a\u00a0b\tc", "a b c"),
        ("½ × 3²", "1⁄2 x 32"),
        ("箱入り娘", "????"),
        ("한글 👍🏽 ok", "?? ?? ok"),
        ("so\u00adft\u200bly", "softly"),
        ("\x07", "?"),
    ],
)
def test_other_letters_are_drawn_by_their_nearest_equivalent(text: str, drawn: str) -> None:
    assert transliterate(text) == drawn
    assert LETTERS.issuperset(drawn)


def test_a_title_with_accents_is_readable_on_a_sheet_and_in_an_animation(tmp_path: Path) -> None:
    title, plain = "Für Élise – Größe", "Fur Elise - Grosse"
    assert sheet([HOUSE.tokens], [title]).tobytes() == sheet([HOUSE.tokens], [plain]).tobytes()
    for name in (title, plain):
        solution_gif(Level(SOLVED_IN_TWO.tokens, title=name), "RR", tmp_path / f"{name}.gif")
    with Image.open(tmp_path / f"{title}.gif") as accented, Image.open(tmp_path / f"{plain}.gif") as bare:
        assert accented.convert("RGB").tobytes() == bare.convert("RGB").tobytes()


def test_an_svg_has_the_title_as_it_is() -> None:
    assert ">Für Élise – Größe<" in sheet_svg([HOUSE.tokens], ["Für Élise – Größe"])
