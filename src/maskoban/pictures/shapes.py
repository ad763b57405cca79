"""The few shapes all tiles are made of, each drawn by Pillow and written as SVG.

A tile is described once, as a tuple of shapes in a unit square with y pointing down, and both kinds of
picture come from that description: they cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageColor, ImageDraw

#: Sprites are drawn this many times too large and then averaged, which is what smooths their edges.
SUPERSAMPLING = 8

Point = tuple[float, float]


def _paint(fill: str, opacity: float) -> tuple[int, int, int, int]:
    red, green, blue = ImageColor.getrgb(fill)[:3]
    return red, green, blue, round(255 * opacity)


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _fill(fill: str, opacity: float) -> str:
    return f'fill="{fill}"' + ("" if opacity == 1 else f' fill-opacity="{_number(opacity)}"')


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
        # Pillow counts the last pixel in, hence the -1.
        right, bottom = (self.x + self.width) * side - 1, (self.y + self.height) * side - 1
        box = (self.x * side, self.y * side, right, bottom)
        on.rounded_rectangle(box, self.radius * side, _paint(self.fill, self.opacity))

    def svg(self) -> str:
        x, y, width, height = map(_number, (self.x, self.y, self.width, self.height))
        rounded = f' rx="{_number(self.radius)}"' if self.radius else ""
        paint = _fill(self.fill, self.opacity)
        return f'<rect x="{x}" y="{y}" width="{width}" height="{height}"{rounded} {paint}/>'


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
        on.ellipse((left, top, right, bottom), _paint(self.fill, self.opacity))

    def svg(self) -> str:
        x, y, rx, ry = map(_number, (self.x, self.y, self.rx, self.ry))
        return f'<ellipse cx="{x}" cy="{y}" rx="{rx}" ry="{ry}" {_fill(self.fill, self.opacity)}/>'


@dataclass(frozen=True)
class Polygon:
    """A filled polygon."""

    points: tuple[Point, ...]
    fill: str
    opacity: float = 1.0

    def draw(self, on: ImageDraw.ImageDraw, side: int) -> None:
        on.polygon([(x * side, y * side) for x, y in self.points], _paint(self.fill, self.opacity))

    def svg(self) -> str:
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in self.points)
        return f'<polygon points="{points}" {_fill(self.fill, self.opacity)}/>'


@dataclass(frozen=True)
class Stroke:
    """A line of round ends and joints through the points."""

    points: tuple[Point, ...]
    width: float
    fill: str

    def draw(self, on: ImageDraw.ImageDraw, side: int) -> None:
        paint, half = _paint(self.fill, 1), self.width * side / 2
        scaled = [(x * side, y * side) for x, y in self.points]
        on.line(scaled, paint, round(self.width * side))
        for x, y in scaled:
            on.ellipse((x - half, y - half, x + half, y + half), paint)

    def svg(self) -> str:
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in self.points)
        round_line = 'stroke-linecap="round" stroke-linejoin="round"'
        width = _number(self.width)
        line = f'fill="none" stroke="{self.fill}" stroke-width="{width}" {round_line}'
        return f'<polyline points="{points}" {line}/>'


Shape = Rect | Oval | Polygon | Stroke


def rendered(shapes: Sequence[Shape], side: int) -> Image.Image:
    """The shapes, back to front, as a transparent picture of ``side`` by ``side`` pixels.

    >>> rendered([Rect(0, 0, 1, 1, "#ff0000")], 4).getpixel((2, 2))
    (255, 0, 0, 255)
    """
    large = side * SUPERSAMPLING
    picture = Image.new("RGBA", (large, large))
    for shape in shapes:
        # A layer each: drawing on the picture itself would replace what is below instead of tinting it.
        layer = Image.new("RGBA", (large, large))
        shape.draw(ImageDraw.Draw(layer), large)
        picture.alpha_composite(layer)
    return picture.reduce(SUPERSAMPLING)


def svg(shapes: Sequence[Shape]) -> str:
    """The shapes, back to front, as SVG elements in unit coordinates.

    >>> svg([Rect(0, 0, 1, 1, "#ff0000")])
    '<rect x="0" y="0" width="1" height="1" fill="#ff0000"/>'
    """
    return "".join(shape.svg() for shape in shapes)
