"""Animated GIFs: a solution played step by step, and boards unmasked cell by cell.

One frame is in memory at a time, all frames share one palette, and a frame stores only what changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image, ImageColor

from maskoban._util.files import atomic_file, check_can_write
from maskoban._util.progress import OnProgress
from maskoban.boards import Level
from maskoban.boards.tiles import TILES, Tokens
from maskoban.errors import MaskobanError
from maskoban.pictures import palette
from maskoban.pictures.layout import Layout, Mark
from maskoban.pictures.raster import mark_sprite, sheet
from maskoban.pictures.tileset import OUTSIDE, looks, sprite
from maskoban.solving.replay import play

#: Pixels along the longer side of a board whose solution is played, roughly.
LONGEST_SIDE = 1024

#: Milliseconds: the first frame, a step, a push, and the last frame of a solution.
START, WALK, PUSH, END = 800, 80, 130, 3000

#: Milliseconds of an unmasking: a step at most and at least, all steps together, and the captions.
REVEAL, FASTEST, ALL_STEPS, CAPTIONS = 70, 20, 5000, 4000

#: Colours of the shared palette; with one more for "unchanged" a pixel takes 7 bits.
COLOURS = 127
_UNCHANGED = COLOURS
_KEEP_FRAME = 1  # the GIF disposal method: the next frame is drawn over this one

#: A picture whose pixels are indices into the shared palette.
Indexed = NDArray[np.uint8]


def check_animation(path: str | Path) -> None:
    """Raise before any work what saving an animation would raise about the name or the folder.

    >>> check_animation("drawn.mp4")
    Traceback (most recent call last):
        ...
    maskoban.errors.MaskobanError: drawn.mp4: expected a name that ends with .gif
    """
    if Path(path).suffix.lower() != ".gif":
        raise MaskobanError(f"{path}: expected a name that ends with .gif")
    check_can_write(path)


def solution_gif(
    level: Level, lurd: str, path: str | Path, cell: int | None = None, on_progress: OnProgress | None = None
) -> None:
    """Save the level being solved by the steps of ``lurd``, one frame a step, above a progress bar.

    By default, cells are as large as fits into about 1,024 pixels, and at most 32.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     solution_gif(Level.parse("#####\\n#@$.#\\n#####"), "R", folder + "/solved.gif")
    ...     Image.open(folder + "/solved.gif").n_frames
    2
    """
    size = cell or max(8, min(32, LONGEST_SIDE // max(level.shape)))
    times = [START, *(PUSH if step.isupper() else WALK for step in lurd)]
    times[-1] = END

    def frames() -> Iterator[tuple[Indexed, int]]:
        canvas = Canvas([level.tokens], [level.title] if level.title else None, cell=size)
        bar = canvas.pixels[-max(2, size // 8) :]
        colour = np.array(quantize(Image.new("RGB", (1, 1), palette.DONE_PLANK)))
        level_looks = [looks(level.tokens)]  # walls stay, so the looks stay too
        for step, (position, time) in enumerate(zip(play(level, lurd), times, strict=True)):
            canvas.show([position], board_looks=level_looks)
            bar[:, : round(bar.shape[1] * step / max(1, len(lurd)))] = colour
            yield canvas.pixels, time
            if on_progress is not None:
                on_progress(step + 1, len(times))

    _save(frames(), path)


def reveal_gif(
    frames: Tokens,
    path: str | Path,
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    cell: int = 24,
) -> None:
    """Save boards being unmasked, from a trajectory of tokens (frames, n, height, width).

    Cells that changed since the frame before are outlined; captions appear under the finished boards. Frames
    without a change are left out, because a Gibbs sweep mostly redraws the same tiles.

    >>> import tempfile
    >>> frames = np.array([[[[7, 7]]], [[[7, 1]]], [[[2, 1]]]], np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reveal_gif(frames, folder + "/drawn.gif")
    ...     Image.open(folder + "/drawn.gif").n_frames
    4
    """
    if frames.ndim != 4 or not frames.size:
        raise MaskobanError(
            f"a trajectory has frames, boards, rows and columns, but this one has shape {frames.shape}"
        )
    changed = np.any(frames[1:] != frames[:-1], axis=(1, 2, 3))
    frames = frames[np.concatenate([[True], changed])]
    # The captions have their space from the start, so that nothing moves when they appear.
    blank = None if captions is None else ["\n" * len(caption.splitlines()) for caption in captions]

    def pictures() -> Iterator[Indexed]:
        canvas = Canvas(list(frames[0]), blank, columns, cell)
        yield canvas.pixels
        for before, now in pairwise(frames):
            canvas.show(list(now), marked=list(now != before))
            yield canvas.pixels
        yield np.array(quantize(sheet(list(frames[-1]), captions, columns, cell)))

    steps = len(frames) - 1
    step = min(REVEAL, max(FASTEST, ALL_STEPS // max(1, steps) // 10 * 10))  # a GIF counts in hundredths
    _save(zip(pictures(), [START, *[step] * steps, CAPTIONS], strict=True), path)


def side_by_side(trajectories: Sequence[Tokens]) -> Tokens:
    """Trajectories (frames, n, h, w) as one; those that end early repeat their last frame.

    >>> side_by_side([np.zeros((3, 2, 1, 1), np.uint8), np.zeros((5, 1, 1, 1), np.uint8)]).shape
    (5, 3, 1, 1)
    """
    most = max(map(len, trajectories))
    padded = [np.concatenate([each, np.repeat(each[-1:], most - len(each), axis=0)]) for each in trajectories]
    return np.concatenate(padded, axis=1)


class Canvas:
    """The picture of ``sheet`` in the shared palette; ``show`` redraws only the cells that changed.

    >>> canvas = Canvas([np.zeros((3, 3), np.uint8)], cell=8)
    >>> canvas.show([np.ones((3, 3), np.uint8)])
    >>> bool((canvas.pixels == quantize(sheet([np.ones((3, 3), np.uint8)], cell=8))).all())
    True
    """

    def __init__(
        self,
        boards: Sequence[Tokens],
        captions: Sequence[str] | None = None,
        columns: int | None = None,
        cell: int = 32,
    ) -> None:
        layout = Layout(boards, captions, columns, cell)
        self.cell = cell
        self.origins = [layout.origin(i) for i in range(len(boards))]
        self.pixels: Indexed = np.array(quantize(sheet(boards, captions, columns, cell)))
        self.shown = [_cell_codes(board, looks(board), None) for board in boards]

    def show(
        self,
        boards: Sequence[Tokens],
        marked: Sequence[NDArray[np.bool_]] | None = None,
        board_looks: Sequence[NDArray[np.uint8]] | None = None,
    ) -> None:
        """Draw the boards, with the marked cells outlined; ``board_looks`` are their looks if already known."""
        cell = self.cell
        for i, (board, (left, top)) in enumerate(zip(boards, self.origins, strict=True)):
            look = looks(board) if board_looks is None else board_looks[i]
            codes = _cell_codes(board, look, None if marked is None else marked[i])
            for row, column in np.argwhere(codes != self.shown[i]).tolist():
                y, x = top + row * cell, left + column * cell
                self.pixels[y : y + cell, x : x + cell] = _cell_pixels(int(codes[row, column]), cell)
            self.shown[i] = codes


def _cell_codes(
    board: Tokens, look: NDArray[np.uint8], marked: NDArray[np.bool_] | None
) -> NDArray[np.uint8]:
    """One number per cell for all that decides how it is drawn: its token, its look, and whether it is outlined."""
    codes: NDArray[np.uint8] = board | look << np.uint8(3)
    return codes if marked is None else codes | marked.astype(np.uint8) << np.uint8(5)


@lru_cache(maxsize=512)
def _cell_pixels(code: int, cell: int) -> Indexed:
    token, look, marked = code & 7, code >> 3 & 3, code >> 5
    tile = Image.new("RGBA", (cell, cell)) if look == OUTSIDE else sprite(token, look, cell).copy()
    if marked:
        tile.alpha_composite(mark_sprite(Mark(0, 0).shapes(), cell))
    picture = Image.new("RGB", (cell, cell), palette.CARD)
    picture.paste(tile, (0, 0), tile)
    return np.array(quantize(picture))


@cache
def shared_palette() -> NDArray[np.uint8]:
    """The ``COLOURS`` colours: all of ``palette``, then blends that occur along the tiles' edges.

    >>> shared_palette().shape
    (127, 3)
    """
    named = {ImageColor.getrgb(value)[:3] for name, value in vars(palette).items() if name.isupper()}
    tiles = [sprite(token, look, 24) for token in range(TILES + 1) for look in range(OUTSIDE)]
    atlas = Image.new("RGB", (24 * len(tiles), 24), palette.CARD)
    for i, each in enumerate(tiles):
        atlas.paste(each, (24 * i, 0), each)
    blends = atlas.quantize(COLOURS - len(named), Image.Quantize.MEDIANCUT).getpalette() or []
    colours = np.array([*sorted(named), *zip(*[iter(blends)] * 3, strict=True)], np.uint8)
    return np.pad(colours, ((0, COLOURS - len(colours)), (0, 0)))


@cache
def _nearest() -> NDArray[np.uint8]:
    """For the leading five bits of red, green and blue, the index of the nearest shared colour."""
    colours = shared_palette().astype(np.int32)
    level = np.arange(32, dtype=np.int32) * 8 + 4
    reds, greens, blues = ((level[:, None] - colours[:, channel]) ** 2 for channel in range(3))
    distance = reds[:, None, None] + greens[None, :, None] + blues[None, None, :]
    table: NDArray[np.uint8] = distance.argmin(axis=-1).astype(np.uint8)
    # A shared colour maps to itself even where a blend lies nearer to the middle of its box.
    for index in reversed(range(COLOURS)):
        red, green, blue = shared_palette()[index] >> 3
        table[red, green, blue] = index
    return table


def quantize(picture: Image.Image) -> Image.Image:
    """The picture in the shared palette: each pixel is an index into ``shared_palette``.

    >>> flat = quantize(Image.new("RGB", (1, 1), palette.CRATE_PLANK))
    >>> flat.convert("RGB").getpixel((0, 0)) == ImageColor.getrgb(palette.CRATE_PLANK)
    True
    """
    red, green, blue = np.moveaxis(np.asarray(picture.convert("RGB")) >> 3, -1, 0)
    indexed = Image.fromarray(_nearest()[red, green, blue])
    indexed.putpalette(shared_palette().tobytes())
    return indexed


def _save(frames: Iterable[tuple[Indexed, int]], path: str | Path) -> None:
    check_animation(path)
    with atomic_file(path) as file:
        write_gif(file, frames)


def write_gif(out: BinaryIO, frames: Iterable[tuple[Indexed, int]]) -> None:
    """Write frames of one size, each with its milliseconds, in an endless loop.

    A frame is copied before the next one is taken, so all frames may be the same array.

    >>> import io
    >>> pixels = np.zeros((2, 2), np.uint8)
    >>> write_gif(out := io.BytesIO(), [(pixels, 100), (pixels + 1, 200)])
    >>> Image.open(out).n_frames
    2
    """
    before: Indexed | None = None
    for pixels, milliseconds in frames:
        options = {"duration": milliseconds, "disposal": _KEEP_FRAME}
        if before is None:
            out.write(_header(*pixels.shape))
            top, left, part = 0, 0, pixels
        else:
            top, left, part = _difference(before, pixels)
            options["transparency"] = _UNCHANGED
        out.writelines(GifImagePlugin.getdata(Image.fromarray(part), (left, top), **options))
        before = pixels.copy()
    out.write(b";")


def _difference(before: Indexed, now: Indexed) -> tuple[int, int, Indexed]:
    """Top, left and pixels of the smallest rectangle with every changed pixel; at least one pixel."""
    new = before != now
    rows, columns = np.flatnonzero(new.any(axis=1)), np.flatnonzero(new.any(axis=0))
    if not len(rows):
        return 0, 0, now[:1, :1]
    part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return int(rows[0]), int(columns[0]), np.where(new[part], now[part], np.uint8(_UNCHANGED))


def _header(height: int, width: int) -> bytes:
    """The size, the table of 128 colours that all frames share, and the endless loop."""
    size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    colours = shared_palette().tobytes() + bytes(3)
    return b"GIF89a" + size + b"\xf6\0\0" + colours + b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
