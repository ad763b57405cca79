"""Boards as pictures: PNG, SVG, animated GIF and coloured terminals, all from one tile set of our own."""

from .animation import reveal_gif, solution_gif
from .board import Mark, board_image
from .saving import save_picture, whole_file
from .sheet import sheet
from .svg import board_svg, sheet_svg
from .terminal import board_text

__all__ = [
    "Mark",
    "board_image",
    "board_svg",
    "board_text",
    "reveal_gif",
    "save_picture",
    "sheet",
    "sheet_svg",
    "solution_gif",
    "whole_file",
]
