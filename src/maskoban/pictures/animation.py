"""Animated GIFs: a solution being played, and boards being revealed cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from maskoban.boards import Level, MaskobanError, check_place, whole_file
from maskoban.boards.tiles import Tokens
from maskoban.pictures import palette
from maskoban.pictures.board import Mark
from maskoban.pictures.colours import COUNT, in_shared_colours, shared_colours
from maskoban.pictures.sheet import sheet
from maskoban.solving.replay import play

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


def solution_gif(level: Level, lurd: str, path: str | Path, cell: int = 32) -> None:
    """Save the level being solved by the steps of ``lurd``, a frame a step, with a bar of progress.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     solution_gif(Level.parse("#####\\n#@$.#\\n#####"), "R", folder + "/solved.gif")
    ...     Image.open(folder + "/solved.gif").n_frames
    2
    """
    caption = [level.title] if level.title else None
    times = [START, *(PUSH if step.isupper() else WALK for step in lurd)]
    times[-1] = END

    def frames() -> Iterator[Image.Image]:
        for step, position in enumerate(play(level, lurd)):
            picture = sheet([position], caption, cell=cell)
            _draw_progress(picture, step / max(1, len(lurd)), cell)
            yield picture

    _save(frames(), times, path)


def reveal_gif(
    frames: Tokens,
    path: str | Path,
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    cell: int = 24,
) -> None:
    """Save boards being drawn cell by cell, from a trajectory of tokens (frames, n, height, width).

    Cells that changed since the frame before are outlined; captions appear under the finished boards.

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
    no_marks: list[list[Mark]] = [[]] * frames.shape[1]
    marks = [no_marks] + [
        [[Mark(row, column) for row, column in np.argwhere(changed).tolist()] for changed in now != before]
        for before, now in pairwise(frames)
    ]
    # Room for the captions is kept from the start, so that nothing moves when they appear.
    waiting = None if captions is None else ["\n" * len(caption.splitlines()) for caption in captions]
    drawing = (
        sheet(list(boards), waiting, columns, cell, outlined)
        for boards, outlined in zip(frames, marks, strict=True)
    )
    finished = sheet(list(frames[-1]), captions, columns, cell)
    steps = len(frames) - 1
    step = min(REVEAL, max(FASTEST, WATCHED // max(1, steps) // 10 * 10))  # a GIF counts in hundredths
    _save(chain(drawing, [finished]), [START, *[step] * steps, READ], path)


def _draw_progress(picture: Image.Image, share: float, cell: int) -> None:
    thick = max(2, cell // 8)
    box = (0, picture.height - thick, round(picture.width * share) - 1, picture.height - 1)
    if box[2] > box[0]:
        ImageDraw.Draw(picture).rectangle(box, palette.DONE_PLANK)


def _save(frames: Iterable[Image.Image], milliseconds: list[int], path: str | Path) -> None:
    check_animation(path)
    reduced = map(in_shared_colours, frames)
    with whole_file(path) as file:
        next(reduced).save(
            file,
            "GIF",
            save_all=True,
            append_images=reduced,
            duration=milliseconds,
            loop=0,
            palette=shared_colours().tobytes() + bytes(3),
            # With these two a frame holds only what changed; the colour after ours means "as before".
            optimize=True,
            transparency=COUNT,
        )
