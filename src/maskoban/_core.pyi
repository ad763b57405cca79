"""The native core. Use it through the package, which checks and names what goes in and out."""

from collections.abc import Callable
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

class _Solved(TypedDict):
    verdicts: NDArray[np.uint8]
    reasons: list[str]
    pushes: NDArray[np.int32]
    moves: NDArray[np.int32]
    expanded: NDArray[np.int64]
    seconds: NDArray[np.float32]
    setup: NDArray[np.float32]
    rebuilding: NDArray[np.float32]
    solutions: list[str] | None

def solve_boards(
    boards: NDArray[np.uint8],
    mode: int,
    states: int,
    megabytes: int,
    seconds: float,
    threads: int,
    solutions: bool,
    progress: Callable[[int], object] | None,
) -> _Solved: ...
def dead_cells(board: NDArray[np.uint8]) -> NDArray[np.bool_]: ...
def registers() -> list[str]: ...
def nearest(
    boards: NDArray[np.uint8],
    corpus: NDArray[np.uint8],
    registers: str,
    threads: int,
    progress: Callable[[int], object] | None,
) -> NDArray[np.int32]: ...
def unplayable(boards: NDArray[np.uint8]) -> list[str]: ...
def begin_games(boards: NDArray[np.uint8], games: NDArray[np.int32]) -> None: ...
def step_games(
    boards: NDArray[np.uint8],
    games: NDArray[np.int32],
    actions: NDArray[np.int64],
    idle: NDArray[np.bool_],
    limit: int,
    rewards: NDArray[np.float64],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
) -> None: ...
