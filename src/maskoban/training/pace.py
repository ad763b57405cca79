"""How far a run is, and what that makes of its learning rates."""

from __future__ import annotations

import math
from dataclasses import dataclass

from maskoban.training.checkpoint import Progress
from maskoban.training.presets import Preset


@dataclass(frozen=True)
class Ending:
    """A run's last steps, where it is to end before its schedule does: the rate falls to zero from what it was."""

    begin: int
    steps: int
    rate: float


def share_done(preset: Preset, progress: Progress, minutes: float | None, ending: Ending | None) -> float:
    """How much of the budget is used, from 0 to 1; of its last steps, where a run is to end early.

    The budget is ``minutes`` by the clock, or the preset's steps where there are none.

    >>> from maskoban.training.presets import TINY
    >>> share_done(TINY, Progress(step=7, seconds=90.0), minutes=2, ending=None)
    0.75
    """
    if ending is not None:
        return min((progress.step - ending.begin) / ending.steps, 1.0)
    if minutes is not None:
        return min(progress.seconds / (60 * minutes), 1.0)
    return min(progress.step / preset.steps, 1.0)


def rate_factor(preset: Preset, progress: Progress, minutes: float | None, ending: Ending | None) -> float:
    """What the learning rates are multiplied by: warm-up, flat, then decay to zero over the last part.

    >>> from maskoban.training.presets import TINY
    >>> rate_factor(TINY, Progress(step=12), minutes=None, ending=Ending(begin=10, steps=4, rate=0.5))
    0.25
    """
    done = share_done(preset, progress, minutes, ending)
    if ending is not None:
        return ending.rate * (1.0 - done)
    warm = min((progress.step + 1) / max(preset.warmup, 1), 1.0)
    left = min((1.0 - done) / preset.decay_share, 1.0)
    return warm * (left if preset.decay == "linear" else 0.5 - 0.5 * math.cos(math.pi * left))
