"""An animated GIF written frame by frame: one frame is in memory at a time, and only what changed is stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image

from maskoban.pictures.colours import COUNT, shared_colours

#: A picture whose pixels are indices into the shared colours.
Indexed = NDArray[np.uint8]

#: The colour after ours means "as before", and a frame stays for the next one to be drawn upon.
_AS_BEFORE, _STAYS = COUNT, 1


def write_gif(out: BinaryIO, frames: Iterable[tuple[Indexed, int]]) -> None:
    """Write frames of one size, each shown for so many milliseconds, in a loop without end.

    An array may be drawn upon and given again: each is done with when the next one is asked for.

    >>> import io
    >>> pixels = np.zeros((2, 2), np.uint8)
    >>> write_gif(out := io.BytesIO(), [(pixels, 100), (pixels + 1, 200)])
    >>> Image.open(out).n_frames
    2
    """
    before: Indexed | None = None
    for pixels, milliseconds in frames:
        how = {"duration": milliseconds, "disposal": _STAYS}
        if before is None:
            out.write(_header(*pixels.shape))
            top, left, part = 0, 0, pixels
        else:
            top, left, part = _change(before, pixels)
            how["transparency"] = _AS_BEFORE
        out.writelines(GifImagePlugin.getdata(Image.fromarray(part), (left, top), **how))
        before = pixels.copy()
    out.write(b";")


def _change(before: Indexed, now: Indexed) -> tuple[int, int, Indexed]:
    """Top, left and pixels of the smallest part that holds every pixel that is new; at least one pixel."""
    new = before != now
    rows, columns = np.flatnonzero(new.any(axis=1)), np.flatnonzero(new.any(axis=0))
    if not len(rows):
        return 0, 0, now[:1, :1]
    part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return int(rows[0]), int(columns[0]), np.where(new[part], now[part], np.uint8(_AS_BEFORE))


def _header(height: int, width: int) -> bytes:
    """The size, the table of 128 colours that all frames share, and the wish to be played for ever."""
    size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    colours = shared_colours().tobytes() + bytes(3)
    return b"GIF89a" + size + b"\xf6\0\0" + colours + b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
