"""The tile set: every tile as a few shapes in a unit square, distinct by form before colour.

Each tile is described once, as shapes with y pointing down, and both pixels and SVG come from that description.
Tiles are seen a little from the front: walls show a brick face to the room below them, and the floor there lies in
their shadow. Crates have a braced lid, finished crates a tick, goals a ring, the keeper a face and a hat, and
masked cells a star.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw

from maskoban.boards.geometry import Cells, exterior
from maskoban.boards.tiles import BOX, BOX_ON_GOAL, FLOOR, GOAL, MASK, PLAYER, PLAYER_ON_GOAL, WALL, Tokens
from maskoban.pictures import palette

#: Shapes are drawn this many times too large and then averaged, which smooths their edges.
SUPERSAMPLING = 8

#: How a cell is drawn beyond its token: nothing special, a wall above a room or the floor below a wall,
#: a wall with no room on any side, and floor outside the board, which is not drawn at all.
PLAIN, AT_WALL, ROCK, OUTSIDE = range(4)

Point = tuple[float, float]


@dataclass(frozen=True)
class Rect:
    """A rectangle from (x, y), with corners rounded by ``radius``."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    radius: float = 0.0
    opacity: float = 1.0

    def draw(self, on: ImageDraw.ImageDraw, side: int) -> None:
        # Pillow includes the last pixel, hence the -1.
        right, bottom = (self.x + self.width) * side - 1, (self.y + self.height) * side - 1
        box = (self.x * side, self.y * side, right, bottom)
        on.rounded_rectangle(box, self.radius * side, _colour(self.fill, self.opacity))

    def svg(self) -> str:
        x, y, width, height = map(_number, (self.x, self.y, self.width, self.height))
        rounded = f' rx="{_number(self.radius)}"' if self.radius else ""
        fill = _fill(self.fill, self.opacity)
        return f'<rect x="{x}" y="{y}" width="{width}" height="{height}"{rounded} {fill}/>'


@dataclass(frozen=True)
class Oval:
    """An ellipse around (x, y)."""

    x: float
    y: float
    rx: float
    ry: float
    fill: str
    opacity: float = 1.0

    def draw(self, on: ImageDraw.ImageDraw, side: int) -> None:
        left, top = (self.x - self.rx) * side, (self.y - self.ry) * side
        right, bottom = (self.x + self.rx) * side - 1, (self.y + self.ry) * side - 1
        on.ellipse((left, top, right, bottom), _colour(self.fill, self.opacity))

    def svg(self) -> str:
        x, y, rx, ry = map(_number, (self.x, self.y, self.rx, self.ry))
        return f'<ellipse cx="{x}" cy="{y}" rx="{rx}" ry="{ry}" {_fill(self.fill, self.opacity)}/>'


@dataclass(frozen=True)
class Polygon:
    """A filled polygon."""

    points: tuple[Point, ...]
    fill: str

    def draw(self, on: ImageDraw.ImageDraw, side: int) -> None:
        on.polygon([(x * side, y * side) for x, y in self.points], _colour(self.fill))

    def svg(self) -> str:
        return f'<polygon points="{_points(self.points)}" {_fill(self.fill)}/>'


@dataclass(frozen=True)
class Stroke:
    """A line through the points, with round ends and joints."""

    points: tuple[Point, ...]
    width: float
    fill: str

    def draw(self, on: ImageDraw.ImageDraw, side: int) -> None:
        colour, half = _colour(self.fill), self.width * side / 2
        scaled = [(x * side, y * side) for x, y in self.points]
        on.line(scaled, colour, round(self.width * side))
        for x, y in scaled:
            on.ellipse((x - half, y - half, x + half, y + half), colour)

    def svg(self) -> str:
        line = f'fill="none" stroke="{self.fill}" stroke-width="{_number(self.width)}"'
        return f'<polyline points="{_points(self.points)}" {line} stroke-linecap="round" stroke-linejoin="round"/>'


Shape = Rect | Oval | Polygon | Stroke
Shapes = tuple[Shape, ...]


def _colour(fill: str, opacity: float = 1) -> tuple[int, int, int, int]:
    red, green, blue = ImageColor.getrgb(fill)[:3]
    return red, green, blue, round(255 * opacity)


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _fill(fill: str, opacity: float = 1) -> str:
    return f'fill="{fill}"' + ("" if opacity == 1 else f' fill-opacity="{_number(opacity)}"')


def render(shapes: Sequence[Shape], side: int) -> Image.Image:
    """The shapes, back to front, as a transparent picture of ``side`` by ``side`` pixels.

    >>> render([Rect(0, 0, 1, 1, "#ff0000")], 4).getpixel((2, 2))
    (255, 0, 0, 255)
    """
    large = side * SUPERSAMPLING
    picture = Image.new("RGBA", (large, large))
    for shape in shapes:
        # One layer per shape: drawing on the picture itself would replace what is below instead of tinting it.
        layer = Image.new("RGBA", (large, large))
        shape.draw(ImageDraw.Draw(layer), large)
        picture.alpha_composite(layer)
    return picture.reduce(SUPERSAMPLING)


def shapes_svg(shapes: Sequence[Shape]) -> str:
    """The shapes, back to front, as SVG elements in unit coordinates.

    >>> shapes_svg([Rect(0, 0, 1, 1, "#ff0000")])
    '<rect x="0" y="0" width="1" height="1" fill="#ff0000"/>'
    """
    return "".join(shape.svg() for shape in shapes)


def looks(tokens: Tokens) -> NDArray[np.uint8]:
    """PLAIN, AT_WALL, ROCK or OUTSIDE for every cell, from what lies around it.

    >>> looks(np.array([[0, 0, 0], [0, 2, 0], [0, 0, 0]], np.uint8)).tolist()
    [[0, 1, 0], [0, 1, 0], [0, 0, 0]]
    """
    wall, outside = tokens == WALL, exterior(tokens)
    room = ~wall & ~outside
    result = np.full(tokens.shape, PLAIN, np.uint8)
    result[:-1][wall[:-1] & room[1:]] = AT_WALL
    result[1:][room[1:] & wall[:-1]] = AT_WALL
    result[wall & ~_spread(room)] = ROCK
    result[outside] = OUTSIDE
    return result


def _spread(cells: Cells) -> Cells:
    """These cells and their eight neighbours."""
    across = cells.copy()
    across[:, 1:] |= cells[:, :-1]
    across[:, :-1] |= cells[:, 1:]
    found = across.copy()
    found[1:] |= across[:-1]
    found[:-1] |= across[1:]
    return found


def _brick(x: float, y: float, width: float, fill: str) -> Rect:
    return Rect(x, y, width, 0.2, fill, radius=0.035)


_WALL_TOP: Shapes = (
    Rect(0, 0, 1, 1, palette.WALL_SEAM),
    Rect(0.03, 0.03, 0.94, 0.94, palette.WALL_EDGE, radius=0.09),
    Rect(0.03, 0.08, 0.94, 0.89, palette.WALL_TOP, radius=0.09),
)
_WALL_FACE: Shapes = (
    Rect(0, 0, 1, 1, palette.WALL_SEAM),
    Rect(0.03, 0.03, 0.94, 0.6, palette.WALL_EDGE, radius=0.09),
    Rect(0.03, 0.08, 0.94, 0.5, palette.WALL_TOP, radius=0.09),
    Rect(0, 0.5, 1, 0.5, palette.WALL_FACE),
    Rect(0, 0.47, 1, 0.045, palette.WALL_EDGE),
    _brick(0.02, 0.54, 0.55, palette.WALL_BRICK),
    _brick(0.61, 0.54, 0.37, palette.WALL_BRICK_LIGHT),
    _brick(0.02, 0.77, 0.3, palette.WALL_BRICK_LIGHT),
    _brick(0.36, 0.77, 0.62, palette.WALL_BRICK),
)
_ROCK: Shapes = (Rect(0, 0, 1, 1, palette.ROCK_SEAM), Rect(0.03, 0.03, 0.94, 0.94, palette.ROCK, radius=0.09))
_FLOOR: Shapes = (
    Rect(0, 0, 1, 1, palette.FLOOR_SEAM),
    Rect(0.015, 0.015, 0.97, 0.97, palette.FLOOR_TILE, radius=0.05),
)
# Below a wall: thin layers that end one after the other make a soft edge.
_SHADOW: Shapes = tuple(
    Rect(0, 0, 1, depth, palette.SHADOW, opacity=0.05) for depth in (0.05, 0.08, 0.11, 0.14, 0.17, 0.2)
)


def _goal(radius: float) -> Shapes:
    return (
        Oval(0.5, 0.5, radius, radius, palette.GOAL_MARK),
        Oval(0.5, 0.5, radius - 0.075, radius - 0.075, palette.GOAL_GLOW),
    )


def _crate(plank: str, grain: str, frame: str, dark: str) -> Shapes:
    return (
        Rect(0.1, 0.14, 0.82, 0.82, palette.SHADOW, radius=0.1, opacity=0.22),
        Rect(0.08, 0.08, 0.84, 0.84, dark, radius=0.1),
        Rect(0.08, 0.08, 0.84, 0.79, frame, radius=0.1),
        Rect(0.19, 0.19, 0.62, 0.57, plank, radius=0.03),
        Rect(0.19, 0.365, 0.62, 0.03, grain),
        Rect(0.19, 0.555, 0.62, 0.03, grain),
    )


_BOX: Shapes = (
    *_crate(palette.CRATE_PLANK, palette.CRATE_GRAIN, palette.CRATE_FRAME, palette.CRATE_DARK),
    Stroke(((0.225, 0.225), (0.775, 0.725)), 0.1, palette.CRATE_FRAME),
    Stroke(((0.775, 0.225), (0.225, 0.725)), 0.1, palette.CRATE_FRAME),
)
_BOX_ON_GOAL: Shapes = (
    *_crate(palette.DONE_PLANK, palette.DONE_GRAIN, palette.DONE_FRAME, palette.DONE_DARK),
    Stroke(((0.33, 0.48), (0.455, 0.61), (0.69, 0.34)), 0.11, palette.DONE_TICK),
)
# The upper half of an ellipse: the dome of the hat.
_DOME = tuple((0.5 - 0.27 * cos(pi * step / 24), 0.34 - 0.25 * sin(pi * step / 24)) for step in range(25))
_KEEPER: Shapes = (
    Oval(0.5, 0.9, 0.3, 0.07, palette.SHADOW, opacity=0.25),
    Rect(0.24, 0.56, 0.52, 0.34, palette.COAT_DARK, radius=0.17),
    Rect(0.24, 0.54, 0.52, 0.32, palette.COAT, radius=0.16),
    Oval(0.5, 0.43, 0.27, 0.25, palette.SKIN),
    Oval(0.4, 0.48, 0.042, 0.058, palette.EYE),
    Oval(0.6, 0.48, 0.042, 0.058, palette.EYE),
    Polygon(_DOME, palette.HAT),
    Rect(0.17, 0.305, 0.66, 0.085, palette.HAT_DARK, radius=0.042),
)
# Eight points around the middle: tips 0.17 away, and waists of 0.28 of that between them.
_TIP, _WAIST = 0.17, 0.17 * 0.28
_STAR = [(0, -_TIP), (_WAIST, -_WAIST), (_TIP, 0), (_WAIST, _WAIST)]
_MASK: Shapes = (
    Rect(0, 0, 1, 1, palette.MASK_PAPER),
    Rect(0.05, 0.05, 0.9, 0.9, palette.MASK_INSET, radius=0.16),
    Polygon(tuple((0.5 + s * x, 0.5 + s * y) for s in (1, -1) for x, y in _STAR), palette.MASK_STAR),
)
_ON_FLOOR: dict[int, Shapes] = {
    FLOOR: (),
    GOAL: (*_goal(0.3), Oval(0.5, 0.5, 0.1, 0.1, palette.GOAL_MARK)),
    PLAYER: _KEEPER,
    PLAYER_ON_GOAL: (*_goal(0.45), *_KEEPER),
    BOX: _BOX,
    BOX_ON_GOAL: _BOX_ON_GOAL,
}


def tile(token: int, look: int) -> Shapes:
    """The shapes of one tile, back to front, in a cell of this look.

    >>> tile(WALL, ROCK) == tile(WALL, AT_WALL)
    False
    """
    if token == WALL:
        return {AT_WALL: _WALL_FACE, ROCK: _ROCK}.get(look, _WALL_TOP)
    if token == MASK:
        return _MASK
    return _FLOOR + (_SHADOW if look == AT_WALL else ()) + _ON_FLOOR[token]


@lru_cache(maxsize=1024)
def sprite(token: int, look: int, cell: int) -> Image.Image:
    """The tile as a picture of ``cell`` by ``cell`` pixels, cached: treat it as read-only."""
    return render(tile(token, look), cell)
