"""How the way of drawing matters: temperature, the order of the reveal, fewer steps, polish sweeps, a critic."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maskoban.boards import Tokens
from maskoban.diffusion.model import How, Model
from maskoban.diffusion.sampler import Drawing, drawn_cells
from maskoban.evaluation.difficulty import efforts_unknown
from maskoban.evaluation.patterns import has_windows, jsd_ratio, pattern_jsd
from maskoban.evaluation.reference import Reference
from maskoban.evaluation.shares import Share, share_of
from maskoban.evaluation.tiles import Mean, count_tiles
from maskoban.solving import Limits, Results, solve_many

#: The paper's range, and one step beyond the model's own temperature.
TEMPERATURES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1)

#: Cells revealed at once, and sweeps over the finished board.
CELLS_A_STEP = (16, 8, 4, 2, 1)
SWEEPS = (1, 2)


@dataclass(frozen=True)
class Setting:
    """Boards drawn in one way. The divergence is of the first ``jsd_boards``, a size of the held-out curve."""

    temperature: float
    order: str
    steps: int
    polish: int
    critic: float | None  # the c by which one kept boards, where one was asked
    attempts: float  # a board, on average
    evaluations: float  # of the network and its critic, for one board on average
    boards: int
    solvable: Share
    walls: Mean
    median_effort: float | None  # of the boards that can be solved, where their efforts say what it is
    jsd_boards: int | None
    jsd: float | None
    jsd_ratio: float | None


def settings(model: Model) -> dict[str, list[How]]:
    """The ways of drawing that each comparison is made of; no critic is asked unless one is compared.

    >>> from maskoban.diffusion.model import load
    >>> [how["steps"] for how in settings(load())["steps"]]
    [4, 8, 16, 32, 64]
    """
    cells = len(drawn_cells(model.denoiser))
    found: dict[str, list[How]] = {
        "temperature": [{"temperature": temperature} for temperature in TEMPERATURES],
        "order": [{"order": "uniform"}, {"order": "confidence"}],
        "steps": [{"steps": max(1, cells // each)} for each in CELLS_A_STEP],
        "polish": [{"polish": sweeps} for sweeps in (0, *SWEEPS)],
    }
    if model.critic is not None:
        found["critic"] = [
            {"critic": asked, "polish": sweeps} for asked in (False, True) for sweeps in (0, 1)
        ]
    return found


def complete_how(model: Model, how: How) -> Drawing:
    """A way of drawing with nothing left open: one cell a step is written as so many steps.

    >>> from maskoban.diffusion.model import load
    >>> complete_how(load(), {}) == complete_how(load(), {"steps": 64, "temperature": 1.0})
    True
    """
    critic = model.card["critic"] if how.get("critic") else None
    drawing = Drawing(**{"polish": 0} | how | {"critic": critic})
    cells = len(drawn_cells(model.denoiser))
    return replace(drawing, steps=min(drawing.steps or cells, cells))


def evaluations(drawing: Drawing, cells: int, attempts: float = 1) -> float:
    """How often a network is evaluated for a board: in every attempt for its steps, for its sweeps and by the critic.

    >>> evaluations(Drawing(polish=1, critic=2.0), 64, attempts=1.5)
    193.5
    """
    steps = min(drawing.steps or cells, cells)
    return attempts * (steps + drawing.polish * cells + (drawing.critic is not None))


def measure_setting(
    boards: Tokens,
    drawing: Drawing,
    cells: int,
    reference: Reference,
    limits: Limits | None = None,
    attempts: float = 1,
) -> Setting:
    """The measures of boards that were drawn in this way, each in so many attempts on average.

    >>> from maskoban.evaluation.reference import load_reference
    >>> board = np.array([[[0] * 5, [0, 2, 3, 4, 0], [0] * 5]], np.uint8)
    >>> measure_setting(board, Drawing(steps=3), 3, load_reference()).solvable.count
    1
    """
    steps = min(drawing.steps or cells, cells)
    solved = solve_many(boards, limits=limits, solutions=False).solved
    efforts = solve_many(boards[solved], "effort", limits=limits, solutions=False)
    sizes = [size for size in reference.held_out_jsd if size <= len(boards)] if has_windows(boards) else []
    size = max(sizes, default=None)
    jsd = None if size is None else pattern_jsd(boards[:size], reference.patterns)
    return Setting(
        temperature=drawing.temperature,
        order=drawing.order,
        steps=steps,
        polish=drawing.polish,
        critic=drawing.critic,
        attempts=attempts,
        evaluations=evaluations(drawing, cells, attempts),
        boards=len(boards),
        solvable=share_of(int(solved.sum()), len(boards)),
        walls=count_tiles(boards).walls,
        median_effort=_median(efforts),
        jsd_boards=size,
        jsd=jsd,
        jsd_ratio=None if size is None or jsd is None else jsd_ratio(jsd, reference.held_out_jsd[size]),
    )


def _median(efforts: Results) -> float | None:
    """The median effort; None where it hangs on those that are not known."""
    unknown = efforts_unknown(efforts)
    if not len(efforts):
        return None
    ordered = np.sort(np.where(unknown, np.inf, efforts.expanded))
    # Whatever they are, the unknown ones must lie above the middle of the others.
    if (efforts.expanded[unknown] < ordered[len(ordered) // 2]).any():
        return None
    return float(np.median(ordered))
