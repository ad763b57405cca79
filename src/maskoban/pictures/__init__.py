"""Boards as pictures: PNG, SVG, animated GIF and coloured terminals, all from one tile set."""

from maskoban.pictures.gif import (
    check_animation as check_animation,
    reveal_gif as reveal_gif,
    side_by_side as side_by_side,
    solution_gif as solution_gif,
)
from maskoban.pictures.layout import Mark as Mark
from maskoban.pictures.raster import (
    board_image as board_image,
    check_picture as check_picture,
    save_picture as save_picture,
    sheet as sheet,
)
from maskoban.pictures.svg import board_svg as board_svg, sheet_svg as sheet_svg
from maskoban.pictures.terminal import board_text as board_text, sheet_text as sheet_text
