"""Presets: every number of a training run in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

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


#: The paper's run, every number as it stands there; bf16 in place of its fp16.
PAPER = Preset(
    name="paper",
    network="paper", height=10, width=10, d=256, blocks=6, heads=8, hidden=1024, dropout=0.1,
    diffusion_steps=100, schedule="linear", corruption="independent", stratified=False, weight_cap=10.0,
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
    diffusion_steps=64, schedule="linear", corruption="exact", stratified=True, weight_cap=1.0,
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
    diffusion_steps=36, schedule="linear", corruption="exact", stratified=True, weight_cap=1.0,
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
    kinds = {field.name: type(getattr(preset, field.name)) for field in fields(Preset)}
    values: dict[str, Any] = {}
    for change in changes:
        name, _, text = change.partition("=")
        if name not in kinds:
            raise MaskobanError(f"a preset has no setting {name!r}; it has {', '.join(kinds)}")
        try:
            values[name] = _parsed(kinds[name], text)
        except ValueError as error:
            raise MaskobanError(f"{name}={text}: expected {kinds[name].__name__}") from error
    return replace(preset, **values)


def _parsed(kind: type, text: str) -> Any:
    if text == "none":
        return None
    if kind is bool:
        if text not in ("true", "false"):
            raise ValueError(text)
        return text == "true"
    if kind is tuple:
        first, second = text.split(",")
        return float(first), float(second)
    return float(text) if kind is type(None) else kind(text)
