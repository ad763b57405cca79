"""The native core. Use it through the package, which checks and names what goes in and out."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

_Step: TypeAlias = tuple[
    NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
]

class _Solved(TypedDict):
    verdicts: NDArray[np.uint8]
    limits_hit: NDArray[np.uint8]
    reasons: list[str]
    pushes: NDArray[np.int32]
    moves: NDArray[np.int32]
    boxes_at_once: NDArray[np.int32]
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
    without: int = 0,
) -> _Solved: ...
def optimize_boards(
    boards: NDArray[np.uint8],
    solutions: list[str],
    by_moves: bool,
    states: int,
    seconds: float,
    threads: int,
    progress: Callable[[int], object] | None,
) -> _Solved: ...
def dead_cells(board: NDArray[np.uint8]) -> NDArray[np.bool_]: ...
def dead_by_rules(boards: NDArray[np.uint8]) -> NDArray[np.uint8]: ...
def registers() -> list[str]: ...
def nearest(
    boards: NDArray[np.uint8],
    corpus: NDArray[np.uint8],
    registers: str,
    threads: int,
    progress: Callable[[int], object] | None,
) -> NDArray[np.int32]: ...
def synthesize(
    n: int,
    height: int,
    width: int,
    boxes: int,
    walls: float,
    seed: int,
    first: int,
    threads: int,
    progress: Callable[[int], object] | None,
) -> NDArray[np.uint8]: ...
def unplayable(boards: NDArray[np.uint8]) -> list[str]: ...

class Games:
    """The games of an environment; maskoban.environment.games has what the arguments are."""

    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        infos: dict[str, Any],
        final_infos: dict[str, Any],
        kind: int,
        pixels: int,
        tiles: list[int],
        directions: list[int],
        limit: int,
        mode: int,
        threads: int,
    ) -> None: ...
    def set_levels(self, levels: dict[str, NDArray[Any]], window: int, reuse: int) -> None: ...
    def reset(self, mask: NDArray[np.bool_], boards: NDArray[np.uint8] | None) -> None: ...
    def step(self, actions: NDArray[Any]) -> _Step | None: ...
    def infos(self) -> dict[str, Any]: ...
    def step_many(
        self,
        done: int,
        actions: NDArray[np.int64] | None,
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
    ) -> int: ...
    def step_first(self, action: int | np.integer[Any]) -> tuple[float, bool, int, int, int]: ...
