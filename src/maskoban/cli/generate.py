"""maskoban generate, complete: sample boards with a model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskoban.cli.options import (
    ANIMATED,
    Device,
    File,
    Filter,
    Guidance,
    Json,
    ModelName,
    Outputs,
    Sampling,
    Seed,
    Size,
    Title,
    parse_size,
    titled,
)
from maskoban.cli.output import CHUNK, Output, boards_text, caption, complain, progress_bar

if TYPE_CHECKING:
    from maskoban.boards import Level, Tokens
    from maskoban.diffusion.model import Model
    from maskoban.diffusion.trajectory import Trajectory
    from maskoban.solving.filters import BoardFilter

#: Seconds the solver may take for one search when it judges a sampled board.
JUDGING_SECONDS = 10


def generate(
    *,
    n: Annotated[int, typer.Option("-n", "--boards", min=1, help="Number of boards.")] = 9,
    seed: Seed = 0,
    outputs: Outputs,
    title: Title = None,
    as_json: Json = False,
    size: Size = None,
    guidance: Guidance = None,
    board_filter: Filter,
    model_name: ModelName = None,
    device: Device = "cpu",
    sampling: Sampling,
) -> None:
    """Sample new boards.

    Verdict and rating below each board are the solver's, of the finished boards:
    sampling never uses the solver. With --only-solvable, --difficulty or --boxes,
    the first boards of the seed's sequence that match are kept. Into a pipe, boards
    are written as a level file.

    Another --size than 10x10, or other --boxes than four, is sampled by the model
    [b]any[/b]. For it, --boxes and --difficulty are conditions: it samples such boards, as
    far as it obeys them, and only --only-solvable filters.

    Keys of --json: index (counted from 0), seed, number (in the seed's sequence),
    board (text), id, verdict (solved, unsolvable, unknown or malformed), reason,
    effort, pushes, moves, box_changes, box_lines, word (easy, medium, hard or
    expert), limit_hit, decomposed_effort, boxes_at_once, decomposed_word,
    guided_effort, reference; null where not known.

    \b
    Examples:
      maskoban generate -n 9 --seed 7
      maskoban generate -n 100 --difficulty hard --out hard.sok
      maskoban generate --size 8x12 --boxes 5 --difficulty hard
      maskoban generate -n 100 --sampler fast --precision int8
      maskoban generate --picture boards.png --animate denoise.gif
      maskoban generate -n 1000 --json | jq -r 'select(.pushes > 40).board + "\\n"'
    """
    import maskoban
    from maskoban.boards import Level
    from maskoban.diffusion.loading import default_model

    outputs.check()
    wanted, board_size = board_filter.board_filter(), parse_size(size)
    model = maskoban.load(model_name or default_model(board_size, wanted.boxes, guidance), device)
    model, wanted = model.conditioned(wanted, board_size, guidance)
    config = sampling.config(model)
    output = Output(as_json, outputs.out, outputs.picture, outputs.animate)
    sampled: dict[int, Level] = {}
    recorded: Trajectory | None = None
    with progress_bar("sampling", output) as progress, _saved_when_interrupted(sampled.values, outputs.out):
        if outputs.animate and n <= ANIMATED and not wanted:  # record now instead of sampling twice
            recorded = model.trajectory(n, seed, config, on_progress=progress)
            for number, board in enumerate(recorded.boards):
                sampled[number] = Level(board, title=model.title(seed, number))
        else:
            for number, level in model.stream(n, seed, config, wanted, on_progress=progress):
                sampled[number] = level
    numbers = list(sampled)

    def frames() -> Tokens:
        if recorded is not None:
            return recorded.frames()
        with progress_bar("animating", output) as progress:
            shown = numbers[:ANIMATED]
            return model.trajectory(seed=seed, sampler=config, numbers=shown, on_progress=progress).frames()

    facts = [{"seed": seed, "number": number} for number in numbers]
    _show_and_save(list(titled(sampled.values(), title)), facts, output, outputs, frames)
    if not as_json:
        kept = f" (chosen from the first {numbers[-1] + 1:,})" if wanted else ""
        verdicts = f"the solver's verdicts: {output.counts()}"
        print(f"{boards_text(n)} of seed {seed}{kept}; {verdicts}", file=sys.stderr)


def complete(
    file: File,
    *,
    n: Annotated[int, typer.Option("-n", "--boards", min=1, help="Completions of each level.")] = 3,
    seed: Seed = 0,
    outputs: Outputs,
    as_json: Json = False,
    guidance: Guidance = None,
    board_filter: Filter,
    model_name: ModelName = None,
    device: Device = "cpu",
    sampling: Sampling,
) -> None:
    """Complete partly given levels.

    Masked cells are written as ?; every other cell stays as it is. Verdict and
    rating are the solver's, of the finished boards. With --only-solvable,
    --difficulty or --boxes, the first completions of each level that match are
    kept. Levels that cannot be completed are named, the others completed, and the
    exit code is 1 then. The critic compares whole boards and is not used here.

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
    from maskoban.boards import read
    from maskoban.diffusion.loading import default_model
    from maskoban.diffusion.model import TooRareError
    from maskoban.errors import MaskobanError
    from maskoban.pictures import side_by_side

    outputs.check()
    if sampling.critic:
        raise MaskobanError("--critic is for boards sampled from nothing, not for partly given ones")
    sampling.critic = False
    given, wanted = read(file), board_filter.board_filter()
    other_size = next((level.shape for level in given if level.shape != (10, 10)), None)
    model = maskoban.load(model_name or default_model(other_size, wanted.boxes, guidance), device)
    config = sampling.config(model)
    output = Output(as_json, outputs.out, outputs.picture, outputs.animate)
    completed: list[dict[int, Level]] = [{} for _ in given]
    models: dict[int, tuple[Model, BoardFilter]] = {}
    for index, level in enumerate(given):
        try:
            models[index] = model.conditioned_on(level, wanted, guidance)
        except MaskobanError as error:
            complain(f"{file}, level {index}: {error}")

    def levels() -> list[Level]:
        return [level for kept in completed for level in kept.values()]

    with progress_bar("sampling", output) as progress, _saved_when_interrupted(levels, outputs.out):
        for place, (index, (own, left)) in enumerate(models.items()):

            def on_progress(done: int, _: int, before: int = place * n) -> None:
                progress(before + done, n * len(models))

            finished = own.stream(n, seed, config, left, board=given[index], on_progress=on_progress)
            try:
                for number, level in finished:
                    completed[index][number] = level
            except TooRareError as error:
                complain(f"{file}, level {index}: {error}")
    if not levels():
        raise typer.Exit(2)

    def frames() -> Tokens:
        runs = []
        shown = [index for index in models if completed[index]][: -(-ANIMATED // n)]
        with progress_bar("animating", output) as progress:
            for index in shown:
                board, kept = given[index], list(completed[index])
                run = models[index][0].trajectory(seed=seed, sampler=config, board=board, numbers=kept)
                runs.append(run.frames())
                progress(len(runs), len(shown))
        return side_by_side(runs)[:, :ANIMATED]

    facts = [
        {"level": index, "title": given[index].title, "seed": seed, "number": number}
        for index, kept in enumerate(completed)
        for number in kept
    ]
    _show_and_save(levels(), facts, output, outputs, frames)
    if not as_json:
        tried = sum(max(kept) + 1 for kept in completed if kept)
        chosen = f" (chosen from {tried:,})" if wanted else ""
        print(f"{boards_text(len(facts))}{chosen}; the solver's verdicts: {output.counts()}", file=sys.stderr)
    if len(facts) < n * len(given):
        raise typer.Exit(1)


@contextmanager
def _saved_when_interrupted(levels: Callable[[], Any], out: str | None) -> Iterator[None]:
    """Save the boards that are finished when sampling ends early: by Ctrl-C, or by a filter that keeps too few."""
    from maskoban.boards import write
    from maskoban.errors import MaskobanError

    try:
        yield
    except (KeyboardInterrupt, MaskobanError) as ended:
        interrupted, finished = isinstance(ended, KeyboardInterrupt), list(levels())
        if out and interrupted and not finished:
            raise KeyboardInterrupt(
                f"interrupted before a board was finished; {out} was not written"
            ) from None
        if not out or not finished:
            raise
        write(out, finished)
        saved = f"{boards_text(len(finished))} that were finished are in {out}"
        if interrupted:
            raise KeyboardInterrupt(f"interrupted; {saved}") from None
        raise MaskobanError(f"{ended}; {saved}") from None


def _show_and_save(
    levels: list[Level],
    facts: Sequence[dict[str, Any]],
    output: Output,
    outputs: Outputs,
    frames: Callable[[], Tokens],
) -> None:
    """Save sampled boards first; then judge and print them, and make pictures."""
    from maskoban.boards import write
    from maskoban.pictures import reveal_gif, save_picture
    from maskoban.solving import Limits, rate_many

    if outputs.out:
        write(outputs.out, levels)
    ratings = []
    with progress_bar("judging", output) as progress:
        for first in range(0, len(levels), CHUNK):
            some = slice(first, first + CHUNK)
            judged = rate_many(levels[some], limits=Limits(seconds=JUDGING_SECONDS))
            ratings += judged
            output.add_sampled(first, levels[some], facts[some], judged)
            progress(len(ratings), len(levels))
    captions = [caption(rating) for rating in ratings]
    if outputs.picture:
        save_picture(outputs.picture, [level.tokens for level in levels], captions)
    if outputs.animate:
        reveal_gif(frames(), outputs.animate, captions[:ANIMATED])
