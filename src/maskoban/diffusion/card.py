"""The metadata of a model: one validated description for every loader.

An exported model carries it twice, as JSON: in the metadata of ``model.onnx`` and, under ``facts``, in that of
``model.safetensors``. A file from elsewhere may say anything, so every value is checked before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from maskoban.diffusion.schedule import SCHEDULES, Schedule
from maskoban.errors import MaskobanError

#: The largest value of a whole number in a card, by name. Tables have a row for every diffusion step.
_LARGEST = {"height": 64, "width": 64, "margin": 31, "diffusion_steps": 100_000, "polish": 1000}


@dataclass(frozen=True)
class Card:
    """What a model fills, how it was trained, and how it samples best."""

    name: str
    height: int
    width: int
    margin: int  # rings of wall around the cells it fills
    diffusion_steps: int
    timed: bool  # whether the network takes the time step as an input
    parameters: int | None = None
    training_steps: int | None = None
    training_minutes: float | None = None
    polish: int = 0  # Gibbs sweeps it samples best with
    bits: int = 16  # of a stored weight
    schedule: Schedule = "linear"
    critic: float | None = (
        None  # c of rejection sampling: a board is kept with probability min(1, exp(score) / c)
    )

    corpora: str | None = None  # of a conditional model: the names of its corpora, with commas between

    def __post_init__(self) -> None:
        if self.corpora is not None and (type(self.corpora) is not str or not 0 < len(self.corpora) <= 1000):
            raise MaskobanError(f"corpora: expected 1 to 1000 letters, got {_shown(self.corpora)}")
        if type(self.name) is not str or not 0 < len(self.name) <= 200:
            raise MaskobanError(f"name: expected 1 to 200 letters, got {_shown(self.name)}")
        for name, largest in _LARGEST.items():
            value = getattr(self, name)
            least = 0 if name in ("margin", "polish") else 1
            if type(value) is not int or not least <= value <= largest:
                raise MaskobanError(
                    f"{name}: expected a whole number from {least} to {largest}, got {_shown(value)}"
                )
        if 2 * self.margin >= min(self.height, self.width):
            raise MaskobanError(
                f"margin: expected less than half of {self.height}x{self.width}, got {self.margin}"
            )
        if type(self.timed) is not bool:
            raise MaskobanError(f"timed: expected true or false, got {_shown(self.timed)}")
        if type(self.schedule) is not str or self.schedule not in SCHEDULES:
            names = ", ".join(SCHEDULES)
            raise MaskobanError(f"schedule: expected one of {names}, got {_shown(self.schedule)}")
        if self.critic is not None and not (_is_number(self.critic) and 0 < self.critic < math.inf):
            raise MaskobanError(f"critic: expected a number above 0, got {_shown(self.critic)}")
        if self.bits not in (8, 16):
            raise MaskobanError(f"bits: expected 8 or 16, got {_shown(self.bits)}")
        for name in ("parameters", "training_steps", "training_minutes"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 <= value < math.inf):
                raise MaskobanError(f"{name}: expected a number from 0 on, got {_shown(value)}")

    @property
    def cells(self) -> int:
        """How many cells the model fills."""
        return (self.height - 2 * self.margin) * (self.width - 2 * self.margin)

    @classmethod
    def from_facts(cls, facts: object) -> Card:
        """The card that a model's metadata describes. Keys that are not known are ignored.

        >>> facts = {"name": "a", "height": 8, "width": 9, "margin": 1, "diffusion_steps": 42, "timed": False}
        >>> Card.from_facts(facts).cells
        42
        >>> Card.from_facts(facts | {"margin": 9})
        Traceback (most recent call last):
            ...
        maskoban.errors.MaskobanError: margin: expected less than half of 8x9, got 9
        """
        if not isinstance(facts, Mapping):
            raise MaskobanError(f"metadata: expected an object, got {_shown(facts)}")
        known = {field.name: facts[field.name] for field in fields(cls) if field.name in facts}
        missing = [
            field.name for field in fields(cls) if field.default is MISSING and field.name not in known
        ]
        if missing:
            raise MaskobanError(f"metadata: {', '.join(missing)} missing")
        return cls(**known)

    def facts(self) -> dict[str, Any]:
        """The metadata to write: what is not None, the schedule only where it is not linear."""
        left_out = {"schedule": "linear"}
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None and left_out.get(name) != value
        }


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
