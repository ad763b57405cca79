"""The options of the training commands. The command line and ``python -m maskoban.training`` are made from them.

This module imports neither torch nor NumPy, so that ``--help`` is quick.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

from maskoban.errors import MaskobanError


def _option(meaning: str, default: Any = None, *, shown: str | None = None, flag: str | None = None) -> Any:
    """A field with its help text; ``shown`` says what None means, ``flag`` is an option name other than the field's."""
    metadata = {"meaning": meaning, "shown": shown, "flag": flag}
    if isinstance(default, list):
        return field(default_factory=list, metadata=metadata)
    return field(default=default, metadata=metadata)


def wait_passively() -> None:
    """Make the threads of torch sleep while they wait for each other. Call it before torch is imported.

    By default they spin. On a machine that does other work too, two of them then take ten times as long as one.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _check(name: str, value: float | None, least: float) -> None:
    if value is not None and not least <= value < math.inf:
        raise MaskobanError(f"--{name.replace('_', '-')}: expected a number from {least} on, got {value}")


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of a training run beside its preset."""

    preset: str | None = _option(
        "Settings to start from: best, paper, tiny or any.", shown="best, or the resumed run's"
    )
    corpus: str | None = _option(
        "Boards to learn from: a file, a folder, or the name of a corpus.",
        shown="boxoban-medium-train; tiny: synthetic 8x8 boards",
    )
    held_out: str | None = _option(
        "Boards for the held-out loss.", shown="boxoban-medium-valid, or the last tenth of the corpus"
    )
    out: str | None = _option("Folder of the run: checkpoint, log, sampled boards.", shown="runs/PRESET")
    settings: list[str] = _option("Change a setting of the preset: NAME=VALUE.", [], flag="--set")  # noqa: RUF009
    minutes: float | None = _option(
        "Train this long; the learning-rate schedule follows the clock.", shown="train for the preset's steps"
    )
    resume: bool = _option("Continue from the checkpoint in --out.", False)
    start_from: str | None = _option(
        "Start with the weights of another run or of a model.", shown="random weights"
    )
    stop_at: int | None = _option("Stop after this step, to --resume later.", shown="the end")
    anneal: int | None = _option(
        "With --resume: end in this many steps, with rates that fall to zero. --out keeps a copy of the run.",
        shown="the preset's schedule",
    )
    device: str | None = _option("cpu, cuda, ...", shown="cuda if there is one")
    threads: int | None = _option("CPU threads of torch.", shown="all cores")
    compile: bool | None = _option("Compile the training step.", shown="on cuda")
    save_every: int = _option(
        "Steps between two checkpoints; one is saved every five minutes in any case.", 10_000
    )
    compact: bool = _option("Save optimiser moments in bf16.", False)
    largest_file: float | None = _option("Split the checkpoint into files of this many MB.", shown="one file")
    tensorboard: bool = _option("Write TensorBoard events too.", False)
    quiet: bool = _option("Print nothing.", False)

    def __post_init__(self) -> None:
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise MaskobanError(f"--minutes: expected a number above 0, got {self.minutes:g}")
        for name in ("stop_at", "anneal", "threads", "save_every"):
            _check(name, getattr(self, name), 1)
        if self.resume and self.start_from is not None:
            raise MaskobanError("--start-from: expected a new run, got --resume too")


@dataclass(frozen=True, kw_only=True)
class CriticOptions:
    """The options of a critic's training."""

    model: str = _option("Model to judge: a shipped name, the folder of an exported model, or a run.", "best")
    corpus: str = _option("Boards the model was trained on.", "boxoban-medium-train")
    held_out: str | None = _option(
        "Boards the model was not trained on.",
        shown="boxoban-medium-valid; of a model with conditions: the last tenth of the corpus",
    )
    out: str = _option("Folder of the run: critic, log, held-out scores.", "runs/critic")
    samples: str = _option("How many boards to sample from the model, or a file of sampled boards.", "200000")
    boards_out: str | None = _option("Save the sampled boards: an .npz for --samples.", shown="not saved")
    polish: int | None = _option(
        "Gibbs sweeps of the sampled boards.", shown="the model's, or what the file says"
    )
    minutes: float = _option("Train this long.", 5.0)
    rank: int = _option("Rank of the LoRA matrices.", 32)
    batch: int = _option("Boards a step, half of them sampled.", 1024)
    learning_rate: float = _option("Learning rate of AdamW.", 1e-3)
    weight_decay: float = _option("Weight decay of AdamW.", 0.01)
    warmup: int = _option("Steps over which the rate rises from zero.", 100)
    validate_every: int = _option("Steps between two held-out losses.", 1000)
    held_out_boards: int = _option("Held-out boards of either kind.", 25_000)
    seed: int = _option("Seed of the sampled boards, the weights and the batches.", 0)
    device: str | None = _option("cpu, cuda, ...", shown="cuda if there is one")

    def __post_init__(self) -> None:
        if not 0 < self.minutes < math.inf:
            raise MaskobanError(f"--minutes: expected a number above 0, got {self.minutes:g}")
        for name, least in (("rank", 1), ("batch", 2), ("warmup", 1), ("validate_every", 1), ("held_out_boards", 1),
                            ("learning_rate", 0), ("weight_decay", 0), ("polish", 0)):  # fmt: skip
            _check(name, getattr(self, name), least)
