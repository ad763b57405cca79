"""The one palette all animations share, so that a frame stores only the cells that changed."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor

from maskoban.boards.tiles import TILES
from maskoban.pictures import palette
from maskoban.pictures.surroundings import OUTSIDE
from maskoban.pictures.tileset import sprite

#: With one more for "unchanged", a pixel takes 7 bits.
COUNT = 127


@cache
def shared_colours() -> NDArray[np.uint8]:
    """The ``COUNT`` colours: every colour of ours as it is, then blends that occur along the tiles' edges.

    >>> shared_colours().shape
    (127, 3)
    """
    named = {ImageColor.getrgb(value)[:3] for name, value in vars(palette).items() if name.isupper()}
    tiles = [sprite(token, look, 24) for token in range(TILES + 1) for look in range(OUTSIDE)]
    atlas = Image.new("RGB", (24 * len(tiles), 24), palette.CARD)
    for i, each in enumerate(tiles):
        atlas.paste(each, (24 * i, 0), each)
    blends = atlas.quantize(COUNT - len(named), Image.Quantize.MEDIANCUT).getpalette() or []
    colours = np.array([*sorted(named), *zip(*[iter(blends)] * 3, strict=True)], np.uint8)
    return np.pad(colours, ((0, COUNT - len(colours)), (0, 0)))


@cache
def _nearest() -> NDArray[np.uint8]:
    """For the leading five bits of red, green and blue, the index of the nearest shared colour."""
    colours = shared_colours().astype(np.int32)
    level = np.arange(32, dtype=np.int32) * 8 + 4
    reds, greens, blues = ((level[:, None] - colours[:, channel]) ** 2 for channel in range(3))
    distance = reds[:, None, None] + greens[None, :, None] + blues[None, None, :]
    table: NDArray[np.uint8] = distance.argmin(axis=-1).astype(np.uint8)
    # A colour of ours stands for itself even where a blend lies nearer to the middle of its box.
    for index in reversed(range(COUNT)):
        red, green, blue = shared_colours()[index] >> 3
        table[red, green, blue] = index
    return table


def in_shared_colours(picture: Image.Image) -> Image.Image:
    """The picture, each pixel an index into ``shared_colours``.

    >>> flat = in_shared_colours(Image.new("RGB", (1, 1), palette.CRATE_PLANK))
    >>> flat.convert("RGB").getpixel((0, 0)) == ImageColor.getrgb(palette.CRATE_PLANK)
    True
    """
    red, green, blue = np.moveaxis(np.asarray(picture.convert("RGB")) >> 3, -1, 0)
    indexed = Image.fromarray(_nearest()[red, green, blue])
    indexed.putpalette(shared_colours().tobytes())
    return indexed
