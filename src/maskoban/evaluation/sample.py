"""The boards to be measured: drawn by a model, or read from a file that anything may have written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskoban._util.progress import bar
from maskoban.boards import Tokens, read_boards
from maskoban.boards.formats.arrays import extra_array
from maskoban.diffusion.loading import weights_hash
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import VERSION, SamplerConfig
from maskoban.errors import FileError
from maskoban.evaluation.stages import Arrays, Stages, fingerprint

#: Boards between two savings of what has been drawn: a few minutes of a CPU, seconds of a GPU.
SAVED_EVERY = 512


@dataclass(frozen=True, eq=False)
class Sample:
    """Boards (n, h, w), and what is known of how they were drawn."""

    boards: Tokens
    probabilities: NDArray[np.float32] | None = None  # (n, h, w), of each cell's tile when it was committed
    attempts: NDArray[np.int64] | None = None  # (n,), until a critic kept the board

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


def draw_sample(
    model: Model, n: int, seed: int, config: SamplerConfig, stages: Stages, name: str, progress: bool = False
) -> Sample:
    """``n`` boards of a model with their probabilities and attempts, kept a part at a time.

    >>> from maskoban.diffusion.loading import load
    >>> draw_sample(load(), 50_000, 0, load().sampler("best"), Stages("report/stages"), "boards")  # doctest: +SKIP
    """
    size = max(SAVED_EVERY, 4 * model.denoiser.batch)
    made_from = {"model": identity(model), "seed": seed, "sampler": asdict(config), "version": VERSION}
    parts = []
    for first in range(0, n, size):
        count = min(size, n - first)
        inputs = made_from | {"first": first, "count": count}
        draw = partial(_drawn, model, first, count, seed, config, progress)
        parts.append(stages.arrays(f"{name}-{first:06}", inputs, draw))
    return Sample(
        np.concatenate([part["boards"] for part in parts]),
        np.concatenate([part["probabilities"] for part in parts]).astype(np.float32),
        np.concatenate([part["attempts"] for part in parts]),
    )


def _drawn(model: Model, first: int, count: int, seed: int, config: SamplerConfig, progress: bool) -> Arrays:
    with bar("drawing", progress) as show:
        numbers = range(first, first + count)
        drawn = model.trajectory(count, seed, config, numbers=numbers, on_progress=show)
    # Three digits of a probability are plenty, and the file is half as large.
    probabilities = drawn.probability().astype(np.float16)
    return {"boards": drawn.boards, "probabilities": probabilities, "attempts": drawn.attempts}


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
