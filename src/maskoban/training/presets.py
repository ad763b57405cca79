"""Presets: every number of a training run in one frozen value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.schedule import Schedule


@dataclass(frozen=True)
class Preset:
    """A run, whole. ``dataclasses.replace`` makes a variation of one."""

    name: str

    # The board and the network that draws it.
    network: Literal["paper", "interior"]
    height: int
    width: int
    d: int
    blocks: int
    heads: int
    hidden: int
    dropout: float

    # Diffusion: T, the schedule, how cells are hidden, what an example weighs.
    diffusion_steps: int
    schedule: Schedule
    corruption: Literal["independent", "exact"]
    stratified: bool
    time_power: float  # t = T u^power: above 1, examples with few hidden cells come more often and weigh less
    weight_cap: float

    # Optimisation. Muon takes the matrices of the blocks, AdamW everything else (or everything).
    batch: int
    steps: int
    optimizer: Literal["adamw", "muon"]
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    muon_learning_rate: float
    muon_momentum: float
    warmup: int
    decay: Literal["cosine", "linear"]
    decay_share: float  # the last part of the run over which the rate falls to zero
    clip: float | None
    ema: float | None
    precision: Literal["fp32", "bf16", "fp16"]
    seed: int

    # What is measured on the way, every so many steps.
    validate_every: int
    validation_boards: int
    sample_every: int
    sample_boards: int

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(Preset).items():
            value = getattr(self, name)
            if get_origin(kind) is Literal and value not in get_args(kind):
                raise MaskobanError(f"{name} is {' or '.join(map(repr, get_args(kind)))}, not {value!r}")
            least = 0 if name == "warmup" else 1
            if kind is int and name != "seed" and value < least:
                raise MaskobanError(f"{name} must be at least {least}, and is {value}")
        for name in ("learning_rate", "muon_learning_rate", "weight_decay", "clip"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise MaskobanError(f"{name} must be a number from 0 on, and is {value}")
        if self.optimizer == "muon" and self.learning_rate and not self.muon_learning_rate:
            raise MaskobanError(
                "optimizer=muon with muon_learning_rate=0 would leave all matrices as they begin; "
                "set muon_learning_rate too (best has 0.02, and muon_momentum=0.95)"
            )
        if self.corruption == "exact" and self.schedule != "linear":
            raise MaskobanError(
                f"schedule={self.schedule} means nothing where exact numbers of cells are hidden; "
                "set corruption=independent too"
            )
        if self.d % (4 * self.heads):
            raise MaskobanError(f"d must be a multiple of four times the {self.heads} heads, and is {self.d}")
        if not 0 < self.decay_share <= 1:
            raise MaskobanError(f"decay_share must be above 0 and at most 1, and is {self.decay_share}")
        if not 1 <= self.time_power < math.inf:
            raise MaskobanError(f"time_power must be at least 1, and is {self.time_power}")
        if not 0 < self.weight_cap < math.inf:
            raise MaskobanError(f"weight_cap must be a number above 0, and is {self.weight_cap}")
        for name in ("betas", "muon_momentum", "ema"):
            value = getattr(self, name)
            for each in value if isinstance(value, tuple) else (value,):
                if each is not None and not 0 <= each < 1:
                    raise MaskobanError(f"{name} must be at least 0 and below 1, and is {each}")
        if abs(self.seed) > 2**40:
            raise MaskobanError(f"seed must lie within 2^40 of 0, and is {self.seed}")
        if not 0 <= self.dropout < 1:
            raise MaskobanError(f"dropout must be at least 0 and below 1, and is {self.dropout}")


#: What is only measured on the way, and may be changed in the middle of a run.
MEASURING = ("validate_every", "sample_every", "sample_boards")

#: The paper's run, every number as it stands there; bf16 in place of its fp16.
PAPER = Preset(
    name="paper",
    network="paper", height=10, width=10, d=256, blocks=6, heads=8, hidden=1024, dropout=0.1,
    diffusion_steps=100, schedule="linear", corruption="independent", stratified=False, time_power=1.0,
    weight_cap=10.0,
    batch=1536, steps=292_000,
    optimizer="adamw", learning_rate=2.45e-4, betas=(0.9, 0.999), weight_decay=0.01,
    muon_learning_rate=0.0, muon_momentum=0.0,
    warmup=125, decay="cosine", decay_share=1.0, clip=1.0, ema=None, precision="bf16", seed=0,
    validate_every=1000, validation_boards=50_000, sample_every=50_000, sample_boards=5000,
)  # fmt: skip

#: Ours: interior tokens, no time input, the ELBO's weight, exact mask counts, Muon, twice the paper's depth.
BEST = Preset(
    name="best",
    network="interior", height=10, width=10, d=256, blocks=12, heads=4, hidden=1024, dropout=0.0,
    diffusion_steps=64, schedule="linear", corruption="exact", stratified=True, time_power=2.0,
    weight_cap=1.0,
    batch=1536, steps=60_000,
    optimizer="muon", learning_rate=2e-3, betas=(0.9, 0.98), weight_decay=0.0,
    muon_learning_rate=0.02, muon_momentum=0.95,
    warmup=200, decay="linear", decay_share=0.6, clip=None, ema=None, precision="bf16", seed=0,
    validate_every=1000, validation_boards=16_384, sample_every=10_000, sample_boards=5000,
)  # fmt: skip

#: A laptop's: 8x8 boards, a net of 0.2M parameters, minutes on two cores.
TINY = Preset(
    name="tiny",
    network="interior", height=8, width=8, d=64, blocks=4, heads=2, hidden=256, dropout=0.0,
    diffusion_steps=36, schedule="linear", corruption="exact", stratified=True, time_power=2.0,
    weight_cap=1.0,
    batch=128, steps=2000,
    optimizer="muon", learning_rate=3e-3, betas=(0.9, 0.98), weight_decay=0.0,
    muon_learning_rate=0.02, muon_momentum=0.95,
    warmup=50, decay="linear", decay_share=0.6, clip=None, ema=None, precision="fp32", seed=0,
    validate_every=200, validation_boards=1024, sample_every=1000, sample_boards=200,
)  # fmt: skip

PRESETS = {preset.name: preset for preset in (PAPER, BEST, TINY)}


def preset_named(name: str) -> Preset:
    """The preset of this name.

    >>> preset_named("paper").steps
    292000
    """
    if name not in PRESETS:
        raise MaskobanError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]


def vary(preset: Preset, changes: list[str]) -> Preset:
    """A preset with some of its numbers changed, each given as ``name=value``.

    >>> vary(PAPER, ["steps=1000", "dropout=0"]).steps
    1000
    """
    kinds = get_type_hints(Preset)
    values: dict[str, Any] = {}
    for change in changes:
        name, _, text = change.partition("=")
        if name not in kinds:
            raise MaskobanError(f"a preset has no setting {name!r}; it has {', '.join(kinds)}")
        read, expected = _READERS.get(kinds[name], (str, "a word"))
        try:
            values[name] = read(text)
        except (KeyError, ValueError) as error:
            raise MaskobanError(f"{name}={text}: expected {expected}") from error
    return replace(preset, **values)


def _two_numbers(text: str) -> tuple[float, float]:
    first, second = text.split(",")
    return float(first), float(second)


#: How a setting of each type is read from text, and what that text should have been.
_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (int, "a whole number"),
    float: (float, "a number"),
    float | None: (lambda text: None if text == "none" else float(text), "a number or none"),
    bool: ({"true": True, "false": False}.__getitem__, "true or false"),
    tuple[float, float]: (_two_numbers, "two numbers with a comma between"),
}
