"""The boards of a generator: sampled from a model, read from a file, made by `corpus synth`, or random."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskoban._util.progress import bar
from maskoban.boards import BOX, FLOOR, GOAL, PLAYER, WALL, Tokens, read_boards
from maskoban.boards.formats.arrays import extra_array
from maskoban.diffusion.loading import weights_hash
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import VERSION, SamplerConfig
from maskoban.diffusion.trajectory import Trajectory
from maskoban.errors import FileError, MaskobanError
from maskoban.evaluation.stages import Arrays, Stages, fingerprint

#: Boards between two savings: a few minutes of a CPU, seconds of a GPU.
SAVED_EVERY = 256


@dataclass(frozen=True, eq=False)
class Sample:
    """Boards (n, h, w), and what is known of how they were sampled."""

    boards: Tokens
    probabilities: NDArray[np.float32] | None = None  # (n, h, w), of each cell's tile when it was committed
    attempts: NDArray[np.int64] | None = None  # (n,), until a critic accepted the board

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything in it."""
        return fingerprint(self.boards, self.probabilities, self.attempts)

    @property
    def mean_attempts(self) -> float:
        """Attempts a board; 1 where nothing else is known."""
        return 1.0 if self.attempts is None else float(self.attempts.mean())

    def first(self, n: int) -> Sample:
        """The first ``n`` boards and their attempts."""
        return Sample(self.boards[:n], attempts=None if self.attempts is None else self.attempts[:n])


def read_sample(path: str | Path) -> Sample:
    """The boards of any level file, or of an npz with ``boards`` and maybe ``probabilities``, both (n, h, w).

    ``boards`` holds tile numbers 0 to 7; ``probabilities`` is float16 or float32, NaN where a cell was given.

    >>> read_sample("boards.npz").boards.shape  # doctest: +SKIP
    (50000, 10, 10)
    """
    boards = read_boards(path)
    probabilities = extra_array(path, "probabilities", boards.size)
    if probabilities is not None:
        if probabilities.shape != boards.shape:
            shapes = f"{probabilities.shape} beside boards of {boards.shape}"
            raise FileError(str(path), f"probabilities has shape {shapes}; expected the same")
        if not np.issubdtype(probabilities.dtype, np.floating):
            raise FileError(
                str(path), f"probabilities are of {probabilities.dtype}; expected float16 or float32"
            )
        probabilities = probabilities.astype(np.float32)
        if (probabilities < 0).any() or (probabilities > 1).any():
            low, high = np.nanmin(probabilities), np.nanmax(probabilities)
            raise FileError(str(path), f"probabilities go from {low:g} to {high:g}; expected 0 to 1, or NaN")
    return Sample(boards, probabilities)


def sample_model(
    model: Model, n: int, seed: int, config: SamplerConfig, stages: Stages, name: str, progress: bool = False
) -> Sample:
    """``n`` boards of a model with their probabilities and attempts, kept a part at a time.

    >>> from maskoban.diffusion.loading import load
    >>> sample_model(load(), 50_000, 0, load().sampler("best"), Stages("report/stages"), "boards")  # doctest: +SKIP
    """
    size = max(SAVED_EVERY, 4 * model.denoiser.batch)
    made_from = {"model": identity(model), "seed": seed, "sampler": asdict(config), "version": VERSION}
    parts = []
    for first in range(0, n, size):
        count = min(size, n - first)
        inputs = made_from | {"first": first, "count": count, "probabilities": "first commit"}

        def make(numbers: range = range(first, first + count)) -> Arrays:
            with bar("sampling", progress) as show:
                sampled = model.trajectory(seed=seed, sampler=config, numbers=numbers, on_progress=show)
            # Three digits of a probability are plenty, and the file is half as large.
            probabilities = commit_probabilities(sampled).astype(np.float16)
            return {"boards": sampled.boards, "probabilities": probabilities, "attempts": sampled.attempts}

        parts.append(stages.arrays(f"{name}-{first:06}", inputs, make))
    return Sample(
        np.concatenate([part["boards"] for part in parts]),
        np.concatenate([part["probabilities"] for part in parts]).astype(np.float32),
        np.concatenate([part["attempts"] for part in parts]),
    )


def commit_probabilities(trajectory: Trajectory) -> NDArray[np.float32]:
    """The probability of each cell's tile when the cell was first committed, as in the paper: (n, h, w).

    NaN in given cells, and in cells to which a Gibbs sweep gave another tile.
    """
    first = trajectory.boards.reshape(len(trajectory.boards), -1).copy()
    for commit in reversed(range(trajectory.cell.shape[1])):
        board = np.flatnonzero(trajectory.cell[:, commit] >= 0)
        first[board, trajectory.cell[board, commit]] = trajectory.tile[board, commit]
    kept = first.reshape(trajectory.boards.shape) == trajectory.boards
    return np.where(kept, trajectory.probability(first=True), np.float32(np.nan))


def random_boards(
    n: int, height: int = 10, width: int = 10, boxes: int = 4, seed: int = 0, walls: float = 0.593
) -> Tokens:
    """Boards with the counts of Boxoban's and nothing else of them: the baseline of a generator that knows no puzzles.

    Inside a border of wall, one player, ``boxes`` boxes and as many goals stand on cells chosen at random. Each other
    cell is wall with probability ``walls``; the default gives 68.6 walls on 10x10 boards with four boxes.

    >>> boards = random_boards(100, 7, 7, boxes=2)
    >>> [int((boards == tile).sum()) for tile in (PLAYER, BOX, GOAL)]
    [100, 200, 200]
    """
    tiles = np.array([PLAYER, *[BOX] * boxes, *[GOAL] * boxes], np.uint8)
    inside = max(height - 2, 0) * max(width - 2, 0)
    if inside < len(tiles):
        raise MaskobanError(
            f"a {height}x{width} board has {inside} cells inside its border; expected at least {len(tiles)}"
        )
    rng = np.random.default_rng(seed)
    cells = np.where(rng.random((n, inside)) < walls, WALL, FLOOR).astype(np.uint8)
    places = rng.random((n, inside)).argsort(axis=1)[:, : len(tiles)]
    np.put_along_axis(cells, places, np.broadcast_to(tiles, places.shape), axis=1)
    boards = np.full((n, height, width), WALL, np.uint8)
    boards[:, 1:-1, 1:-1] = cells.reshape(n, height - 2, width - 2)
    return boards


def identity(model: Model) -> dict[str, str]:
    """What tells a model from others: its name and a hash of its weights.

    >>> from maskoban.diffusion.loading import load
    >>> identity(load())["name"]
    'best'
    """
    return {
        "name": model.name,
        "weights": weights_hash(model.folder),
        "runs_on": type(model.denoiser).__name__,
    }
