"""Boards as pictures: PNG, SVG, animated GIF and coloured terminals, all from one tile set."""

from maskoban.pictures.gif import check_animation, reveal_gif, side_by_side, solution_gif
from maskoban.pictures.layout import Mark
from maskoban.pictures.raster import board_image, check_picture, save_picture, sheet
from maskoban.pictures.svg import board_svg, sheet_svg
from maskoban.pictures.terminal import board_text, sheet_text

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
