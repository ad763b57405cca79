"""GIFs of solutions and of boards being unmasked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor, ImageSequence

from maskoban.boards import BOX, FLOOR, GOAL, MASK, PLAYER, Level
from maskoban.errors import MaskobanError
from maskoban.pictures import Mark, palette, reveal_gif, sheet, solution_gif
from maskoban.pictures.gif import COLOURS, quantize
from maskoban.pictures.layout import Layout
from maskoban.solving.replay import play
from tests.pictures.boards import HOUSE, SOLVED_IN_TWO


def frames_of(path: Path) -> list[Image.Image]:
    with Image.open(path) as gif:
        return [frame.convert("RGB") for frame in ImageSequence.Iterator(gif)]


def durations_of(path: Path) -> list[int]:
    with Image.open(path) as gif:
        return [frame.info["duration"] for frame in ImageSequence.Iterator(gif)]


def revealed(boards: np.ndarray) -> np.ndarray:
    """A trajectory that draws one cell of each board a frame, in reading order."""
    cells = boards[0].size
    frames = np.full((cells + 1, *boards.shape), MASK, np.uint8)
    for step in range(1, cells + 1):
        frames[step].reshape(len(boards), -1)[:, :step] = boards.reshape(len(boards), -1)[:, :step]
    return frames


def test_a_solution_is_one_frame_a_step_with_a_pause_at_the_end(tmp_path: Path) -> None:
    solution_gif(SOLVED_IN_TWO, "RR", tmp_path / "solved.gif")
    assert durations_of(tmp_path / "solved.gif") == [800, 130, 3000]


def test_the_frames_show_the_positions(tmp_path: Path) -> None:
    solution_gif(SOLVED_IN_TWO, "RR", tmp_path / "solved.gif")
    bar = 4
    for frame, position in zip(frames_of(tmp_path / "solved.gif"), play(SOLVED_IN_TWO, "RR"), strict=True):
        wanted = quantize(sheet([position])).convert("RGB")
        above = (0, 0, wanted.width, wanted.height - bar)
        assert frame.crop(above).tobytes() == wanted.crop(above).tobytes()
    last = frames_of(tmp_path / "solved.gif")[-1]
    assert last.getpixel((last.width - 1, last.height - 1)) == ImageColor.getrgb(palette.DONE_PLANK)


def test_a_large_board_is_played_in_smaller_cells_and_progress_counts_frames(tmp_path: Path) -> None:
    tokens = np.zeros((64, 64), np.uint8)
    tokens[1:3, 1:-1] = FLOOR
    tokens[1, 1], tokens[1, 2], tokens[1, -2] = PLAYER, BOX, GOAL
    calls: list[tuple[int, int]] = []
    walk = "drru"
    solution_gif(Level(tokens), walk, tmp_path / "large.gif", on_progress=lambda *now: calls.append(now))
    assert calls == [(done, 5) for done in range(1, 6)]
    for frame, position in zip(frames_of(tmp_path / "large.gif"), play(tokens, walk), strict=True):
        wanted = quantize(sheet([position], cell=16)).convert("RGB")
        above = (0, 0, wanted.width, wanted.height - 2)
        assert frame.crop(above).tobytes() == wanted.crop(above).tobytes()


def test_an_illegal_solution_keeps_the_file_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "solved.gif").write_bytes(b"old")
    with pytest.raises(MaskobanError, match=re.escape("step 2 ('R')")):
        solution_gif(SOLVED_IN_TWO, "RRR", tmp_path / "solved.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["solved.gif"]
    assert (tmp_path / "solved.gif").read_bytes() == b"old"


def test_a_reveal_is_one_frame_a_step_and_the_finished_boards_for_long(tmp_path: Path) -> None:
    frames = revealed(np.stack([SOLVED_IN_TWO.tokens] * 2))
    reveal_gif(frames, tmp_path / "drawn.gif", ["one", "two"])
    times = durations_of(tmp_path / "drawn.gif")
    assert times == [800, *[70] * 18, 4000]


def test_long_trajectories_are_shown_faster(tmp_path: Path) -> None:
    reveal_gif(revealed(np.zeros((1, 12, 12), np.uint8)), tmp_path / "drawn.gif", cell=8)
    times = durations_of(tmp_path / "drawn.gif")
    assert times == [800, *[30] * 144, 4000]


def test_captions_wait_for_the_boards_to_be_finished(tmp_path: Path) -> None:
    frames = revealed(SOLVED_IN_TWO.tokens[None])
    reveal_gif(frames, tmp_path / "drawn.gif", ["solved\n2 pushes"])
    layout = Layout([SOLVED_IN_TWO.tokens], ["solved\n2 pushes"], cell=24)
    pictures = frames_of(tmp_path / "drawn.gif")
    for line, (x, y, ink) in layout.caption(0):
        colours = [
            {colour for _, colour in picture.crop((x - 30, y - 6, x + 30, y + 6)).getcolors(65536) or []}
            for picture in pictures
        ]
        assert {len(seen) for seen in colours[:-1]} == {1}, line
        assert ImageColor.getrgb(ink) in colours[-1], line


def test_a_reveal_outlines_what_is_new_and_nothing_at_the_end(tmp_path: Path) -> None:
    frames = revealed(SOLVED_IN_TWO.tokens[None])
    reveal_gif(frames, tmp_path / "drawn.gif", cell=24)
    layout = Layout([SOLVED_IN_TWO.tokens], cell=24)
    x, y = layout.origin(0)
    pictures = frames_of(tmp_path / "drawn.gif")
    mark = ImageColor.getrgb(palette.MARK)
    for step, picture in enumerate(pictures[1:-1]):
        row, column = divmod(step, 6)
        assert picture.getpixel((x + column * 24 + 12, y + row * 24 + 1)) == mark
    assert mark not in {colour for _, colour in pictures[-1].getcolors(65536) or []}


def test_every_frame_is_the_sheet_drawn_anew(tmp_path: Path) -> None:
    # Cells change back and forth, and the outside comes and goes.
    frames = np.random.default_rng(1).choice(np.array([0, 0, 1, 1, 1, 2, 3, 7], np.uint8), (12, 3, 4, 5))
    reveal_gif(frames, tmp_path / "drawn.gif", cell=16)
    found = frames_of(tmp_path / "drawn.gif")
    for before, now, frame in zip(frames, frames[1:], found[1:], strict=False):
        marks = [[Mark(*cell) for cell in np.argwhere(new).tolist()] for new in now != before]
        wanted = quantize(sheet(list(now), cell=16, marks=marks)).convert("RGB")
        assert frame.tobytes() == wanted.tobytes()


def test_all_frames_share_one_small_palette(tmp_path: Path) -> None:
    reveal_gif(revealed(HOUSE.tokens[None]), tmp_path / "drawn.gif")
    colours = {
        colour for frame in frames_of(tmp_path / "drawn.gif") for _, colour in frame.getcolors(65536) or []
    }
    assert len(colours) <= COLOURS
    data = (tmp_path / "drawn.gif").read_bytes()
    assert data[10] & 0b111 == 6  # one table of 128 colours for the whole file
    local = [
        data[found.end() + 8] & 0x80 for found in re.finditer(rb"\x21\xf9\x04....\x00\x2c", data, re.DOTALL)
    ]
    assert len(local) == np.count_nonzero(HOUSE.tokens != MASK) + 2
    assert not any(local)


def test_a_frame_without_a_change_is_left_out(tmp_path: Path) -> None:
    frames = revealed(SOLVED_IN_TWO.tokens[None])
    reveal_gif(frames, tmp_path / "drawn.gif")
    reveal_gif(np.repeat(frames, 3, axis=0), tmp_path / "slow.gif")
    assert (tmp_path / "slow.gif").read_bytes() == (tmp_path / "drawn.gif").read_bytes()


def test_the_tile_colours_survive_the_shared_palette() -> None:
    for name, value in vars(palette).items():
        if name.isupper():
            pixel = quantize(Image.new("RGB", (1, 1), value)).convert("RGB").getpixel((0, 0))
            assert pixel == ImageColor.getrgb(value), name


def test_a_frame_stores_only_what_changed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    boards = rng.integers(0, 7, (4, 10, 10), np.uint8)
    reveal_gif(revealed(boards), tmp_path / "drawn.gif")
    with Image.open(tmp_path / "drawn.gif") as gif:
        pixels = gif.width * gif.height * gif.n_frames
    # Whole frames would take at least a tenth of a byte a pixel.
    assert (tmp_path / "drawn.gif").stat().st_size < pixels / 50


def test_a_trajectory_of_the_wrong_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match=r"this one has shape \(3, 6\)"):
        reveal_gif(SOLVED_IN_TWO.tokens, tmp_path / "drawn.gif")
