"""``maskoban evaluate``: measure generators of boards and write a report."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskoban.cli.options import Sampling

if TYPE_CHECKING:
    from maskoban.evaluation.measure import Generator


def evaluate(
    sampling: Sampling,
    out: Annotated[Path, typer.Option(help="Folder for the report; the same folder again resumes.")],
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            show_default="best",
            metavar="MODEL[:SAMPLER]",
            help="A shipped model's name, a folder, or a hub id, and maybe a sampler of its own. Repeatable.",
        ),
    ] = None,
    boards: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|synth|random",
            help="A file of boards, the boards of corpus synth, or random ones, instead of a model. Repeatable.",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="How many boards to sample.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Same seed, same boards.")] = 0,
    sweep: Annotated[
        int, typer.Option(min=0, help="Boards for each other sampler of a single model; 0 leaves them out.")
    ] = 1_000,
    axes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X,Y",
            show_default="walls,effort and pushes,box_changes",
            help="Two measures for an expressive range plot: walls, effort, decomposed_effort, pushes, moves, "
            "box_changes, box_lines. Repeatable.",
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            show_default="boxoban-medium-train, if it was fetched",
            help="Training levels to look for copies of.",
        ),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            metavar="LEVELS",
            show_default="Boxoban's",
            help="Levels held out of that corpus, to compare patterns, tiles, copies and difficulty with.",
        ),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="log.jsonl of the training run.")] = None,
    device: Annotated[str, typer.Option(help="Where the network runs: cpu, or cuda (needs torch).")] = "cpu",
) -> None:
    """Measure a generator of boards as the paper does, or several side by side, and write a report.

    OUT gets report.html (one page, nothing fetched), report.json (every number)
    and figures/ (SVG, PNG, and JSON with the data of each). The work is done in
    stages; interrupted, the same command resumes, and gives the same report.

    --boards takes any level file, or an .npz with [b]boards[/b], uint8 (n, h, w), and
    maybe [b]probabilities[/b], float16 or float32 (n, h, w): of each cell's tile when
    it was committed, NaN where it was given. All of its boards are measured;
    --samples and --seed are for models, synth and random.

    \b
    Examples:
      maskoban evaluate --samples 500 --sweep 0 --out report
      maskoban evaluate --model best --samples 50000 --device cuda --out report
      maskoban evaluate --boards sampled-elsewhere.npz --axes walls,pushes --out report
      maskoban evaluate --model best --model best:plain --boards synth --boards random --samples 500 --out report
      maskoban evaluate --model mine --corpus mine.npz --held-out rest.npz --out report
    """
    import maskoban
    from maskoban._util.signals import terminate_as_interrupt
    from maskoban.errors import MaskobanError
    from maskoban.evaluation.evaluate import check_output, compare
    from maskoban.evaluation.evaluate import evaluate as write_report
    from maskoban.evaluation.measure import Generator, Plan
    from maskoban.evaluation.measures.board_measures import axes_of
    from maskoban.evaluation.measures.distances import training_levels

    names = models or ([] if boards else ["best"])
    if not names and (device != "cpu" or sampling != Sampling()):
        raise MaskobanError("--device and the options of sampling are for a model: --boards needs none")
    several = len(names) + len(boards or []) > 1
    if several and log is not None:
        raise MaskobanError("--log is for a report of one model, got several generators")
    pairs = tuple(axes_of(each) for each in axes) if axes else Plan.axes
    check_output(out)
    # What cannot be read is said before the work; held-out levels are read first anyway.
    if corpus is not None:
        training_levels(corpus)
    generators = []
    for name in names:
        model_name, sampler = _with_sampler(name, sampling.sampler)
        model = maskoban.load(model_name, device)
        title = model.name if sampler == "best" else f"{model.name}-{sampler}"
        generators.append(Generator(title, model, replace(sampling, sampler=sampler).config(model)))
    generators += [_without_model(each, Generator) for each in boards or []]
    plan = Plan(
        samples=samples,
        seed=seed,
        sweep=0 if several else sweep,
        corpus=corpus or Plan.corpus,
        held_out=held_out,
        log=None if log is None else str(log),
        axes=pairs,
    )
    try:
        with terminate_as_interrupt():
            say = partial(print, file=sys.stderr)
            progress = sys.stderr.isatty()
            if several:
                reports = compare(generators, out, plan, say, progress).generators
            else:
                reports = {"": write_report(generators[0], out, plan, say, progress)}
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the same command resumes from what is in {out}") from None
    for name, report in reports.items():
        _tell(report, f"{name}: " if name else "")
    print(out / "report.html")


def _with_sampler(text: str, default: str) -> tuple[str, str]:
    """The model and the sampler of MODEL[:SAMPLER]; a colon elsewhere, as in C:\\models, belongs to the name."""
    from maskoban.diffusion.sampler import SAMPLERS

    name, _, sampler = text.rpartition(":")
    return (name, sampler) if name and sampler in SAMPLERS else (text, default)


def _without_model(text: str, make: type[Generator]) -> Generator:
    if text in ("synth", "random"):
        return make(text, text)  # type: ignore[arg-type]
    return make(Path(text).stem, Path(text))


def _tell(report: object, prefix: str) -> None:
    from maskoban.evaluation.report import Report

    assert isinstance(report, Report)
    assert report.solvability is not None
    found = report.solvability.solvable
    told = f"{found.share:.1%} solvable (95 %: {found.low:.1%} to {found.high:.1%})"
    print(f"{prefix}{found.total:,} board{'' if found.total == 1 else 's'}, {told}", file=sys.stderr)
    for name, why in report.notes.items():
        print(f"{prefix}{name}: {why}", file=sys.stderr)
