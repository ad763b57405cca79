"""Our own tile set: every tile as a few shapes in a unit square, told apart by form before colour.

Seen a little from the front: walls show a brick face to the room below them, and the floor there lies in
their shadow. Crates have a braced lid, finished crates a tick, goals a ring, the keeper a face and a hat,
and a cell nobody has drawn yet a star waiting on a slip of paper.
"""

from __future__ import annotations

from functools import lru_cache
from math import cos, pi, sin

from PIL import Image

from maskoban.boards.tiles import BOX, BOX_ON_GOAL, FLOOR, GOAL, MASK, PLAYER, PLAYER_ON_GOAL, WALL
from maskoban.pictures import palette
from maskoban.pictures.shapes import Oval, Polygon, Rect, Shape, Stroke, rendered
from maskoban.pictures.surroundings import AT_WALL, ROCK

_Shapes = tuple[Shape, ...]

# Below a wall: thin layers that end one after the other make a soft edge.
_SHADOWS = (0.05, 0.08, 0.11, 0.14, 0.17, 0.2)


def _wall_top() -> _Shapes:
    return (
        Rect(0, 0, 1, 1, palette.WALL_SEAM),
        Rect(0.03, 0.03, 0.94, 0.94, palette.WALL_EDGE, radius=0.09),
        Rect(0.03, 0.08, 0.94, 0.89, palette.WALL_TOP, radius=0.09),
    )


def _wall_face() -> _Shapes:
    def brick(x: float, y: float, width: float, fill: str) -> Rect:
        return Rect(x, y, width, 0.2, fill, radius=0.035)

    return (
        Rect(0, 0, 1, 1, palette.WALL_SEAM),
        Rect(0.03, 0.03, 0.94, 0.6, palette.WALL_EDGE, radius=0.09),
        Rect(0.03, 0.08, 0.94, 0.5, palette.WALL_TOP, radius=0.09),
        Rect(0, 0.5, 1, 0.5, palette.WALL_FACE),
        Rect(0, 0.47, 1, 0.045, palette.WALL_EDGE),
        brick(0.02, 0.54, 0.55, palette.WALL_BRICK),
        brick(0.61, 0.54, 0.37, palette.WALL_BRICK_LIGHT),
        brick(0.02, 0.77, 0.3, palette.WALL_BRICK_LIGHT),
        brick(0.36, 0.77, 0.62, palette.WALL_BRICK),
    )


def _rock() -> _Shapes:
    return (
        Rect(0, 0, 1, 1, palette.ROCK_SEAM),
        Rect(0.03, 0.03, 0.94, 0.94, palette.ROCK, radius=0.09),
    )


def _floor(shaded: bool) -> _Shapes:
    shapes: _Shapes = (
        Rect(0, 0, 1, 1, palette.FLOOR_SEAM),
        Rect(0.015, 0.015, 0.97, 0.97, palette.FLOOR_TILE, radius=0.05),
    )
    if shaded:
        shapes += tuple(Rect(0, 0, 1, depth, palette.SHADOW, opacity=0.05) for depth in _SHADOWS)
    return shapes


def _goal(radius: float) -> _Shapes:
    return (
        Oval(0.5, 0.5, radius, radius, palette.GOAL_MARK),
        Oval(0.5, 0.5, radius - 0.075, radius - 0.075, palette.GOAL_GLOW),
    )


def _crate(plank: str, grain: str, frame: str, dark: str) -> _Shapes:
    return (
        Rect(0.1, 0.14, 0.82, 0.82, palette.SHADOW, radius=0.1, opacity=0.22),
        Rect(0.08, 0.08, 0.84, 0.84, dark, radius=0.1),
        Rect(0.08, 0.08, 0.84, 0.79, frame, radius=0.1),
        Rect(0.19, 0.19, 0.62, 0.57, plank, radius=0.03),
        Rect(0.19, 0.365, 0.62, 0.03, grain),
        Rect(0.19, 0.555, 0.62, 0.03, grain),
    )


def _box() -> _Shapes:
    crate = _crate(palette.CRATE_PLANK, palette.CRATE_GRAIN, palette.CRATE_FRAME, palette.CRATE_DARK)
    return (
        *crate,
        Stroke(((0.225, 0.225), (0.775, 0.725)), 0.1, palette.CRATE_FRAME),
        Stroke(((0.775, 0.225), (0.225, 0.725)), 0.1, palette.CRATE_FRAME),
    )


def _box_on_goal() -> _Shapes:
    crate = _crate(palette.DONE_PLANK, palette.DONE_GRAIN, palette.DONE_FRAME, palette.DONE_DARK)
    return (*crate, Stroke(((0.33, 0.48), (0.455, 0.61), (0.69, 0.34)), 0.11, palette.DONE_TICK))


def _keeper() -> _Shapes:
    return (
        Oval(0.5, 0.9, 0.3, 0.07, palette.SHADOW, opacity=0.25),
        Rect(0.24, 0.56, 0.52, 0.34, palette.COAT_DARK, radius=0.17),
        Rect(0.24, 0.54, 0.52, 0.32, palette.COAT, radius=0.16),
        Oval(0.5, 0.43, 0.27, 0.25, palette.SKIN),
        Oval(0.4, 0.48, 0.042, 0.058, palette.EYE),
        Oval(0.6, 0.48, 0.042, 0.058, palette.EYE),
        Polygon(_cap(), palette.HAT),
        Rect(0.17, 0.305, 0.66, 0.085, palette.HAT_DARK, radius=0.042),
    )


def _cap() -> tuple[tuple[float, float], ...]:
    """The upper half of an ellipse: the dome of the hat."""
    return tuple((0.5 - 0.27 * cos(pi * step / 24), 0.34 - 0.25 * sin(pi * step / 24)) for step in range(25))


def _mask() -> _Shapes:
    def star(x: float, y: float, size: float) -> Polygon:
        waist = size * 0.28
        return Polygon(
            (
                (x, y - size),
                (x + waist, y - waist),
                (x + size, y),
                (x + waist, y + waist),
                (x, y + size),
                (x - waist, y + waist),
                (x - size, y),
                (x - waist, y - waist),
            ),
            palette.MASK_STAR,
        )

    return (
        Rect(0, 0, 1, 1, palette.MASK_PAPER),
        Rect(0.05, 0.05, 0.9, 0.9, palette.MASK_INSET, radius=0.16),
        star(0.5, 0.5, 0.17),
    )


def tile(token: int, look: int) -> tuple[Shape, ...]:
    """The shapes of one tile, back to front, in a cell that looks as ``surroundings.looks`` says.

    >>> tile(WALL, ROCK) == tile(WALL, AT_WALL)
    False
    """
    if token == WALL:
        return {AT_WALL: _wall_face, ROCK: _rock}.get(look, _wall_top)()
    if token == MASK:
        return _mask()
    standing: dict[int, _Shapes] = {
        FLOOR: (),
        GOAL: (*_goal(0.3), Oval(0.5, 0.5, 0.1, 0.1, palette.GOAL_MARK)),
        PLAYER: _keeper(),
        PLAYER_ON_GOAL: (*_goal(0.45), *_keeper()),
        BOX: _box(),
        BOX_ON_GOAL: _box_on_goal(),
    }
    return _floor(shaded=look == AT_WALL) + standing[token]


@lru_cache(maxsize=1024)
def sprite(token: int, look: int, cell: int) -> Image.Image:
    """The tile as a picture of ``cell`` by ``cell`` pixels, drawn once and kept: treat it as read-only."""
    return rendered(tile(token, look), cell)
