"""The boards that a report draws: nine being drawn, the same nine being solved, nine that one wall mends.

None is picked by hand: they are always the first of the sample that fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import MASK, Level, Tokens
from maskoban.boards.tiles import board_texts
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.evaluation.repairs import Mending
from maskoban.evaluation.sample import Sample
from maskoban.solving import Limits, Results, play, rate_many, solve_many

NINE, POINTS, STRIP = 9, 6, 8


def rows(tokens: Tokens) -> list[str]:
    """A board as JSON has it: its rows as text.

    >>> rows(np.array([[0, 1, 7]], np.uint8))
    ['# ?']
    """
    return board_texts(tokens[None])[0].split("\n")


def first_solved(results: Results, count: int = NINE) -> list[int]:
    """The first boards that can be solved."""
    return [int(i) for i in np.flatnonzero(results.solved)[:count]]


def denoising(
    model: Model, chosen: Sequence[int], seed: int, config: SamplerConfig, limits: Limits
) -> dict[str, Any]:
    """The chosen boards of this seed at six points of being drawn, and the first of them at eight."""
    frames = model.trajectory(seed=seed, sampler=config, numbers=list(chosen)).frames()
    verdicts = verdict_captions(frames[-1], limits)
    picked = _spaced(len(frames), POINTS)
    cells = int((frames[0][0] == MASK).sum())
    drawn = [cells - int((frame[0] == MASK).sum()) for frame in frames]
    whole = drawn.index(cells)  # what comes after is polish
    boards, captions = [], []
    for i in range(len(chosen)):
        for frame in picked:
            boards.append(rows(frames[frame][i]))
            if frame == len(frames) - 1:
                captions.append(verdicts[i])
            elif frame > whole:
                captions.append(f"swept {frame - whole} of {len(frames) - 1 - whole}")
            else:
                captions.append(f"{drawn[frame]} of {cells}")
    strip = [frames[frame][0] for frame in _spaced(len(frames), STRIP)]
    return {
        "denoising": {"columns": POINTS, "boards": boards, "captions": captions},
        "strip": {"boards": [rows(each) for each in strip]},
    }


def solutions(boards: Tokens, limits: Limits) -> dict[str, Any]:
    """Boards that can be solved at six points of a solution with the fewest pushes."""
    results = solve_many(boards, "pushes", limits=limits)
    shown, captions = [], []
    for i, board in enumerate(boards):
        steps = results[i].solution
        positions = list(play(Level(board), steps))
        for point in _spaced(len(positions), POINTS):
            shown.append(rows(positions[point]))
            captions.append(f"move {point} of {len(steps)}" if point else "as drawn")
    return {"columns": POINTS, "boards": shown, "captions": captions}


def repaired(sample: Sample, mending: Mending) -> list[dict[str, Any]]:
    """The first nine boards that one wall mends, and of each the wall that was least probable."""
    found = []
    for i in np.flatnonzero(mending.cures.any(axis=(1, 2)))[:NINE]:
        cells = np.argwhere(mending.cures[i])
        chances = _chances(sample, int(i), cells)
        least = 0 if chances is None else int(np.nanargmin(chances))
        row, column = cells[least].tolist()
        chance = None if chances is None else float(chances[least])
        found.append({"board": rows(sample.boards[i]), "row": row, "column": column, "probability": chance})
    return found


def verdict_captions(boards: Tokens, limits: Limits) -> list[str]:
    """What the solver says of each board, as short as fits below it."""
    return [
        f"{rating.difficulty}, {rating.pushes} pushes" if rating.verdict == "solved" else rating.verdict
        for rating in rate_many(boards, limits=limits)
    ]


def _chances(sample: Sample, board: int, cells: NDArray[np.intp]) -> NDArray[np.float32] | None:
    if sample.probabilities is None:
        return None
    chances = sample.probabilities[board][tuple(cells.T)]
    return None if np.isnan(chances).all() else chances


def _spaced(count: int, points: int) -> list[int]:
    """So many places from the first to the last, evenly spaced."""
    if count < 1:
        raise MaskobanError("there is nothing to show")
    return [int(each) for each in np.linspace(0, count - 1, points).round()]
