"""Samplers of one model compared: temperatures, unmasking orders, steps, Gibbs sweeps, the critic."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maskoban.boards import Tokens
from maskoban.diffusion.denoiser import interior_cells
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.evaluation.measures.patterns import count_tiles, has_windows, pattern_jsd
from maskoban.evaluation.measures.share import Mean, Share, share_of
from maskoban.evaluation.reference import Reference
from maskoban.solving import Limits, Results, solve_many

#: The paper's range, and one step beyond the model's own temperature.
TEMPERATURES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1)

#: Cells unmasked at once, and Gibbs sweeps over the finished board.
CELLS_A_STEP = (16, 8, 4, 2, 1)
SWEEPS = (1, 2)


@dataclass(frozen=True)
class Setting:
    """Boards of one sampler. The divergence is of the first ``jsd_boards``, a size of the held-out curve."""

    temperature: float
    order: str
    steps: int
    sweeps: int
    evaluations: float  # of the network and its critic, for one board on average
    boards: int
    solvable: Share
    walls: Mean
    median_effort: float | None  # of the solvable boards; None where unknown efforts decide it
    jsd_boards: int | None
    jsd: float | None
    jsd_ratio: float | None
    critic: float | None = None  # the bound c of its rejection sampling, where it is used
    attempts: float = 1.0  # a board, on average


def sampler_configs(model: Model) -> dict[str, list[SamplerConfig]]:
    """The sampler configs of each comparison: one field of ``plain`` varies, and the critic with it.

    >>> from maskoban.diffusion.loading import load
    >>> [config.steps for config in sampler_configs(load())["steps"]]
    [4, 8, 16, 32, 64]
    """
    cells = len(interior_cells(model.denoiser))
    found = {
        "temperature": [SamplerConfig(temperature=temperature) for temperature in TEMPERATURES],
        "order": [SamplerConfig(order="uniform"), SamplerConfig(order="confidence")],
        "steps": [SamplerConfig(steps=max(1, cells // each)) for each in CELLS_A_STEP],
        "sweeps": [SamplerConfig(sweeps=sweeps) for sweeps in (0, *SWEEPS)],
    }
    if model.critic is not None:
        found["critic"] = [
            SamplerConfig(sweeps=sweeps, critic=critic) for critic in (False, True) for sweeps in (0, 1)
        ]
    return found


def explicit(config: SamplerConfig, cells: int) -> SamplerConfig:
    """The config with its number of steps written out, so that equal configs compare equal.

    >>> explicit(SamplerConfig(), 64) == explicit(SamplerConfig(steps=64), 64)
    True
    """
    return replace(config, steps=min(config.steps or cells, cells))


def measure_setting(
    boards: Tokens,
    config: SamplerConfig,
    cells: int,
    reference: Reference,
    limits: Limits | None = None,
    attempts: float = 1,
    critic: float | None = None,
) -> Setting:
    """The measures of the boards of a sampler, each sampled in so many attempts on average.

    >>> from maskoban.evaluation.reference import load_reference
    >>> board = np.array([[[0] * 5, [0, 2, 3, 4, 0], [0] * 5]], np.uint8)
    >>> measure_setting(board, SamplerConfig(steps=3), 3, load_reference()).solvable.count
    1
    """
    steps = min(config.steps or cells, cells)
    solved = solve_many(boards, limits=limits, solutions=False).solved
    efforts = solve_many(boards[solved], "effort", limits=limits, solutions=False)
    sizes = [size for size in reference.held_out_jsd if size <= len(boards)] if has_windows(boards) else []
    size = max(sizes, default=None)
    jsd, floor = None, reference.held_out_jsd.get(size or 0)
    if size is not None:
        jsd = pattern_jsd(boards[:size], reference.patterns)
    return Setting(
        temperature=config.temperature,
        order=config.order,
        steps=steps,
        sweeps=config.sweeps,
        critic=critic,
        attempts=attempts,
        evaluations=config.cost(cells, attempts),
        boards=len(boards),
        solvable=share_of(int(solved.sum()), len(boards)),
        walls=count_tiles(boards).walls,
        median_effort=_median(efforts),
        jsd_boards=size,
        jsd=jsd,
        jsd_ratio=jsd / floor if jsd is not None and floor else None,
    )


def _median(efforts: Results) -> float | None:
    """The median effort; None where it hangs on those that are not known."""
    unknown = efforts.limits_hit > 0
    if not len(efforts):
        return None
    ordered = np.sort(np.where(unknown, np.inf, efforts.expanded))
    # Whatever they are, the unknown ones must lie above the middle of the others.
    if (efforts.expanded[unknown] < ordered[len(ordered) // 2]).any():
        return None
    return float(np.median(ordered))
