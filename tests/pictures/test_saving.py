"""Pictures reach their file whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maskoban.boards import MaskobanError
from maskoban.pictures import board_svg, check_animation, check_picture, save_picture, sheet
from tests.pictures.boards import HOUSE, SOLVED_IN_TWO


def test_one_board_is_saved_alone_and_several_on_a_sheet(tmp_path: Path) -> None:
    save_picture(tmp_path / "one.png", [HOUSE.tokens])
    save_picture(tmp_path / "two.png", [HOUSE.tokens, SOLVED_IN_TWO.tokens], ["a", "b"])
    with Image.open(tmp_path / "one.png") as one, Image.open(tmp_path / "two.png") as two:
        assert one.size == (9 * 32, 6 * 32)
        assert two.size == sheet([HOUSE.tokens, SOLVED_IN_TWO.tokens], ["a", "b"]).size


def test_the_ending_chooses_svg(tmp_path: Path) -> None:
    save_picture(tmp_path / "one.SVG", [HOUSE.tokens])
    assert (tmp_path / "one.SVG").read_text() == board_svg(HOUSE.tokens)


def test_cells_shrink_where_a_sheet_would_be_too_large_to_open(tmp_path: Path) -> None:
    save_picture(tmp_path / "many.svg", [np.zeros((10, 10), np.uint8)] * 900)
    assert "scale(24)" in (tmp_path / "many.svg").read_text()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("board.jpg", "which kind of picture? expected a name that ends with .png or .svg"),
        ("nowhere/board.png", "cannot be written: No such file or directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(MaskobanError) as raised:
        save_picture(tmp_path / name, [HOUSE.tokens])
    assert str(raised.value) == f"{tmp_path / name}: {sentence}"


def test_the_name_and_the_place_can_be_checked_before_any_work(tmp_path: Path) -> None:
    check_picture(tmp_path / "board.png")
    check_animation(tmp_path / "board.gif")
    for check, name in [(check_picture, "board.gif"), (check_animation, "board.png")]:
        with pytest.raises(MaskobanError, match="expected a name that ends with"):
            check(tmp_path / name)
        with pytest.raises(MaskobanError, match="cannot be written: No such file or directory"):
            check(tmp_path / "nowhere" / Path(name).with_suffix(".svg" if check is check_picture else ".gif"))
    assert list(tmp_path.iterdir()) == []
