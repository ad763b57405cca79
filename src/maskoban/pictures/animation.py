"""Animated GIFs: a solution being played, and boards being revealed cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

from maskoban.bars import Progress
from maskoban.boards import Level, MaskobanError, check_place, whole_file
from maskoban.boards.tiles import Tokens
from maskoban.pictures import palette
from maskoban.pictures.canvas import Canvas, indexed
from maskoban.pictures.gif import Indexed, write_gif
from maskoban.pictures.sheet import sheet
from maskoban.pictures.surroundings import looks
from maskoban.solving.replay import play

#: Pixels along the longer side of a board that is played, or a little more.
LONGEST = 1024

#: Milliseconds: to see how it begins, for each step, and to admire how it ends.
START, WALK, PUSH, END = 800, 80, 130, 3000

#: Milliseconds of a reveal: each step, but all of them no longer than people like to watch; the captions.
REVEAL, FASTEST, WATCHED, READ = 70, 20, 5000, 4000


def check_animation(path: str | Path) -> None:
    """Raise now what saving an animation would say later about the name or the place.

    >>> check_animation("drawn.mp4")
    Traceback (most recent call last):
        ...
    maskoban.boards.errors.MaskobanError: drawn.mp4: which kind of animation? expected a name ...
    """
    if Path(path).suffix.lower() != ".gif":
        raise MaskobanError(f"{path}: which kind of animation? expected a name that ends with .gif")
    check_place(path)


def solution_gif(
    level: Level, lurd: str, path: str | Path, cell: int | None = None, progress: Progress | None = None
) -> None:
    """Save the level being solved by the steps of ``lurd``, a frame a step, with a bar of progress.

    Cells are as large as fits into about a thousand pixels, and never above 32, unless ``cell`` says so.
    ``progress`` is told (frames done, frames in all).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     solution_gif(Level.parse("#####\\n#@$.#\\n#####"), "R", folder + "/solved.gif")
    ...     Image.open(folder + "/solved.gif").n_frames
    2
    """
    size = cell or max(8, min(32, LONGEST // max(level.shape)))
    times = [START, *(PUSH if step.isupper() else WALK for step in lurd)]
    times[-1] = END

    def told() -> Iterator[tuple[Indexed, int]]:
        for done, frame in enumerate(zip(_played(level, lurd, size), times, strict=True), 1):
            yield frame
            if progress:
                progress(done, len(times))

    _save(told(), path)


def _played(level: Level, lurd: str, cell: int) -> Iterator[Indexed]:
    """The level after each step, above a bar that grows."""
    canvas = Canvas([level.tokens], [level.title] if level.title else None, cell=cell)
    bar = canvas.pixels[-max(2, cell // 8) :]
    done = indexed(Image.new("RGB", (1, 1), palette.DONE_PLANK))
    seen = [looks(level.tokens)]  # walls stay, and whoever is inside stays there: looks never change
    for step, position in enumerate(play(level, lurd)):
        canvas.show([position], seen=seen)
        bar[:, : round(bar.shape[1] * step / max(1, len(lurd)))] = done
        yield canvas.pixels


def reveal_gif(
    frames: Tokens,
    path: str | Path,
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    cell: int = 24,
) -> None:
    """Save boards being drawn cell by cell, from a trajectory of tokens (frames, n, height, width).

    Cells that changed since the frame before are outlined; captions appear under the finished boards. Frames in
    which nothing changed (a polish sweep mostly redraws what was there) are left out.

    >>> import tempfile
    >>> import numpy as np
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
    # Room for the captions is kept from the start, so that nothing moves when they appear.
    waiting = None if captions is None else ["\n" * len(caption.splitlines()) for caption in captions]

    def drawn() -> Iterator[Indexed]:
        canvas = Canvas(list(frames[0]), waiting, columns, cell)
        yield canvas.pixels
        for before, now in pairwise(frames):
            canvas.show(list(now), marked=list(now != before))
            yield canvas.pixels
        yield indexed(sheet(list(frames[-1]), captions, columns, cell))

    steps = len(frames) - 1
    step = min(REVEAL, max(FASTEST, WATCHED // max(1, steps) // 10 * 10))  # a GIF counts in hundredths
    times = [START, *[step] * steps, READ]
    _save(zip(drawn(), times, strict=True), path)


def _save(frames: Iterable[tuple[Indexed, int]], path: str | Path) -> None:
    check_animation(path)
    with whole_file(path) as file:
        write_gif(file, frames)


def side_by_side(drawings: Sequence[Tokens]) -> Tokens:
    """Drawings (frames, n, h, w) of boards as one; those that are finished early wait for the others.

    >>> side_by_side([np.zeros((3, 2, 1, 1), np.uint8), np.zeros((5, 1, 1, 1), np.uint8)]).shape
    (5, 3, 1, 1)
    """
    most = max(map(len, drawings))
    held = [np.concatenate([each, np.repeat(each[-1:], most - len(each), axis=0)]) for each in drawings]
    return np.concatenate(held, axis=1)
