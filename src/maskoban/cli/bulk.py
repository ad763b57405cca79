"""``maskoban bulk``: make, verify, deduplicate and export datasets of boards."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maskoban.cli.options import (
    Device,
    Filter,
    Guidance,
    ModelName,
    SamplerName,
    Sampling,
    Seed,
    Size,
    grouped,
    parse_size,
)
from maskoban.cli.output import boards_text, progress_bar
from maskoban.errors import MaskobanError, need

if TYPE_CHECKING:
    from maskoban.bulk.dataset import Manifest

Folder = Annotated[Path, typer.Argument(metavar="DATASET", help="Folder of a finished dataset.")]


@dataclass
class BulkSampling(Sampling):
    """How boards are sampled; the default is the fastest that follows the model's distribution."""

    sampler: SamplerName = "plain"


def make(
    context: typer.Context,
    sampling: BulkSampling,
    board_filter: Filter,
    count: Annotated[int | None, typer.Option(min=1, help="How many boards.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the dataset; an unfinished one is continued.")
    ] = None,
    seed: Seed = 0,
    size: Size = None,
    guidance: Guidance = None,
    model_name: ModelName = None,
    device: Device = "cpu",
    repair: Annotated[
        bool, typer.Option("--repair", help="Remove a wall where that makes a board solvable.")
    ] = False,
    states: Annotated[int, typer.Option(min=1, help="Give up on a board after so many states.")] = 10_000_000,
    shard_size: Annotated[
        int | None, typer.Option(min=1, show_default="by the count", help="Boards sampled for one file.")
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Processes on this machine, or Ray Data.")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, show_default="all cores", help="Number of workers.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(show_default="a new Ray on this machine", help="Address of a Ray cluster.")
    ] = None,
) -> None:
    """Make a dataset: sample boards, solve and rate them, and write Parquet files.

    Boards are sampled with [b]--sampler plain[/b] by default; [b]--sampler best[/b] is what
    maskoban generate does by default, and slower. With --only-solvable,
    --difficulty or --boxes, the first boards of the seed's sequence that match are
    kept; a conditional model ([b]any[/b], the default for another --size) takes difficulty
    and boxes as conditions instead. Files are written whole. The same command continues a dataset that was
    killed or interrupted; Ctrl-C and SIGTERM end it with code 130. Engine and
    workers do not change the files. docs/datasets.md describes the columns.

    \b
    Examples:
      maskoban bulk --count 100000 --out dataset --sampler fast
      maskoban bulk --count 1000000 --out hard --difficulty hard --device cuda
      maskoban bulk --count 10000 --out small --size 7x9 --boxes 3
      maskoban bulk --count 1000000 --out dataset --engine ray --address auto
      maskoban bulk verify dataset
    """
    from maskoban._util.signals import terminate_as_interrupt

    context.with_resource(terminate_as_interrupt())
    if context.invoked_subcommand is not None:
        return
    if count is None or out is None:
        raise MaskobanError("a dataset needs --count and --out; see maskoban bulk --help")
    if address is not None and engine != "ray":
        raise MaskobanError("--address: expected together with --engine ray")
    need("a dataset", "bulk", "pyarrow")
    import maskoban
    from maskoban.bulk import run
    from maskoban.bulk.job import Job
    from maskoban.diffusion.loading import default_model

    wanted, board_size = board_filter.board_filter(), parse_size(size)
    model_name = model_name or default_model(board_size, wanted.boxes, guidance)
    model, left = maskoban.load(model_name).conditioned(wanted, board_size, guidance)
    config = sampling.config(model)
    job = Job(count, seed, config, left, repair, device, states, shard_size or 0, model.conditions)
    try:
        with progress_bar("making boards") as on_progress:
            manifest = run.make(job, out, model_name, engine, workers, address, on_progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the same command continues {out}") from None
    _print_totals(manifest)
    print(out)


bulk = typer.Typer(invoke_without_command=True)
bulk.callback()(grouped(make))


@bulk.command("verify")
def verify(
    dataset: Folder,
    sample: Annotated[int, typer.Option(min=0, help="Boards to solve again.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the choice of these boards.")] = 0,
) -> None:
    """Verify a dataset: the checksum of every file, its rows, and a sample solved again.

    Solutions of the sample are replayed by the rules. Problems are printed, a
    line each; then the exit code is 1.

    \b
    Examples:
      maskoban bulk verify dataset
      maskoban bulk verify dataset --sample 100000
    """
    need("a dataset", "bulk", "pyarrow")
    from maskoban.bulk.dataset import Dataset
    from maskoban.bulk.verify import verify

    with progress_bar("verifying") as on_progress:
        problems = verify(dataset, sample, seed, on_progress)
    for problem in problems:
        print(problem)
    if problems:
        raise typer.Exit(1)
    manifest = Dataset(dataset).finished()
    _print_totals(manifest)
    print(f"no problems; every file checked, {boards_text(min(sample, manifest.boards))} solved again")


@bulk.command("dedupe")
def dedupe(
    dataset: Folder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the dataset without duplicates.")],
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVELS",
            show_default=False,
            help="Leave out these puzzles, too: a dataset, levels, or a corpus's name. May be repeated.",
        ),
    ] = None,
    megabytes: Annotated[int, typer.Option(min=1, help="Memory for finding duplicates.")] = 1024,
) -> None:
    """Copy a dataset without duplicates: of each id, the first board is kept.

    Boards that are turned, mirrored or shifted have the same id. What does not
    fit in memory is stored in OUT while this runs. A file of the dataset whose
    checksum differs is an error.

    \b
    Examples:
      maskoban bulk dedupe dataset unique
      maskoban bulk dedupe dataset fresh --against boxoban-medium-train
    """
    need("a dataset", "bulk", "pyarrow", "duckdb")
    from maskoban.bulk.dedupe import dedupe

    with progress_bar("copying") as on_progress:
        manifest = dedupe(dataset, out, megabytes, against or (), on_progress)
    _print_totals(manifest)
    print(out)


def export(
    dataset: Folder,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder with the layout of Boxoban, or a level file.")
    ],
    board_filter: Filter,
    name: Annotated[
        str | None,
        typer.Option(
            show_default="unfiltered", help="Boxoban's name for the set: unfiltered, medium or hard."
        ),
    ] = None,
    valid: Annotated[
        float | None, typer.Option(min=0, max=1, show_default="0.05", help="Share of puzzles for validation.")
    ] = None,
    test: Annotated[
        float | None, typer.Option(min=0, max=1, show_default="0.05", help="Share of puzzles for tests.")
    ] = None,
) -> None:
    """Write a dataset as level files: the solved boards in Boxoban's layout, or all in one file.

    OUT/NAME/train/000.txt and so on, a thousand boards each; valid and test beside
    it. Turned and mirrored versions of a puzzle are in the same split. Where OUT
    has the suffix of a level file (.sok, .xsb, .slc, .npz, ...), it gets all boards
    in their order, with their verdicts and solutions. --only-solvable, --difficulty
    and --boxes use the columns of the dataset: nothing is solved again. A file of
    the dataset whose checksum differs is an error.

    \b
    Examples:
      maskoban bulk export dataset boxoban-levels
      maskoban bulk export dataset boxoban-levels --name medium --test 0
      maskoban bulk export dataset hard.sok --difficulty hard
    """
    need("a dataset", "bulk", "pyarrow")
    from maskoban.boards import by_suffix
    from maskoban.bulk.export import export_boxoban, export_levels

    options = {"name": name, "valid": valid, "test": test}
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    one_file = by_suffix(out.name) is not None and not out.is_dir()
    if one_file and given:
        raise MaskobanError(f"--name, --valid and --test: expected a folder, but {out} is a level file")
    wanted = board_filter.board_filter()
    with progress_bar("exporting") as on_progress:
        if one_file:
            counts = {"in all": export_levels(dataset, out, wanted, on_progress)}
        else:
            counts = export_boxoban(dataset, out, **given, board_filter=wanted, on_progress=on_progress)
    print(", ".join(f"{count:,} {split}" for split, count in counts.items()), file=sys.stderr)
    print(out if one_file else out / (name or "unfiltered"))


bulk.command("export")(grouped(export))


def _print_totals(manifest: Manifest) -> None:
    counts = sorted(manifest.verdicts.items(), key=lambda item: -item[1])
    parts = [boards_text(manifest.boards), ", ".join(f"{count:,} {verdict}" for verdict, count in counts)]
    size = f"{manifest.bytes / 1e6:,.1f} MB in {len(manifest.shards):,} files"
    print(f"{': '.join(filter(None, parts))}; {size}", file=sys.stderr)
