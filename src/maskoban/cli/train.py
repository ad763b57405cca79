"""maskoban train, train critic, export: train a model, train its critic, and make a trained run a model to ship."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from maskoban.cli.options import grouped
from maskoban.cli.output import progress_bar
from maskoban.errors import MaskobanError
from maskoban.training.options import CriticOptions, TrainOptions, wait_passively


class _TrainGroup(TyperGroup):
    """The train command, whose help ends with the settings of the presets."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from rich import box
        from rich.console import Console
        from rich.table import Table

        from maskoban.training.config import PRESETS, Preset

        super().format_help(ctx, formatter)
        table = Table(box=box.SIMPLE_HEAD, title="Settings of the presets, changed by --set NAME=VALUE")
        for column in ("setting", "meaning", *PRESETS):
            table.add_column(column, no_wrap=column == "setting")
        for field in fields(Preset):
            values = [
                str(getattr(preset, field.name)).lower() for preset in map(PRESETS.__getitem__, PRESETS)
            ]
            table.add_row(field.name, field.metadata["meaning"], *values)
        Console().print(table)


@contextmanager
def _training_installed(what: str) -> Iterator[None]:
    """Turn an import that fails into a sentence."""
    try:
        yield
    except ImportError as error:
        raise MaskobanError(f"{what} needs {error.name}: pip install 'maskoban[train]'") from None


train = typer.Typer(cls=_TrainGroup, invoke_without_command=True, rich_markup_mode="rich")


@train.callback()
@grouped
def _train(context: typer.Context, options: TrainOptions) -> None:
    """Train a model that generates boards.

    A run is a preset with some of its settings changed. Board size and diffusion
    steps follow the corpus. Ctrl-C saves; [b]--resume[/b] continues exactly. Several
    GPUs: torchrun --nproc-per-node 8 -m maskoban.training and the same options.

    \b
    Examples:
      maskoban train --preset tiny --minutes 5
      maskoban train --corpus levels.npz --out runs/mine --set blocks=6 --set seed=1
      maskoban train --out runs/mine --resume
      maskoban export runs/mine mine
    """
    wait_passively()
    if context.invoked_subcommand is not None:
        return
    with _training_installed("training"):
        from maskoban.training.run import train as run
    run(options)


@train.command("critic")
@grouped
def _critic(options: CriticOptions) -> None:
    """Train a critic: a discriminator between corpus boards and a model's samples.

    Samples boards from the model, trains the critic on them and on the corpus, and
    saves the one with the lowest held-out loss. [b]maskoban export --critic[/b] adds
    it to the model, which then rejects boards that the critic finds unlikely.

    \b
    Examples:
      maskoban train critic --model best --samples 400000 --minutes 4
      maskoban export best better --critic runs/critic
    """
    with _training_installed("training"):
        from maskoban.training.critic import train_critic
    print(f"held-out cross-entropy {train_critic(options):.4f}")


def fetch(
    name: Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model: any.")],
    source: Annotated[
        str, typer.Option("--from", metavar="PLACE", help="A folder with its files, or their address.")
    ],
    to: Annotated[Path | None, typer.Option(show_default="the cache", help="Folder for the files.")] = None,
) -> None:
    """Get a shipped model that did not come with this package.

    Every file is verified against a list of checksums. Prints the folder. In the
    cache, every command finds it.

    \b
    Examples:
      maskoban fetch any --from maskoban/src/maskoban/weights/any
    """
    from maskoban.diffusion.loading import fetch_model

    print(fetch_model(name, source, to))


def export(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Folder of a training run or of a model, or a shipped name.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the model.")],
    name: Annotated[
        str | None, typer.Option(show_default="the model's, or the preset's", help="Name of the model.")
    ] = None,
    polish: Annotated[
        int | None,
        typer.Option(min=0, show_default="the model's, or 0", help="Gibbs sweeps of the sampler best."),
    ] = None,
    critic: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", show_default="the model's", help="Folder of a critic's run, or a model with one."
        ),
    ] = None,
    critic_cutoff: Annotated[
        float | None,
        typer.Option(
            metavar="C",
            show_default="that of the critic's folder, or 1",
            help="Accept a board with probability min(1, exp(score) / C).",
        ),
    ] = None,
    critic_rank: Annotated[
        int | None,
        typer.Option(
            min=1,
            show_default="as trained",
            help="Cut the critic's LoRA matrices to this rank: a smaller file.",
        ),
    ] = None,
    bits: Annotated[
        int | None, typer.Option(metavar="8|16", show_default="the model's, or 16", help="Bits of a weight.")
    ] = None,
    prune: Annotated[
        str | None,
        typer.Option(metavar="LEVELS", help="Leave out hidden units that open for none of 10,000 of these."),
    ] = None,
    passes: Annotated[
        int | None,
        typer.Option(
            min=1, show_default="as in training", help="Passes of a looped network, per evaluation."
        ),
    ] = None,
) -> None:
    """Make a trained run a model that needs no torch.

    Writes model.safetensors (the weights), model.onnx (the graph over them,
    compared with torch) and model.int8.onnx (faster, less exact), and prints the
    model's metadata. With a critic, also critic.safetensors (the weights it adds)
    and critic.onnx.

    \b
    Examples:
      maskoban export runs/tiny tiny
      maskoban generate --model tiny
      maskoban export tiny tiny-small --bits 8 --prune boxoban-medium-valid
      maskoban export tiny tiny-2 --critic runs/critic --critic-cutoff 2
    """
    from maskoban.boards.corpus import load

    with _training_installed("exporting"):
        from maskoban.training.export import export as write_model
    levels = load(prune) if prune is not None else None
    if levels is not None:
        levels = levels[:: max(1, len(levels) // 10_000)]
    with progress_bar("looking for idle units") as on_progress:
        facts = write_model(
            run, out, name, polish, critic, critic_cutoff, bits, levels, passes, critic_rank, on_progress
        )
    for key, value in facts.items():
        print(f"{key.replace('_', ' ')}: {value}")
