"""Presets: every number of a training run in one frozen value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from maskoban._util.registry import Registry
from maskoban.diffusion.schedule import SCHEDULES
from maskoban.errors import MaskobanError

_RANGES: dict[str, Callable[[float], bool]] = {
    "[0, 1)": lambda x: 0 <= x < 1,
    "(0, 1]": lambda x: 0 < x <= 1,
    "[0, 1]": lambda x: 0 <= x <= 1,
    "[0, inf)": lambda x: 0 <= x < math.inf,
    "(0, inf)": lambda x: 0 < x < math.inf,
    "[1, inf)": lambda x: 1 <= x < math.inf,
    "[-2^40, 2^40]": lambda x: abs(x) <= 2**40,
}


def _setting(meaning: str, values: str | None = None, **default: Any) -> Any:
    """A field with its meaning, and the range of its numbers."""
    return field(metadata={"meaning": meaning, "range": values}, **default)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The settings of a run. ``dataclasses.replace`` makes a variation of one.

    A setting that older checkpoints do not have needs a default.
    """

    name: str = _setting("Name of the preset, and of the model by default.")

    network: str = _setting("paper, interior, or a registered network.")
    height: int = _setting("Rows of a board; the corpus decides by default.", "[1, inf)")
    width: int = _setting("Columns of a board; the corpus decides by default.", "[1, inf)")
    d: int = _setting("Width of the residual stream.", "[1, inf)")
    blocks: int = _setting("Number of transformer blocks.", "[1, inf)")
    heads: int = _setting("Attention heads a block.", "[1, inf)")
    hidden: int = _setting("Hidden units of a feed-forward layer.", "[1, inf)")
    dropout: float = _setting("Dropout probability (paper network only).", "[0, 1)")
    final_norm: bool = _setting("Layer norm before the head (paper network only).", default=False)
    activation: Literal["gelu", "relu"] = _setting(
        "Non-linearity of the feed-forward layers (paper network only).", default="gelu"
    )
    unit: Literal["squared_relu", "gelu"] = _setting(
        "Non-linearity of the feed-forward layers (interior network only).", default="squared_relu"
    )
    initial_scale: float = _setting(
        "Factor of the initial matrices of a block (interior network only).", "[0, inf)", default=1.0
    )
    passes: int = _setting(
        "How many times the blocks are run (interior network only).", "[1, inf)", default=1
    )
    least_passes: int | None = _setting(
        "Draw the passes of a training step from this number to passes.", "[1, inf)", default=None
    )
    symmetry: float = _setting(
        "Share of training boards that are turned or mirrored, with a label (interior network only).",
        "[0, 1]", default=0.0,
    )  # fmt: skip

    corpora: str = _setting(
        "Names of the corpora a conditional network tells apart; the corpus decides by default.", default=""
    )
    condition_dropout: float = _setting(
        "Probability with which a condition is not given in training (conditional network only).",
        "[0, 1)", default=0.3,
    )  # fmt: skip

    diffusion_steps: int = _setting(
        "T, the number of noise levels; with exact corruption, the cells.", "[1, inf)"
    )
    schedule: str = _setting("Noise schedule alpha_t: linear, cosine, or a registered one.")
    corruption: Literal["independent", "exact"] = _setting(
        "Mask cells independently, or an exact number of them."
    )
    stratified: bool = _setting("Spread the times t of a batch evenly.")
    time_power: float = _setting(
        "t = T u^power: above 1, few masked cells come more often and weigh less.", "[1, inf)", default=1.0
    )
    weight_cap: float = _setting("Weight w(t) = min(1 / (1 - alpha_t), cap) of an example.", "(0, inf)")
    objective: str = _setting("cross_entropy, or a registered objective.", default="cross_entropy")
    average: Literal["board", "batch"] = _setting(
        "Average the loss over the masked cells of each board, or of the batch.", default="board"
    )

    batch: int = _setting("Boards a step, over all processes.", "[1, inf)")
    steps: int = _setting("Steps of the run, where --minutes is not given.", "[1, inf)")
    optimizer: Literal["adamw", "muon"] = _setting("muon trains matrices with Muon and the rest with AdamW.")
    learning_rate: float = _setting("Learning rate of AdamW.", "[0, inf)")
    betas: tuple[float, float] = _setting("Betas of AdamW.", "[0, 1)")
    weight_decay: float = _setting("Weight decay of AdamW.", "[0, inf)")
    muon_learning_rate: float = _setting("Learning rate of Muon.", "[0, inf)")
    muon_momentum: float = _setting("Momentum of Muon.", "[0, 1)")
    muon_weight_decay: float = _setting("Weight decay of Muon.", "[0, inf)", default=0.0)
    warmup: int = _setting("Steps over which the rates rise from zero.", "[0, inf)")
    decay: Literal["cosine", "linear"] = _setting("Shape of the decay of the rates to zero.")
    decay_share: float = _setting("Last part of the run over which the rates decay.", "(0, 1]")
    clip: float | None = _setting("Largest norm of the gradient.", "[0, inf)")
    ema: float | None = _setting("Memory of the weight average that is measured and exported.", "[0, 1)")
    precision: Literal["fp32", "bf16", "fp16"] = _setting("Dtype of activations and matrix products.")
    seed: int = _setting("Seed of the weights, the batches and the noise.", "[-2^40, 2^40]")

    validate_every: int = _setting("Steps between two held-out losses.", "[1, inf)")
    validation_boards: int = _setting("Held-out boards that are used.", "[1, inf)")
    sample_every: int = _setting("Steps between two samplings.", "[1, inf)")
    sample_boards: int = _setting("Boards sampled each time.", "[1, inf)")

    def __post_init__(self) -> None:
        kinds = get_type_hints(Preset)
        for each in fields(self):
            name, value, kind = each.name, getattr(self, each.name), kinds[each.name]
            if get_origin(kind) is Literal and value not in get_args(kind):
                raise MaskobanError(f"{name}: expected {' or '.join(get_args(kind))}, got {value!r}")
            allowed = each.metadata["range"]
            for number in value if isinstance(value, tuple) else (value,):
                if allowed and number is not None and not _RANGES[allowed](number):
                    raise MaskobanError(f"{name}: expected a number in {allowed}, got {number}")
        _ = SCHEDULES[self.schedule]
        if self.optimizer == "muon" and self.learning_rate and not self.muon_learning_rate:
            raise MaskobanError(
                "muon_learning_rate: expected more than 0 with optimizer=muon "
                "(best has muon_learning_rate=0.02 and muon_momentum=0.95)"
            )
        if self.least_passes is not None and self.least_passes > self.passes:
            raise MaskobanError(
                f"least_passes: expected at most passes={self.passes}, got {self.least_passes}"
            )
        if self.corruption == "exact" and self.schedule != "linear":
            raise MaskobanError(
                f"schedule: expected linear with corruption=exact, got {self.schedule}; set corruption=independent"
            )


#: Settings of what is measured on the way. They may change in the middle of a run.
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

#: For a laptop: 8x8 boards, 0.2M parameters, minutes on two cores.
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

#: Boards of any size from 5x5 to 16x16, with conditions as tokens. It learns from a mixed corpus and starts from
#: ``best``, so its rates are lower.
ANY = replace(
    BEST, name="any", network="conditional", diffusion_steps=1024, batch=1024, steps=40_000,
    learning_rate=1e-3, muon_learning_rate=0.01, decay_share=0.8,
)  # fmt: skip

#: The presets by name.
PRESETS = Registry[Preset]("preset", {preset.name: preset for preset in (PAPER, BEST, TINY, ANY)})


def parse_settings(changes: Sequence[str]) -> dict[str, Any]:
    """The values of settings given as ``name=value``.

    >>> parse_settings(["steps=1000", "dropout=0"])
    {'steps': 1000, 'dropout': 0.0}
    """
    kinds = get_type_hints(Preset)
    values: dict[str, Any] = {}
    for change in changes:
        name, _, text = change.partition("=")
        if name not in kinds:
            raise MaskobanError(f"unknown setting {name!r}; expected one of {', '.join(kinds)}")
        read, expected = _READERS.get(kinds[name], (str, "a word"))
        try:
            values[name] = read(text)
        except (KeyError, ValueError) as error:
            raise MaskobanError(f"{name}: expected {expected}, got {text!r}") from error
    return values


def load_preset(settings: Mapping[str, Any]) -> Preset:
    """The preset of a checkpoint: its settings as JSON has them, of this version or an older one."""
    return Preset(**dict(settings) | {"betas": tuple(settings["betas"])})


def _two_numbers(text: str) -> tuple[float, float]:
    first, second = text.split(",")
    return float(first), float(second)


#: How a setting of each type is read from text, and what the text should be.
_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (int, "a whole number"),
    float: (float, "a number"),
    float | None: (lambda text: None if text == "none" else float(text), "a number or none"),
    int | None: (lambda text: None if text == "none" else int(text), "a whole number or none"),
    bool: ({"true": True, "false": False}.__getitem__, "true or false"),
    tuple[float, float]: (_two_numbers, "two numbers with a comma between"),
}
