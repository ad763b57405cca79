"""``maskoban evaluate``: measure generators of boards and write a report."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    out: Annotated[Path, typer.Option(help="Folder for the report; the same folder again goes on.")],
    model_name: Annotated[
        str | None,
        typer.Option("--model", show_default="best", help="A shipped model's name, a folder, or a hub id."),
    ] = None,
    boards: Annotated[Path | None, typer.Option(help="Boards drawn elsewhere, instead of a model.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="How many boards to draw.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Same seed, same boards.")] = 0,
    polish: Annotated[
        int | None, typer.Option(show_default="the model's own", help="Sweeps that redraw every cell once.")
    ] = None,
    critic: Annotated[
        bool | None,
        typer.Option(
            "--critic/--no-critic",
            show_default="the model's own way",
            help="Draw again what the model's critic takes for drawn.",
        ),
    ] = None,
    sweep: Annotated[
        int, typer.Option(min=0, help="Boards for each other way of drawing; 0 leaves them out.")
    ] = 1_000,
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
            help="Levels held out of that corpus, to read patterns, tiles and copies against.",
        ),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="log.jsonl of the training run.")] = None,
    device: Annotated[str, typer.Option(help="Where the network runs: cpu, or cuda (needs torch).")] = "cpu",
) -> None:
    """Measure a generator of boards as the paper does, and write a report.

    OUT gets report.html (one page, nothing fetched), report.json (every number)
    and figures/ (SVG, PNG, and JSON with the data of each). The work is done in
    stages; interrupted, the same command goes on, and gives the same report.

    --boards takes any level file, or an .npz with [b]boards[/b], uint8 (n, h, w), and
    maybe [b]probabilities[/b], float16 or float32 (n, h, w): of each cell's tile when
    it was committed, NaN where it was given. All of its boards are measured;
    --samples, --seed and --sweep are for a model.

    \b
    Examples:
      maskoban evaluate --samples 500 --sweep 0 --out report
      maskoban evaluate --model best --samples 50000 --device cuda --out report
      maskoban evaluate --boards drawn-elsewhere.npz --out report
      maskoban evaluate --model mine --corpus mine.npz --held-out rest.npz --out report
    """
    import maskoban
    from maskoban._util.signals import terminate_as_interrupt
    from maskoban.errors import MaskobanError
    from maskoban.evaluation.measuring import Plan
    from maskoban.evaluation.neighbours import training_levels
    from maskoban.evaluation.report import check_place_and_needs
    from maskoban.evaluation.report import evaluate as write_report

    if boards is not None and model_name is not None:
        raise MaskobanError("either --model or --boards: there is one generator in a report")
    if boards is not None and (polish is not None or critic is not None or device != "cpu"):
        raise MaskobanError(
            "--polish, --critic and --device are for a model: the boards of --boards are drawn already"
        )
    check_place_and_needs(out)
    # What cannot be read is said before the work; held-out levels are read first anyway.
    if corpus is not None:
        training_levels(corpus)
    source = boards or maskoban.load(model_name or "best", device)
    config = "best" if isinstance(source, Path) else source.sampler("best", sweeps=polish, critic=critic)
    plan = Plan(
        samples=samples,
        seed=seed,
        sampler=config,
        sweep=sweep,
        corpus=corpus or Plan.corpus,
        held_out=held_out,
        log=None if log is None else str(log),
    )
    try:
        with terminate_as_interrupt():
            say = partial(print, file=sys.stderr)
            report = write_report(source, out, plan, say, progress=sys.stderr.isatty())
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the same command goes on from what is in {out}") from None
    solvable = report["measures"]["solvability"]["solvable"]
    told = f"{solvable['share']:.1%} solvable (95 %: {solvable['low']:.1%} to {solvable['high']:.1%})"
    boards_word = "board" if solvable["total"] == 1 else "boards"
    print(f"{solvable['total']:,} {boards_word}, {told}", file=sys.stderr)
    for name, why in report["notes"].items():
        print(f"{name}: {why}", file=sys.stderr)
    print(out / "report.html")
