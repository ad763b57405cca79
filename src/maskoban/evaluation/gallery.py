"""The boards that a report shows: nine while they are sampled and solved, nine that one wall repairs, the first six.

None is picked by hand: they are always the first of the sample that fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maskoban.boards import MASK, Level, Tokens
from maskoban.boards.tiles import board_texts
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.repairs import Mending
from maskoban.evaluation.report import Gallery, Plate, RepairedBoard
from maskoban.evaluation.sample import Sample
from maskoban.solving import Limits, Results, play, rate_many, solve_many

NINE, SIX, STRIP = 9, 6, 8


def rows(tokens: Tokens) -> list[str]:
    """A board as JSON has it: its rows as text.

    >>> rows(np.array([[0, 1, 7]], np.uint8))
    ['# ?']
    """
    return board_texts(tokens[None])[0].split("\n")


def first_solved(results: Results, count: int = NINE) -> list[int]:
    """The first solvable boards."""
    return [int(i) for i in np.flatnonzero(results.solved)[:count]]


def first_boards(boards: Tokens, limits: Limits) -> Plate:
    """The first boards of the sample, solvable or not, with their verdicts."""
    return Plate(SIX, [rows(board) for board in boards[:SIX]], verdict_captions(boards[:SIX], limits))


def denoising(
    model: Model, chosen: Sequence[int], seed: int, config: SamplerConfig, limits: Limits
) -> Gallery:
    """The chosen boards of this seed at six points of their sampling, and the first of them at eight."""
    frames = model.trajectory(seed=seed, sampler=config, numbers=list(chosen)).frames()
    verdicts = verdict_captions(frames[-1], limits)
    cells = int((frames[0][0] == MASK).sum())
    committed = [cells - int((frame[0] == MASK).sum()) for frame in frames]
    whole = committed.index(cells)  # what comes after are Gibbs sweeps
    boards, captions = [], []
    for i in range(len(chosen)):
        for frame in _spaced(len(frames), SIX):
            boards.append(rows(frames[frame][i]))
            if frame == len(frames) - 1:
                captions.append(verdicts[i])
            elif frame > whole:
                captions.append(f"swept {frame - whole} of {len(frames) - 1 - whole}")
            else:
                captions.append(f"{committed[frame]} of {cells}")
    strip = [rows(frames[frame][0]) for frame in _spaced(len(frames), STRIP)]
    return Gallery(denoising=Plate(SIX, boards, captions), strip=Plate(STRIP, strip))


def solutions(boards: Tokens, limits: Limits) -> Plate:
    """Solvable boards at six points of a solution with the fewest pushes."""
    results = solve_many(boards, "pushes", limits=limits)
    shown, captions = [], []
    for i, board in enumerate(boards):
        steps = results[i].solution
        positions = list(play(Level(board), steps))
        for point in _spaced(len(positions), SIX):
            shown.append(rows(positions[point]))
            captions.append(f"move {point} of {len(steps)}" if point else "as sampled")
    return Plate(SIX, shown, captions)


def repaired(sample: Sample, mending: Mending) -> list[RepairedBoard]:
    """The first nine boards that one wall repairs, each with the least probable of the walls that do."""
    found = []
    for i in np.flatnonzero(mending.cures.any(axis=(1, 2)))[:NINE]:
        cells = np.argwhere(mending.cures[i])
        known = np.full(len(cells), np.nan)
        if sample.probabilities is not None:
            known = sample.probabilities[i][tuple(cells.T)]
        least = 0 if np.isnan(known).all() else int(np.nanargmin(known))
        row, column = cells[least].tolist()
        probability = None if np.isnan(known[least]) else float(known[least])
        found.append(RepairedBoard(rows(sample.boards[i]), row, column, probability))
    return found


def verdict_captions(boards: Tokens, limits: Limits) -> list[str]:
    """The verdict on each board, as short as fits below it."""
    return [
        f"{rating.difficulty}, {rating.pushes} pushes" if rating.verdict == "solved" else rating.verdict
        for rating in rate_many(boards, limits=limits)
    ]


def _spaced(count: int, points: int) -> list[int]:
    """So many places from the first to the last, evenly spaced."""
    if count < 1:
        raise MaskobanError("there is nothing to show")
    return [int(each) for each in np.linspace(0, count - 1, points).round()]
