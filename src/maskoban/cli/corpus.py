"""maskoban corpus: fetch, pack, describe and make boards to learn from."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from maskoban.cli.options import Seed, Threads
from maskoban.cli.output import progress_bar

corpus = typer.Typer(help="Fetch, pack, describe and make boards to learn from.", no_args_is_help=True)


@corpus.command("fetch")
def corpus_fetch(
    split: Annotated[
        list[str] | None, typer.Option(show_default="all", help="medium/train, medium/valid, hard, ...")
    ] = None,
    to: Annotated[Path | None, typer.Option(show_default="the cache", help="Folder to download to.")] = None,
    url: Annotated[str | None, typer.Option(show_default="Boxoban's", help="A mirror's address.")] = None,
) -> None:
    """Download the Boxoban levels. After an interruption, the next fetch continues.

    Every file is verified against a list of checksums. Prints the folder.

    \b
    Examples:
      maskoban corpus fetch
      maskoban corpus fetch --split medium/valid --to boxoban-levels
    """
    from maskoban.boards.download import BASE_URL, SPLITS, download

    with progress_bar("downloading") as on_progress:
        folder = download(to, split or SPLITS, url or BASE_URL, on_progress)
    print(folder)


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
    from maskoban.boards.corpus import pack
    from maskoban.errors import MaskobanError

    if out is None and str(levels) == "-":
        raise MaskobanError("levels of standard input need the name of a file to pack them into")
    here = levels.resolve()
    target = out or Path(f"{here.name if here.is_dir() else here.stem}.npz")
    print(pack(levels, target))
    print(f"packed into {target}, {target.stat().st_size / 1e6:.2f} MB", file=sys.stderr)


@corpus.command("info")
def corpus_info(
    boards: Annotated[
        str, typer.Argument(metavar="CORPUS", help="A packed file, a folder, a name, or - for stdin.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Describe a corpus: its size, its tiles, its border, its boxes.

    \b
    Examples:
      maskoban corpus info medium-train.npz
      maskoban corpus info boxoban-medium-train --json
    """
    from maskoban.boards.corpus import info, load

    described = info(load(boards))
    print(json.dumps(asdict(described)) if as_json else described)


@corpus.command("synth")
def corpus_synth(
    out: Annotated[str, typer.Argument(help="File to write, in any format; a folder with --sizes.")],
    n: Annotated[int, typer.Option("-n", "--boards", min=1, help="How many boards.")] = 1000,
    height: Annotated[int, typer.Option(help="Rows, with the border.")] = 10,
    width: Annotated[int, typer.Option(help="Columns, with the border.")] = 10,
    boxes: Annotated[
        str, typer.Option(help="Boxes on each board; with --sizes also a range like 1-8.")
    ] = "4",
    walls: Annotated[
        float | None,
        typer.Option(show_default="by size", help="Share of wall inside the border; 0.52 at 10x10."),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            show_default="one size", help="Make a folder of many sizes with labels: 8x12 or 5x5-16x16."
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(show_default="none", help="With --sizes: add the boards of this corpus. Repeatable."),
    ] = None,
    threads: Threads = None,
    seed: Seed = 0,
) -> None:
    """Make solvable boards by pulling boxes backwards from their goals; no model needed.

    With --sizes every size and number of boxes gets the same number of boards, and
    each board its labels; docs/datasets.md describes the folder. Duplicates are
    left out. After an interruption the same command continues.

    \b
    Examples:
      maskoban corpus synth synth.npz -n 20000 --height 8 --width 8 --boxes 2
      maskoban corpus synth small.sok -n 10 --height 7 --width 7 --boxes 2
      maskoban corpus synth mix --sizes 5x5-16x16 --boxes 1-8 -n 100000
    """
    from maskoban.boards import check_writable, write
    from maskoban.boards.synth import synthesize
    from maskoban.errors import MaskobanError

    if sizes is not None:
        if (height, width, walls) != (10, 10, None):
            raise MaskobanError("--sizes takes no --height, --width or --walls")
        _corpus_of_sizes(out, n, sizes, boxes, tuple(add or ()), threads, seed)
        return
    if add:
        raise MaskobanError("--add needs --sizes: a single file has no labels")
    if not (boxes.isdecimal() and len(boxes) < 5):
        raise MaskobanError(f"--boxes: expected a number, got {boxes!r}; a range needs --sizes")
    check_writable(out)
    with progress_bar("synthesizing") as on_progress:
        boards = synthesize(
            n, height, width, int(boxes), seed, walls=walls, threads=threads, on_progress=on_progress
        )
    write(out, boards)


def _corpus_of_sizes(
    out: str, n: int, sizes: str, boxes: str, add: tuple[str, ...], threads: int | None, seed: int
) -> None:
    from maskoban._util.signals import terminate_as_interrupt
    from maskoban.solving.mixed_corpus import Mix, make_corpus, parse_boxes, parse_sizes

    mix = Mix(n, *parse_sizes(sizes), parse_boxes(boxes), seed, add)
    with terminate_as_interrupt():
        try:
            with progress_bar("synthesizing") as on_progress:
                files = make_corpus(mix, out, threads, on_progress)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; the same command continues {out}") from None
    print(f"{sum(files.values()):,} boards of {len(files)} sizes in {out}", file=sys.stderr)
