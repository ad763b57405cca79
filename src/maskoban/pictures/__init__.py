"""Boards as pictures: PNG, SVG, animated GIF and coloured terminals, all from one tile set of our own."""

from .animation import check_animation, reveal_gif, side_by_side, solution_gif
from .board import Mark, board_image
from .saving import check_picture, save_picture
from .sheet import sheet
from .svg import board_svg, sheet_svg
from .terminal import board_text, sheet_text

__all__ = [
    "Mark",
    "board_image",
    "board_svg",
    "board_text",
    "check_animation",
    "check_picture",
    "reveal_gif",
    "save_picture",
    "sheet",
    "sheet_svg",
    "sheet_text",
    "side_by_side",
    "solution_gif",
]
