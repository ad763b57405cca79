"""Captions in letters that the font has."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from maskoban.boards import Level
from maskoban.pictures import sheet, sheet_svg, solution_gif
from maskoban.pictures.lettering import LETTERS, font, spelled
from tests.pictures.boards import HOUSE, SOLVED_IN_TWO

MISSING = font(64).getmask("\uffff")


def test_no_letter_of_ours_is_drawn_as_a_box() -> None:
    assert bytes(font(64).getmask("ü")) == bytes(MISSING)  # or there would be no need of all this
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
def test_other_letters_are_drawn_by_their_nearest_likeness(text: str, drawn: str) -> None:
    assert spelled(text) == drawn
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
