"""A training run from its options: what ``maskoban train`` does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from maskoban._util.signals import terminate_as_interrupt
from maskoban.errors import MaskobanError
from maskoban.nn.runtime import default_device
from maskoban.training.checkpoint import load_checkpoint
from maskoban.training.config import PRESETS, Preset, parse_settings
from maskoban.training.data import fit_to_corpus, load_corpus
from maskoban.training.distributed import Processes, joined
from maskoban.training.options import TrainOptions
from maskoban.training.trainer import Trainer


def train(options: TrainOptions) -> None:
    """Train a model, alone or as one of the processes that torchrun started."""
    device = options.device or default_device()
    with joined(device) as (processes, own), terminate_as_interrupt(processes.count):
        options = replace(options, device=own)
        preset, chosen = processes.from_first(lambda: _preset(options))
        out = Path(options.out or f"runs/{preset.name}")
        trainer = processes.together(lambda: _trainer(options, preset, chosen, out, processes))
        if options.resume:
            processes.together(trainer.resume)
        elif options.start_from is not None:
            source = options.start_from
            processes.together(lambda: trainer.start_from(source))
        trainer.run()


def _preset(options: TrainOptions) -> tuple[Preset, set[str]]:
    """The preset with the options' settings, and the names of the settings that do not follow the corpus."""
    values = parse_settings(options.settings)
    if options.resume and options.preset is None:
        preset = load_checkpoint(Path(options.out or "runs/best"))[1]
        return replace(preset, **values), {"height", "width", "diffusion_steps", "corpora"}
    return replace(PRESETS[options.preset or "best"], **values), set(values)


def _trainer(
    options: TrainOptions, preset: Preset, chosen: set[str], out: Path, processes: Processes
) -> Trainer:
    if options.anneal is not None and not options.resume:
        raise MaskobanError("--anneal: expected --resume too; it ends a run that exists")
    if (out / "model.safetensors").is_file():
        raise MaskobanError(f"{out}: holds an exported model; expected another --out for a run")
    if not options.resume and any(out.glob("state*.safetensors")):
        raise MaskobanError(f"{out}: holds a run already; give --resume to continue it, or another --out")
    corpus, held_out = load_corpus(options.corpus, options.held_out, preset)
    preset = fit_to_corpus(preset, corpus, chosen)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    return Trainer(preset, corpus, held_out, out, options, processes)
