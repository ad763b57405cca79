"""``maskoban evaluate``: measure generators of boards and write a report."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from maskoban.cli.options import Device, Sampling, Seed
from maskoban.cli.output import boards_text

if TYPE_CHECKING:
    from maskoban.evaluation.measure import Generator, Plan
    from maskoban.evaluation.report import Report


@dataclass
class Generators:
    """What makes the boards."""

    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            show_default="best",
            metavar="MODEL[:SAMPLER]",
            help="A shipped model's name, a folder, or a hub id, and maybe its sampler. Repeatable.",
        ),
    ] = None
    boards: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|synth|random",
            help="A file of boards, the boards of corpus synth, or random ones, instead of a model. Repeatable.",
        ),
    ] = None
    device: Device = "cpu"

    def load(self, sampling: Sampling) -> list[Generator]:
        """Models and boards in the order in which they were given."""
        import maskoban
        from maskoban.errors import MaskobanError
        from maskoban.evaluation.measure import Generator

        names = self.models or ([] if self.boards else ["best"])
        if not names and (self.device != "cpu" or sampling != Sampling()):
            raise MaskobanError("--device and the options of sampling are for a model: --boards needs none")
        found = []
        for name in names:
            model_name, sampler = _with_sampler(name, sampling.sampler)
            model = maskoban.load(model_name, self.device)
            title = model.name if sampler == "best" else f"{model.name}-{sampler}"
            found.append(Generator(title, model, replace(sampling, sampler=sampler).config(model)))
        for name in self.boards or ():
            rule = cast(Literal["synth", "random"], name)
            file = Path(name)
            found.append(Generator(name, rule) if name in ("synth", "random") else Generator(file.stem, file))
        return found


@dataclass
class Measuring:
    """What is measured, and against what."""

    samples: Annotated[int, typer.Option(min=1, help="How many boards to sample.")] = 50_000
    seed: Seed = 0
    sweep: Annotated[
        int, typer.Option(min=0, help="Boards for each other sampler of a single model; 0 leaves them out.")
    ] = 1_000
    axes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X,Y",
            show_default="walls,effort and pushes,box_changes",
            help="Two measures for an expressive range plot: walls, effort, decomposed_effort, pushes, moves, "
            "box_changes, box_lines. Repeatable.",
        ),
    ] = None
    corpus: Annotated[
        str | None,
        typer.Option(
            show_default="boxoban-medium-train, if it was fetched",
            help="Training levels to look for copies of.",
        ),
    ] = None
    held_out: Annotated[
        str | None,
        typer.Option(
            metavar="LEVELS",
            show_default="Boxoban's",
            help="Levels held out of that corpus, to compare patterns, tiles, copies and difficulty with.",
        ),
    ] = None
    log: Annotated[Path | None, typer.Option(help="log.jsonl of the training run.")] = None

    def plan(self) -> Plan:
        """The plan of a report. What cannot be read is said before the work; held-out levels are read first anyway."""
        from maskoban.evaluation.measure import Plan
        from maskoban.evaluation.measures.board_measures import axes_of
        from maskoban.evaluation.measures.distances import training_levels

        given = {name: value for name, value in vars(self).items() if value is not None}
        if self.axes:
            given["axes"] = tuple(axes_of(each) for each in self.axes)
        if self.corpus is not None:
            training_levels(self.corpus)
        return Plan(**given)


def evaluate(
    sampling: Sampling,
    generators: Generators,
    measuring: Measuring,
    out: Annotated[Path, typer.Option(help="Folder for the report; the same folder again resumes.")],
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
    from maskoban._util.signals import terminate_as_interrupt
    from maskoban.errors import MaskobanError
    from maskoban.evaluation.evaluate import check_output, compare
    from maskoban.evaluation.evaluate import evaluate as write_report

    several = len(generators.models or ()) + len(generators.boards or ()) > 1
    if several and measuring.log is not None:
        raise MaskobanError("--log is for a report of one model, got several generators")
    plan = measuring.plan()
    check_output(out)
    try:
        with terminate_as_interrupt():
            made_by = generators.load(sampling)
            say, progress = partial(print, file=sys.stderr), sys.stderr.isatty()
            if several:
                reports = compare(made_by, out, replace(plan, sweep=0), say, progress).generators
            else:
                reports = {"": write_report(made_by[0], out, plan, say, progress)}
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the same command resumes from what is in {out}") from None
    for name, report in reports.items():
        _print_summary(report, f"{name}: " if name else "")
    print(out / "report.html")


def _with_sampler(text: str, default: str) -> tuple[str, str]:
    """The model and the sampler of MODEL[:SAMPLER]; a colon elsewhere, as in C:\\models, belongs to the name."""
    from maskoban.diffusion.sampler import SAMPLERS

    name, _, sampler = text.rpartition(":")
    return (name, sampler) if name and sampler in SAMPLERS else (text, default)


def _print_summary(report: Report, prefix: str) -> None:
    assert report.solvability is not None
    found = report.solvability.solvable
    interval = f"{found.share:.1%} solvable (95 %: {found.low:.1%} to {found.high:.1%})"
    print(f"{prefix}{boards_text(found.total)}, {interval}", file=sys.stderr)
    for name, why in report.notes.items():
        print(f"{prefix}{name}: {why}", file=sys.stderr)
