"""The command line: one thin command per capability.

Heavy modules are imported inside the commands, so that ``--help`` answers at once. Exit codes: 0 fine, 1
something asked for was not found (a level without solution, a board that could not be repaired), 2 bad
input, 130 interrupted.

Commands stand in the order in which a board travels: where boards come from, what is found out about
them, where they go. What several commands share is in ``console``.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maskoban.console import (
    CHUNK,
    INTERRUPTED,
    Commands,
    Report,
    caption,
    chunks,
    complain,
    mute,
    progress_bar,
)

if TYPE_CHECKING:
    from maskoban.boards import Level, Tokens
    from maskoban.solving import Limits

app = typer.Typer(
    cls=Commands,
    help="Draw, complete, prove, repair, rate, show and convert Sokoban levels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: Boards in one animation: more would be too small to watch and too large to send.
ANIMATED = 25

#: Seconds the solver may take for one search when it judges a drawn board.
JUDGING_SECONDS = 10


Mode = Literal["any", "pushes", "effort"]
Order = Literal["uniform", "confidence"]
Precision = Literal["fp32", "int8"]
Engine = Literal["local", "ray"]
Difficulty = Literal["easy", "medium", "hard", "expert"]

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Level file of any format, a folder of them, or - for stdin.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a level a line.")]
Threads = Annotated[int | None, typer.Option(min=1, show_default="all cores", help="Threads to use.")]
States = Annotated[int | None, typer.Option(min=0, help="Give up on a level after so many states.")]
Seconds = Annotated[float | None, typer.Option(min=0, help="Give up on a level after so many seconds.")]
Megabytes = Annotated[int, typer.Option(min=1, help="Memory each thread's search may use.")]

# How to draw, and what becomes of the boards: the same for new boards and for half-drawn ones.
Seed = Annotated[int, typer.Option(help="Same seed, same boards.")]
Out = Annotated[str | None, typer.Option(help="Save the boards: .sok, .xsb, .slc, .npz or folder/.")]
Picture = Annotated[str | None, typer.Option(help="Save a picture of all boards: .png or .svg.")]
Animate = Annotated[
    str | None, typer.Option(help=f"Save a .gif of the boards being drawn (the first {ANIMATED}).")
]
Temperature = Annotated[float, typer.Option(help="Below 1 draws more likely tiles, above 1 wilder ones.")]
Polish = Annotated[
    int | None,
    typer.Option(
        show_default="the model's own, 0 with --steps",
        help="Sweeps that redraw every cell once; no solver involved.",
    ),
]
CriticOption = Annotated[
    bool | None,
    typer.Option(
        "--critic/--no-critic",
        show_default="the model's own way; none with --temperature, --steps or --order",
        help="Draw again what the model's critic takes for drawn; no solver involved.",
    ),
]
Steps = Annotated[
    int | None, typer.Option(show_default="a cell at a time", help="Draw in fewer, coarser steps.")
]
OrderOption = Annotated[
    Order, typer.Option(help="Which cells are drawn first: any, or those whose tile came out likeliest.")
]
OnlySolvable = Annotated[bool, typer.Option("--only-solvable", help="Keep what can be solved.")]
DifficultyOption = Annotated[Difficulty | None, typer.Option("--difficulty", help="Keep what is rated so.")]
Boxes = Annotated[int | None, typer.Option(min=1, help="Keep what has so many boxes, and goals.")]
ModelOption = Annotated[
    str, typer.Option("--model", help="A shipped model's name, a folder, or a Hugging Face hub id.")
]
Device = Annotated[str, typer.Option(help="Where the network runs: cpu, or cuda (needs torch).")]
PrecisionOption = Annotated[
    Precision, typer.Option("--precision", help="int8 is faster on most cpus, and a little off.")
]


# --- commands: where boards come from ----------------------------------------------------------------------


@app.command()
def generate(
    n: Annotated[int, typer.Option("-n", "--boards", min=1, help="How many boards.")] = 9,
    seed: Seed = 0,
    out: Out = None,
    picture: Picture = None,
    animate: Animate = None,
    as_json: Json = False,
    temperature: Temperature = 1.0,
    polish: Polish = None,
    critic: CriticOption = None,
    steps: Steps = None,
    order: OrderOption = "uniform",
    only_solvable: OnlySolvable = False,
    difficulty: DifficultyOption = None,
    boxes: Boxes = None,
    model_name: ModelOption = "best",
    device: Device = "cpu",
    precision: PrecisionOption = "fp32",
) -> None:
    """Draw new boards.

    Verdict and rating below each board are the solver's judgement of the finished
    boards: drawing itself never asks the solver. With --only-solvable,
    --difficulty or --boxes, the first boards of the seed's sequence that pass are
    kept. Into a pipe, boards are written as a level file.

    Keys of --json: index (counted from 0), seed, number (in the seed's sequence),
    board (text), id, verdict (solved, unsolvable, unknown or malformed), reason,
    effort, pushes, moves, box_changes, box_lines, word (easy, medium, hard or
    expert); null where not known.

    \b
    Examples:
      maskoban generate -n 9 --seed 7
      maskoban generate -n 100 --difficulty hard --out hard.sok
      maskoban generate --picture boards.png --animate denoise.gif
      maskoban generate -n 1000 --json | jq -r 'select(.pushes > 40).board + "\\n"'
    """
    import maskoban

    _check_places(out, picture, animate)
    how: dict[str, Any] = {
        "temperature": temperature,
        "polish": polish,
        "critic": critic,
        "steps": steps,
        "order": order,
    }
    wishes = _wishes(only_solvable, difficulty, boxes)
    model = maskoban.load(model_name, device, precision)
    report = Report(as_json, out, picture, animate)
    filtered = any(wishes.values())
    recorded = None
    drawn: dict[int, Level] = {}
    with progress_bar("drawing", report) as progress, _kept_when_ended(lambda: list(drawn.values()), out):
        if animate and n <= ANIMATED and not filtered:
            # Recorded while they are drawn: drawing boards again for the animation takes as long again.
            recorded = model.trajectory(n, seed, **how, progress=progress).frames()
            drawn = {number: model.titled(board, seed, number) for number, board in enumerate(recorded[-1])}
        else:
            for number, level in model.numbered(n, seed, **how, **wishes, progress=progress):
                drawn[number] = level
    numbers, levels = list(drawn), list(drawn.values())

    def frames() -> Tokens:
        if recorded is not None:
            return recorded
        with progress_bar("animating", report) as progress:
            return model.trajectory(seed=seed, numbers=numbers[:ANIMATED], **how, progress=progress).frames()

    facts = [{"seed": seed, "number": number} for number in numbers]
    _hand_over(levels, facts, report, out, picture, animate, frames)
    if not as_json:
        kept = f" (chosen from the first {numbers[-1] + 1:,})" if filtered else ""
        told = f"{_boards(n)} of seed {seed}{kept}; the solver's judgement afterwards: {report.counts()}"
        print(told, file=sys.stderr)


@app.command()
def complete(
    file: File,
    n: Annotated[int, typer.Option("-n", "--boards", min=1, help="Completions of each level.")] = 3,
    seed: Seed = 0,
    out: Out = None,
    picture: Picture = None,
    animate: Animate = None,
    as_json: Json = False,
    temperature: Temperature = 1.0,
    polish: Polish = None,
    steps: Steps = None,
    order: OrderOption = "uniform",
    only_solvable: OnlySolvable = False,
    difficulty: DifficultyOption = None,
    boxes: Boxes = None,
    model_name: ModelOption = "best",
    device: Device = "cpu",
    precision: PrecisionOption = "fp32",
) -> None:
    """Draw the missing cells of half-drawn levels.

    Cells to be drawn are written as ?; every other cell stays as it is. Verdict
    and rating are the solver's judgement of the finished boards. With
    --only-solvable, --difficulty or --boxes, the first completions of each level
    that pass are kept. Levels that cannot be completed are named, the others
    drawn, and the exit code is 1 then.

    Keys of --json: index (counted from 0), level (of the file, counted from 0),
    title, seed, number (of this completion of the level), then those of
    [b]maskoban generate[/b] from board on.

    \b
    Examples:
      maskoban complete idea.xsb -n 5 --seed 7
      maskoban complete idea.xsb --only-solvable --difficulty hard
      maskoban complete idea.xsb --animate completed.gif --out completed.sok
    """
    import maskoban
    from maskoban.boards import MaskobanError, read
    from maskoban.diffusion.model import TooRareError
    from maskoban.pictures import side_by_side

    _check_places(out, picture, animate)
    how: dict[str, Any] = {"temperature": temperature, "polish": polish, "steps": steps, "order": order}
    given = read(file)
    model = maskoban.load(model_name, device, precision)
    report = Report(as_json, out, picture, animate)
    wishes = _wishes(only_solvable, difficulty, boxes)
    drawn: list[dict[int, Level]] = [{} for _ in given]
    possible = []
    for index, level in enumerate(given):
        try:
            model.check_completable(level, boxes)
            possible.append(index)
        except MaskobanError as error:
            complain(f"{file}, level {index}: {error}")

    def levels() -> list[Level]:
        return [level for kept in drawn for level in kept.values()]

    with progress_bar("drawing", report) as progress, _kept_when_ended(levels, out):
        for place, index in enumerate(possible):

            def tell(done: int, _: int, before: int = place * n) -> None:
                progress(before + done, n * len(possible))

            finished = model.completions(given[index], n, seed, **how, **wishes, progress=tell)
            try:
                for number, level in finished:
                    drawn[index][number] = level
            except TooRareError as error:
                complain(f"{file}, level {index}: {error}")
    if not levels():
        raise typer.Exit(2)

    def frames() -> Tokens:
        shown = [(level, kept) for level, kept in zip(given, drawn, strict=True) if kept][: -(-ANIMATED // n)]
        runs = []
        with progress_bar("animating", report) as progress:
            for level, kept in shown:
                runs.append(model.trajectory(seed=seed, board=level, numbers=list(kept), **how).frames())
                progress(len(runs), len(shown))
        return side_by_side(runs)[:, :ANIMATED]

    facts = [
        {"level": index, "title": level.title, "seed": seed, "number": number}
        for index, (level, kept) in enumerate(zip(given, drawn, strict=True))
        for number in kept
    ]
    _hand_over(levels(), facts, report, out, picture, animate, frames)
    if not as_json:
        tried = sum(max(kept) + 1 for kept in drawn if kept)
        chosen = f" (chosen from {tried:,})" if any(wishes.values()) else ""
        told = f"{_boards(len(facts))}{chosen}; the solver's judgement afterwards: {report.counts()}"
        print(told, file=sys.stderr)
    if len(facts) < n * len(given):
        raise typer.Exit(1)


corpus = typer.Typer(help="Fetch, pack, describe and make boards to learn from.", no_args_is_help=True)
app.add_typer(corpus, name="corpus")


@corpus.command("fetch")
def corpus_fetch(
    split: Annotated[
        list[str] | None, typer.Option(show_default="all", help="medium/train, medium/valid, hard, ...")
    ] = None,
    to: Annotated[Path | None, typer.Option(show_default="the cache", help="Folder to download to.")] = None,
    url: Annotated[str | None, typer.Option(show_default="Boxoban's", help="A mirror's address.")] = None,
) -> None:
    """Download the Boxoban levels; interrupted, the next fetch goes on.

    Every file is verified against a list of checksums. Prints the folder.

    \b
    Examples:
      maskoban corpus fetch
      maskoban corpus fetch --split medium/valid --to boxoban-levels
    """
    from maskoban.training.fetch import BASE_URL, SPLITS, fetch

    print(fetch(to, split or SPLITS, url or BASE_URL, progress=sys.stderr.isatty()))


@corpus.command("pack")
def corpus_pack(
    levels: Annotated[Path, typer.Argument(metavar="FOLDER", help="A file or folder of level files.")],
    out: Annotated[Path | None, typer.Argument(help="File to write.", show_default="FOLDER.npz")] = None,
) -> None:
    """Pack levels of one size into a compact file to train from.

    \b
    Examples:
      maskoban corpus pack boxoban-levels/medium/train medium-train.npz
    """
    from maskoban.boards import MaskobanError
    from maskoban.training.corpus import pack

    if out is None and str(levels) == "-":
        raise MaskobanError("levels of standard input need the name of a file to pack them into")
    here = levels.resolve()
    target = out or Path(f"{here.name if here.is_dir() else here.stem}.npz")
    print(pack(levels, target))
    print(f"packed into {target}, {target.stat().st_size / 1e6:.2f} MB", file=sys.stderr)


@corpus.command("info")
def corpus_info(
    boards: Annotated[
        str,
        typer.Argument(metavar="CORPUS", help="A packed file, a folder, a name, or - for standard input."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Describe a corpus: its size, its tiles, its border, its boxes.

    \b
    Examples:
      maskoban corpus info medium-train.npz
      maskoban corpus info boxoban-medium-train --json
    """
    from maskoban.training.corpus import info, load

    described = info(load(boards))
    print(json.dumps(described.as_dict()) if as_json else described)


@corpus.command("synth")
def corpus_synth(
    out: Annotated[str, typer.Argument(help="File to write, in any format.")],
    n: Annotated[int, typer.Option("-n", "--boards", min=1, help="How many boards.")] = 1000,
    height: Annotated[int, typer.Option(help="Rows, with the border.")] = 10,
    width: Annotated[int, typer.Option(help="Columns, with the border.")] = 10,
    boxes: Annotated[int, typer.Option(help="Boxes on each board.")] = 4,
    walls: Annotated[float, typer.Option(help="Share of the inner cells that stay wall.")] = 0.55,
    seed: Seed = 0,
) -> None:
    """Make solvable boards by pulling boxes backwards from their goals; no model needed.

    \b
    Examples:
      maskoban corpus synth synth.npz -n 20000 --height 8 --width 8 --boxes 2
      maskoban corpus synth small.sok -n 10 --height 7 --width 7 --boxes 2
    """
    from maskoban.boards import check_writable, write
    from maskoban.training.synth import synthesize

    check_writable(out)
    write(out, synthesize(n, height, width, boxes, seed, walls=walls, progress=sys.stderr.isatty()))


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def train(context: typer.Context) -> None:
    """Train a model that draws boards: see [b]maskoban train --help[/b]."""
    from importlib.util import find_spec

    from maskoban.boards import MaskobanError

    helping = {"-h", "--help"} & set(context.args)
    if find_spec("torch") is None and not helping:
        raise MaskobanError("training needs torch: pip install 'maskoban[train]'")
    from maskoban.training.__main__ import run

    run(context.args)


@app.command()
def export(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="Folder of a training run or of a model, or a shipped model's name."
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the model.")],
    name: Annotated[
        str | None, typer.Option(show_default="the model's, or the preset's", help="Name of the model.")
    ] = None,
    polish: Annotated[
        int | None,
        typer.Option(min=0, show_default="the model's, or 0", help="Sweeps it draws with where nobody says."),
    ] = None,
    critic: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            show_default="the model's",
            help="Folder of a critic's run, or a model with one.",
        ),
    ] = None,
    critic_cutoff: Annotated[
        float | None,
        typer.Option(
            metavar="C",
            show_default="that of the critic's folder, or 1",
            help="A drawing is kept with probability min(1, exp(score) / C).",
        ),
    ] = None,
    bits: Annotated[
        int | None, typer.Option(metavar="8|16", show_default="the model's, or 16", help="Bits of a weight.")
    ] = None,
    prune: Annotated[
        str | None,
        typer.Option(metavar="LEVELS", help="Leave out hidden units that open for none of 10,000 of these."),
    ] = None,
) -> None:
    """Make a trained run a model that draws without torch.

    Writes model.safetensors (the weights, once), model.onnx (the graph
    that names them, checked against torch) and model.int8.onnx (faster, a little
    off), and prints what is known of the model. With a critic, also
    critic.safetensors (what it adds to the weights) and critic.onnx.

    \b
    Examples:
      maskoban export runs/tiny tiny
      maskoban generate --model tiny
      maskoban export tiny tiny-small --bits 8 --prune boxoban-medium-valid
      maskoban export tiny tiny-2 --critic runs/critic --critic-cutoff 2
    """
    from maskoban.boards import MaskobanError
    from maskoban.training.corpus import load

    try:
        from maskoban.training.export import export as write_model
    except ImportError as error:
        raise MaskobanError(f"exporting needs {error.name}: pip install 'maskoban[train]'") from None
    levels = load(prune) if prune is not None else None
    if levels is not None:
        levels = levels[:: max(1, len(levels) // 10_000)]
    with progress_bar("looking for idle units", Report(as_json=False)) as progress:
        facts = write_model(
            run, out, name, polish, critic, critic_cutoff, bits=bits, levels=levels, progress=progress
        )
    for key, value in facts.items():
        print(f"{key.replace('_', ' ')}: {value}")


# --- commands: what is found out about boards --------------------------------------------------------------


@app.command()
def solve(
    file: File,
    mode: Annotated[Mode, typer.Option(help="Any solution, fewest pushes, or effort.")] = "any",
    as_json: Json = False,
    threads: Threads = None,
    states: States = None,
    seconds: Seconds = None,
    megabytes: Megabytes = 1024,
) -> None:
    """Solve levels, or prove that they cannot be solved.

    Solutions are written in LURD: lower case walks, upper case pushes.
    Mode [b]any[/b] finds a solution as fast as it can, [b]pushes[/b] one with the fewest
    pushes, and [b]effort[/b] counts the states a plain breadth-first search
    expands, which is the measure of difficulty. The exit code is 1 where a level
    was not solved.

    Keys of --json: index (counted from 0), title, board (text), id, verdict
    (solved, unsolvable, unknown or malformed), reason, pushes, moves, solution
    (null without one), expanded, seconds.

    \b
    Examples:
      maskoban solve levels.sok
      maskoban solve --mode pushes --json levels.xsb > solutions.jsonl
      printf '#####\\n#@$.#\\n#####\\n' | maskoban solve -
    """
    from maskoban.solving import solve_many

    limits = _limits(states, seconds, megabytes)
    report = Report(as_json)
    for first, levels in chunks(file, "solving", report):
        results = solve_many(levels, mode, threads=threads, limits=limits)
        for index, level in enumerate(levels, first):
            result = results[index - first]
            row = result.as_json()
            shown = ("pushes", "moves", "expanded") if mode == "effort" else ("pushes", "moves")
            report.add(index, level, row, _measures(row, shown), below=result.solution)
    report.finish(good={"solved"})


@app.command()
def repair(
    file: File,
    all_: Annotated[bool, typer.Option("--all", help="Every cure, not only the first.")] = False,
    walls: Annotated[int, typer.Option(min=1, max=2, help="2: try pairs where no single wall helps.")] = 1,
    out: Annotated[str | None, typer.Option(help="Save the levels that are solvable now.")] = None,
    as_json: Json = False,
    threads: Threads = None,
    states: States = None,
    seconds: Seconds = None,
    megabytes: Megabytes = 1024,
) -> None:
    """Find the interior walls whose removal makes unsolvable levels solvable.

    With --out, repaired levels are saved with their first cure applied, and
    with them those that were solvable already; the others are left out, and the
    exit code is 1 where there are any.

    Keys of --json: index (counted from 0), title, board (text, as it was), id,
    verdict (solvable, repaired, unrepaired, unknown or malformed), reason, walls.
    Each entry of walls is one cure: a list of the \\[row, column] cells, counted
    from 0, to remove together.

    \b
    Examples:
      maskoban repair broken.xsb
      maskoban repair --walls 2 --all --json broken.xsb
      maskoban repair broken.xsb --out mended.sok
    """
    from maskoban.boards import write
    from maskoban.solving import repair_many

    _check_places(out)
    limits = _limits(states, seconds, megabytes)
    report = Report(as_json, out)
    solvable: list[Level] = []
    for first, levels in chunks(file, "repairing", report):
        repairs = repair_many(levels, walls, all_, threads=threads, limits=limits)
        for index, (level, found) in enumerate(zip(levels, repairs, strict=True), first):
            row = {"verdict": found.verdict, "reason": found.reason, "walls": found.walls}
            cures = " or ".join(" and ".join(f"({r}, {c})" for r, c in cure) for cure in found.walls)
            report.add(index, level, row, f"without {cures}" if cures else "")
            if out and found.verdict in ("solvable", "repaired"):
                solvable.append(found.apply(level))
    if out and solvable:
        write(out, solvable)
    elif out:
        complain(f"nothing to write to {out}: no level could be made solvable")
    report.finish(good={"solvable", "repaired"})


@app.command()
def rate(
    file: File,
    as_json: Json = False,
    threads: Threads = None,
    states: States = None,
    seconds: Seconds = None,
    megabytes: Megabytes = 1024,
) -> None:
    """Say how hard levels are: easy, medium, hard or expert, and why.

    The word is the quarter of the Boxoban medium training levels in which the
    effort falls: the states a plain breadth-first search expands. All other
    numbers belong to a solution with the fewest pushes. The exit code is 1 where a
    level has no solution.

    Keys of --json: index (counted from 0), title, board (text), id, verdict,
    reason, effort, pushes, moves, box_changes, box_lines, word; null where not
    known.

    \b
    Examples:
      maskoban rate levels.sok
      maskoban rate --json a.sok | jq -r 'select(.word == "hard").board + "\\n"'
    """
    from maskoban.solving import rate_many

    limits = _limits(states, seconds, megabytes)
    report = Report(as_json)
    for first, levels in chunks(file, "rating", report):
        ratings = rate_many(levels, threads=threads, limits=limits)
        for index, (level, rating) in enumerate(zip(levels, ratings, strict=True), first):
            row = rating.as_json()
            shown = ("effort", "pushes", "moves", "box_changes", "box_lines")
            report.add(index, level, row, f"{rating.word:<6}  {_measures(row, shown)}")
    report.finish(good={"solved"})


@app.command()
def evaluate(
    out: Annotated[Path, typer.Option(help="Folder for the report; the same folder again goes on.")],
    model_name: Annotated[
        str | None,
        typer.Option("--model", show_default="best", help="A shipped model's name, a folder, or a hub id."),
    ] = None,
    boards: Annotated[Path | None, typer.Option(help="Boards drawn elsewhere, instead of a model.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="How many boards to draw.")] = 50_000,
    seed: Seed = 0,
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
    device: Device = "cpu",
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
    from maskoban.boards import MaskobanError
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
    own_polish, own_critic = (
        (0, False) if isinstance(source, Path) else (source.polish, source.critic is not None)
    )
    plan = Plan(
        samples=samples,
        seed=seed,
        polish=own_polish if polish is None else polish,
        critic=own_critic if critic is None else critic,
        sweep=sweep,
        corpus=corpus or Plan.corpus,
        held_out=held_out,
        log=None if log is None else str(log),
    )
    try:
        say = partial(print, file=sys.stderr)
        report = write_report(source, out, plan, say, progress=sys.stderr.isatty())
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the same command goes on from what is in {out}") from None
    solvable = report["measures"]["solvability"]["solvable"]
    told = f"{solvable['share']:.1%} solvable (95 %: {solvable['low']:.1%} to {solvable['high']:.1%})"
    print(f"{_boards(solvable['total'])}, {told}", file=sys.stderr)
    for name, why in report["notes"].items():
        print(f"{name}: {why}", file=sys.stderr)
    print(out / "report.html")


# --- commands: where boards go -----------------------------------------------------------------------------


@app.command()
def show(
    file: File,
    out: Annotated[str | None, typer.Option(help="Save a picture instead: .png or .svg.")] = None,
    solution: Annotated[str | None, typer.Option(help="Save a GIF of a level being solved.")] = None,
    level: Annotated[int | None, typer.Option(min=0, help="Only this level, counted from 0.")] = None,
) -> None:
    """Draw levels in the terminal, as a picture, or being solved.

    --solution plays the solution in the file if there is one that works, else
    it looks for one; of a collection it takes the first level unless --level
    says otherwise.

    \b
    Examples:
      maskoban show levels.sok
      maskoban show levels.sok --out levels.png
      maskoban show levels.sok --level 3 --out level.svg --solution level.gif
    """
    from maskoban.boards import MaskobanError, stream
    from maskoban.pictures import save_picture, solution_gif

    _check_places(picture=out, animation=solution)
    first = level or 0
    chosen = islice(stream(file), first, None if level is None else first + 1)
    head = next(chosen, None)
    if head is None:
        raise MaskobanError(f"{file}: there is no level {level}")
    report = Report(as_json=False)
    if out:
        shown = [head, *chosen]
        titles = [each.title for each in shown]
        save_picture(out, [each.tokens for each in shown], titles if any(titles) else None)
    if solution:
        steps = _solution(head)
        if steps is None:
            complain(f"level {first} has no solution to show")
            raise typer.Exit(1)
        with progress_bar("animating", report) as progress:
            solution_gif(head, steps, solution, progress=progress)
    if not out and not solution:
        for index, each in enumerate(chain([head], chosen), first):
            report.draw(index, each)


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="Level file, folder of them, or - for stdin.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="File to write, or - for stdout.")],
    to: Annotated[str | None, typer.Option(help="Format: xsb, sok, slc, boxoban, npz or npy.")] = None,
    only_solvable: OnlySolvable = False,
    difficulty: DifficultyOption = None,
    boxes: Boxes = None,
    unique: Annotated[
        bool, typer.Option("--unique", help="Each puzzle once, turned, mirrored or shifted ones too.")
    ] = False,
) -> None:
    """Convert levels between formats, all of them or those that are as asked.

    What is read is recognised by its content; what is written follows --to, or
    else the ending of its name. With --only-solvable, --difficulty or --boxes,
    the others are left out; with --unique all but the first of each puzzle.

    \b
    Examples:
      maskoban convert levels.slc levels.sok
      maskoban convert boxoban-levels/hard hard.npz
      maskoban convert levels.sok hard.sok --difficulty hard --unique
      cat levels.sok | maskoban convert - - --to xsb
    """
    from maskoban.boards import LevelFileError, firsts, stream, write
    from maskoban.solving.picking import Wishes

    wishes = Wishes(**_wishes(only_solvable, difficulty, boxes))
    levels = stream(source)
    if unique:
        levels = firsts(levels)
    if wishes:
        levels = wishes.picked(levels)
        first = next(levels, None)
        if first is None:
            raise LevelFileError(source, f"no level in it is as asked ({wishes})")
        levels = chain([first], levels)
    write(target, levels, to)


@app.command()
def studio(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is every one.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8765,
    token: Annotated[
        str | None, typer.Option(show_default="a new one beyond this machine", help="What callers must know.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Open the page on which boards are watched, played, drawn and kept.

    The same server is an HTTP API, described at /api/openapi.json. It answers to
    this machine alone unless --host says otherwise; then callers need the token.

    \b
    Examples:
      maskoban studio
      maskoban studio --port 9000 --no-browser
      maskoban studio --host 0.0.0.0 --token secret
    """
    from importlib.util import find_spec

    from maskoban.boards import MaskobanError

    for needed in ("fastapi", "uvicorn"):
        if find_spec(needed) is None:
            raise MaskobanError(f"the studio needs {needed}: pip install 'maskoban[studio]'")
    from maskoban.studio.server import run

    run(host, port, token, browser)


bulk = typer.Typer(invoke_without_command=True)
app.add_typer(bulk, name="bulk")
Folder = Annotated[Path, typer.Argument(metavar="DATASET", help="Folder of a finished dataset.")]


@bulk.callback()
def bulk_make(
    context: typer.Context,
    count: Annotated[int | None, typer.Option(min=1, help="How many boards.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the dataset; the same folder again goes on.")
    ] = None,
    seed: Seed = 0,
    only_solvable: OnlySolvable = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Take a wall away where that makes a board solvable.")
    ] = False,
    difficulty: DifficultyOption = None,
    boxes: Boxes = None,
    model_name: ModelOption = "best",
    device: Device = "cpu",
    precision: PrecisionOption = "fp32",
    temperature: Temperature = 1.0,
    polish: Annotated[int, typer.Option(min=0, help="Sweeps that redraw every cell once.")] = 0,
    critic: Annotated[
        bool, typer.Option("--critic", help="Draw again what the model's critic rejects.")
    ] = False,
    steps: Steps = None,
    states: Annotated[int, typer.Option(min=1, help="Give up on a board after so many states.")] = 10_000_000,
    shard_size: Annotated[
        int | None, typer.Option(min=1, show_default="by the count", help="Boards drawn for one file.")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="This machine's processes, or Ray Data.")] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, show_default="all cores", help="How many work at once.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(show_default="a Ray of its own", help="Address of a Ray cluster.")
    ] = None,
) -> None:
    """Make a dataset: draw boards, judge, rate and identify them, and write Parquet files.

    Files are named by the range of the seed's sequence they hold, and appear
    whole. Killed at any moment, the same command goes on; told to end by Ctrl-C
    or SIGTERM, it says so and leaves with code 130. Engine and workers change
    nothing in the files. With --only-solvable, --difficulty or --boxes, the first
    boards of the sequence that pass are kept. Boards are drawn plainly, and so fastest,
    unless --polish and --critic ask for more. The columns, and how to load them
    elsewhere, are in docs/datasets.md.

    \b
    Examples:
      maskoban bulk --count 100000 --out dataset --steps 16
      maskoban bulk --count 1000000 --out hard --difficulty hard --device cuda
      maskoban bulk --count 1000000 --out dataset --engine ray --address auto
      maskoban bulk verify dataset
    """
    from maskoban.interrupting import saved_when_told_to_end

    context.with_resource(saved_when_told_to_end(processes=1))  # what clusters send ends it as Ctrl-C does
    if context.invoked_subcommand is not None:
        return
    from maskoban.boards import MaskobanError

    if count is None or out is None:
        raise MaskobanError("a dataset needs --count and --out; see maskoban bulk --help")
    if address is not None and engine != "ray":
        raise MaskobanError("--address is for --engine ray")
    _check_bulk_needs("pyarrow")
    from maskoban.bulk.job import Job
    from maskoban.bulk.making import make

    job = Job(
        count=count,
        seed=seed,
        device=device,
        precision=precision,
        temperature=temperature,
        steps=steps,
        polish=polish,
        critic=critic,
        repair=repair,
        only_solvable=only_solvable,
        difficulty=difficulty,
        boxes=boxes,
        states=states,
        shard_size=shard_size or 0,
    )
    try:
        with progress_bar("making boards", Report(as_json=False)) as progress:
            manifest = make(job, out, model_name, engine, workers, address, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the same command goes on from what is in {out}") from None
    _tell_dataset(manifest)
    print(out)


@bulk.command("verify")
def bulk_verify(
    dataset: Folder,
    sample: Annotated[int, typer.Option(min=0, help="Boards to solve again.")] = 1000,
    seed: Annotated[int, typer.Option(help="Which boards are chosen for that.")] = 0,
) -> None:
    """Check a dataset: the checksum of every file, its rows, and a sample judged anew.

    Solutions of the sample are replayed by the rules. What is wrong is printed, a
    line each, and the exit code is 1 then.

    \b
    Examples:
      maskoban bulk verify dataset
      maskoban bulk verify dataset --sample 100000
    """
    _check_bulk_needs("pyarrow")
    from maskoban.bulk.dataset import Dataset
    from maskoban.bulk.verifying import verify

    with progress_bar("verifying", Report(as_json=False)) as progress:
        problems = verify(dataset, sample, seed, progress)
    for problem in problems:
        print(problem)
    if problems:
        raise typer.Exit(1)
    manifest = Dataset(dataset).finished()
    _tell_dataset(manifest)
    print(f"every file is as it was written; {_boards(min(sample, manifest['boards']))} judged anew")


@bulk.command("dedupe")
def bulk_dedupe(
    dataset: Folder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the dataset without duplicates.")],
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVELS",
            show_default=False,
            help="Leave out what this holds too: a dataset, levels, or a corpus's name. May be given again.",
        ),
    ] = None,
    megabytes: Annotated[int, typer.Option(min=1, help="Memory for finding duplicates.")] = 1024,
) -> None:
    """Copy a dataset without duplicates: of each id, the first board is kept.

    Boards that are turned, mirrored or moved have the same id. What does not fit
    in memory is put aside in OUT while this runs. Files that are not as they were
    written, by their checksums, are refused.

    \b
    Examples:
      maskoban bulk dedupe dataset unique
      maskoban bulk dedupe dataset fresh --against boxoban-medium-train
    """
    _check_bulk_needs("pyarrow", "duckdb")
    from maskoban.bulk.deduplicating import deduplicate

    with progress_bar("copying", Report(as_json=False)) as progress:
        manifest = deduplicate(dataset, out, megabytes, progress, against or ())
    _tell_dataset(manifest)
    print(out)


@bulk.command("export")
def bulk_export(
    dataset: Folder,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder that is laid out as Boxoban's, or a level file.")
    ],
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
    only_solvable: Annotated[
        bool, typer.Option("--only-solvable", help="Only boards that were solved.")
    ] = False,
    difficulty: Annotated[Difficulty | None, typer.Option(help="Only boards rated so.")] = None,
    boxes: Annotated[int | None, typer.Option(min=1, help="Only boards with so many boxes.")] = None,
) -> None:
    """Write a dataset as level files: the solved boards as Boxoban has them, or all in one file.

    OUT/NAME/train/000.txt and so on, a thousand boards each, and beside them
    valid and test. Turned and mirrored versions of a puzzle are in the same
    split. Where OUT ends as a level file does (.sok, .xsb, .slc, .npz, ...), it
    gets all boards in their order, with their verdicts and solutions. With
    --only-solvable, --difficulty or --boxes, the others are left out; nothing is
    solved again. Files of the dataset that are not as they were written, by their
    checksums, are refused.

    \b
    Examples:
      maskoban bulk export dataset boxoban-levels
      maskoban bulk export dataset boxoban-levels --name medium --test 0
      maskoban bulk export dataset hard.sok --difficulty hard
    """
    _check_bulk_needs("pyarrow")
    from maskoban.boards import ENDINGS, MaskobanError
    from maskoban.bulk.exporting import export as export_boxoban
    from maskoban.bulk.exporting import export_levels
    from maskoban.solving.picking import Wishes

    boxoban = {"name": name, "valid": valid, "test": test}
    given: dict[str, Any] = {key: value for key, value in boxoban.items() if value is not None}
    one_file = out.suffix.lower() in ENDINGS and not out.is_dir()
    if one_file and given:
        raise MaskobanError(f"--name, --valid and --test are for a folder, and {out} is a level file")
    wishes = Wishes(**_wishes(only_solvable, difficulty, boxes))
    with progress_bar("exporting", Report(as_json=False)) as progress:
        if one_file:
            counts = {"in all": export_levels(dataset, out, progress, wishes)}
        else:
            counts = export_boxoban(dataset, out, **given, progress=progress, wishes=wishes)
    print(", ".join(f"{count:,} {split}" for split, count in counts.items()), file=sys.stderr)
    print(out if one_file else out / (name or "unfiltered"))


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        import maskoban

        print(f"maskoban {maskoban.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line."""
    if sys.stderr is None:  # closed by whoever started us, who then hears nothing
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open until the end
    if sys.stdout is None:
        complain("standard output is closed")
        sys.exit(2)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A title that the terminal's encoding lacks is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            app(prog_name="maskoban")
        finally:
            sys.stdout.flush()
    except SystemExit as left:
        if left.code == INTERRUPTED:
            # Threads finish what they are at; whoever presses Ctrl-C again meanwhile wants the end, and no traceback.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise
    except OSError as error:
        if error.filename is not None:  # not a stream: a bug of ours
            raise
        mute()  # Python flushes once more on its way out, and must not speak of it
        if isinstance(error, BrokenPipeError):  # whoever read us has left, as `head` does: nothing to say
            sys.exit(1)
        complain(f"output cannot be written: {error.strerror}")
        sys.exit(2)


# --- what several commands share ---------------------------------------------------------------------------


def _measures(row: dict[str, Any], names: tuple[str, ...]) -> str:
    """The measures that are known, each after its name."""
    return "  ".join(f"{name.replace('_', ' ')} {row[name]:,}" for name in names if row[name] is not None)


def _limits(states: int | None, seconds: float | None, megabytes: int) -> Limits:
    from maskoban.solving import Limits

    return Limits(states=states, seconds=seconds, megabytes=megabytes)


def _solution(level: Level) -> str | None:
    """A solution of the level: its own if one works, else a short one, else any."""
    from maskoban.boards import MaskobanError
    from maskoban.solving import Limits, solve, solves

    for own in level.solutions:
        try:
            if solves(level, own):
                return own
        except MaskobanError:
            continue
    result = solve(level, "pushes", Limits(seconds=10))
    if result.verdict == "unknown":
        result = solve(level)
    return result.solution if result.solved else None


def _wishes(only_solvable: bool, difficulty: Difficulty | None, boxes: int | None) -> dict[str, Any]:
    """What boards must be like to be kept."""
    return {"only_solvable": only_solvable, "difficulty": difficulty, "boxes": boxes}


@contextmanager
def _kept_when_ended(levels: Callable[[], list[Level]], out: str | None) -> Iterator[None]:
    """Save the boards that are there when drawing ends before all are: by Ctrl-C, or for want of such boards."""
    from maskoban.boards import MaskobanError, write

    try:
        yield
    except (KeyboardInterrupt, MaskobanError) as ended:
        interrupted = isinstance(ended, KeyboardInterrupt)
        if out and interrupted and not levels():
            nothing = f"interrupted before there was a board to keep; nothing was written to {out}"
            raise KeyboardInterrupt(nothing) from None
        if not out or not levels():
            raise
        write(out, levels())
        done = f"{_boards(len(levels()))} that were done are in {out}"
        if interrupted:
            raise KeyboardInterrupt(f"interrupted; {done}") from None
        raise MaskobanError(f"{ended}; {done}") from None


def _check_places(out: str | None = None, picture: str | None = None, animation: str | None = None) -> None:
    """Say what is wrong with a name before the work whose result it is to hold, and not after it."""
    from maskoban.boards import MaskobanError, check_writable
    from maskoban.pictures import check_animation, check_picture

    if out == "-":
        raise MaskobanError("--out takes a file, for results are written to standard output")
    for path, check in ((out, check_writable), (picture, check_picture), (animation, check_animation)):
        if path:
            check(path)


def _hand_over(
    levels: list[Level],
    facts: Sequence[dict[str, Any]],
    report: Report,
    out: str | None,
    picture: str | None,
    animate: str | None,
    frames: Callable[[], Tokens],
) -> None:
    """Save drawn boards first; then judge them, show them, and make the pictures that were asked for."""
    from maskoban.boards import write
    from maskoban.pictures import reveal_gif, save_picture
    from maskoban.solving import Limits, rate_many

    if out:
        write(out, levels)
    ratings = []
    with progress_bar("judging", report) as progress:
        for first in range(0, len(levels), CHUNK):
            some = slice(first, first + CHUNK)
            judged = rate_many(levels[some], limits=Limits(seconds=JUDGING_SECONDS))
            ratings += judged
            report.add_drawn(first, levels[some], facts[some], judged)
            progress(len(ratings), len(levels))
    captions = [caption(rating) for rating in ratings]
    if picture:
        save_picture(picture, [level.tokens for level in levels], captions)
    if animate:
        reveal_gif(frames(), animate, captions[:ANIMATED])


def _check_bulk_needs(*packages: str) -> None:
    from importlib.util import find_spec

    from maskoban.boards import MaskobanError

    for needed in packages:
        if find_spec(needed) is None:
            raise MaskobanError(f"datasets need {needed}: pip install 'maskoban[bulk]'")


def _tell_dataset(manifest: dict[str, Any]) -> None:
    counts = sorted(manifest["verdicts"].items(), key=lambda item: -item[1])
    told = [_boards(manifest["boards"]), ", ".join(f"{count:,} {verdict}" for verdict, count in counts)]
    size = f"{manifest['bytes'] / 1e6:,.1f} MB in {len(manifest['shards']):,} files"
    print(f"{': '.join(filter(None, told))}; {size}", file=sys.stderr)


def _boards(count: int) -> str:
    return f"{count:,} board{'' if count == 1 else 's'}"
