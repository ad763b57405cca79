"""maskoban show, convert: level files as pictures and in other formats."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated

import typer

from maskoban.cli.options import File, Filter, Outputs, Strict, Title, tile_letters, titled
from maskoban.cli.output import Output, complain, progress_bar

if TYPE_CHECKING:
    from maskoban.boards import Level


def show(
    file: File,
    out: Annotated[str | None, typer.Option(help="Save a picture instead: .png or .svg.")] = None,
    solution: Annotated[str | None, typer.Option(help="Save a GIF of a level being solved.")] = None,
    level: Annotated[int | None, typer.Option(min=0, help="Only this level, counted from 0.")] = None,
    strict: Strict = False,
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
    from maskoban.boards import stream
    from maskoban.errors import MaskobanError
    from maskoban.pictures import save_picture, solution_gif

    Outputs(picture=out, animate=solution).check()
    first = level or 0
    output = Output(as_json=False)
    levels = stream(file, strict=strict, on_warning=output.warn)
    chosen = islice(levels, first, None if level is None else first + 1)
    head = next(chosen, None)
    if head is None:
        raise MaskobanError(f"{file}: there is no level {level}")
    if out:
        shown = [head, *chosen]
        titles = [each.title for each in shown]
        save_picture(out, [each.tokens for each in shown], titles if any(titles) else None)
    if solution:
        steps = _solution(head)
        if steps is None:
            complain(f"level {first} has no solution to show")
            raise typer.Exit(1)
        with progress_bar("animating", output) as progress:
            solution_gif(head, steps, solution, on_progress=progress)
    if not out and not solution:
        for index, each in enumerate(chain([head], chosen), first):
            output.show(index, each)


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="Level file, folder of them, or - for stdin.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="File to write, or - for stdout.")],
    *,
    to: Annotated[str | None, typer.Option(help="Format: xsb, sok, slc, boxoban, npz or npy.")] = None,
    board_filter: Filter,
    unique: Annotated[
        bool,
        typer.Option(
            "--unique", help="Keep each puzzle once; rotated, mirrored and shifted copies count as the same."
        ),
    ] = False,
    title: Title = None,
    tiles: Annotated[
        str | None,
        typer.Option(
            help="What other letters stand for: wall=x,box=o,player=y; also floor, goal, box_on_goal, "
            "player_on_goal."
        ),
    ] = None,
    strict: Strict = False,
) -> None:
    """Convert levels between formats, all of them or those that match a filter.

    What is read is recognised by its content; what is written follows --to, or
    else the ending of its name. With --only-solvable, --difficulty or --boxes,
    the others are left out; with --unique all but the first of each puzzle. Title,
    author, e-mail and comment of the collection are kept. Levels that cannot be
    read are skipped with a warning, unless --strict.

    \b
    Examples:
      maskoban convert levels.slc levels.sok
      maskoban convert boxoban-levels/hard hard.npz
      maskoban convert levels.sok hard.sok --difficulty hard --unique
      maskoban convert old.txt new.sok --tiles "wall=x,box=o,player=y" --title "Set {n}"
      cat levels.sok | maskoban convert - - --to xsb
    """
    from maskoban.boards import stream_collection, unique_levels, write
    from maskoban.errors import FileError

    wanted = board_filter.board_filter()
    letters = tile_letters(tiles) if tiles else {}
    warn = Output(as_json=False).warn
    collection = stream_collection(source, strict=strict, tiles=letters, on_warning=warn)
    levels = iter(collection)
    if unique:
        levels = unique_levels(levels)
    if wanted:
        levels = wanted.filter(levels)
        first = next(levels, None)
        if first is None:
            raise FileError(source, f"no level matches the filter ({wanted})")
        levels = chain([first], levels)
    write(target, collection.with_levels(titled(levels, title)), to)


def _solution(level: Level) -> str | None:
    """A solution of the level: its own if one works, else a short one, else any."""
    from maskoban.errors import MaskobanError
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
