"""A solver process: reads jobs from its input, one JSON object a line, and writes one line for each.

Searches run in processes of their own, so that the server can end a search at any moment, with its memory. A worker
ends when its input ends, so none outlives the server for long.
"""

from __future__ import annotations

import io
import json
import signal
import sys
import tempfile
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from maskoban.boards import FORMATS, MAX_SIDE, Level, stream_file
from maskoban.errors import FileError, MaskobanError
from maskoban.solving import Limits, dead_cells, rate, repair, solve, solves

Job = dict[str, Any]


def answer(job: Job) -> Job:
    """The result of a job, or ``refused`` with the reason.

    >>> answer({"kind": "solve", "board": "@$.", "mode": "any", "seconds": 1, "megabytes": 64})["solution"]
    'R'
    >>> answer({"kind": "dead-cells", "board": "@x."})["refused"][:31]
    "board, line 1, column 2: 'x' is"
    """
    try:
        return _KINDS[job["kind"]](job)
    except MaskobanError as error:
        return {"refused": str(error)}


def _limits(job: Job) -> Limits:
    return Limits(seconds=job["seconds"], megabytes=job["megabytes"])


def _solve(job: Job) -> Job:
    return solve(Level.parse(job["board"]), job["mode"], _limits(job)).as_json()


def _rate(job: Job) -> Job:
    return rate(Level.parse(job["board"]), _limits(job)).as_json()


def _repair(job: Job) -> Job:
    level = Level.parse(job["board"])
    found = repair(level, job["walls"], job["all"], threads=1, limits=_limits(job))
    board = str(found.apply(level)) if found.verdict == "repaired" else None
    return {**asdict(found), "board": board}


def _dead_cells(job: Job) -> Job:
    level = Level.parse(job["board"])
    dead = dead_cells(level) & (level.tokens != 0)  # without the walls
    return {"dead": [[int(row), int(column)] for row, column in zip(*dead.nonzero(), strict=True)]}


def _convert(job: Job) -> Job:
    levels = _read(job) if job["levels"] is None else list(map(_level, job["levels"]))
    fields = ("title", "author", "comment", "solutions")
    read = [{"board": str(level), **{name: getattr(level, name) for name in fields}} for level in levels]
    out, to = io.BytesIO(), FORMATS[job["to"]]
    to.write(out, levels)
    if to.is_text:
        return {"levels": read, "content": out.getvalue().decode(), "encoding": "text"}
    return {"levels": read, "content": b64encode(out.getvalue()).decode(), "encoding": "base64"}


def _level(given: Job) -> Level:
    tokens = Level.parse(given["board"]).tokens
    return Level(tokens, given["title"], given["author"], given["comment"], tuple(given["solutions"]))


def _read(job: Job) -> list[Level]:
    """The levels of a file. They are counted while they are read: a short file may hold millions."""
    content, most, letters = job["content"], job["max_letters"], 0
    try:
        data = b64decode(content, validate=True) if job["encoding"] == "base64" else content.encode()
    except (Base64Error, ValueError):
        raise MaskobanError("the content is not base64") from None
    levels: list[Level] = []
    for level in stream_file(io.BytesIO(data), "content", MAX_SIDE, on_warning=lambda warning: None):
        if len(levels) == job["max_levels"]:
            raise FileError("content", f"more than {job['max_levels']:,} levels; send fewer at a time")
        letters += level.letters
        if letters > most:
            raise FileError("content", f"more than {most:,} letters once unpacked; send less at a time")
        levels.append(level)
    return levels


def _picture(job: Job) -> bytes:
    from maskoban.pictures import board_image, board_svg, solution_gif

    level = Level.parse(job["board"])
    # Large boards get smaller cells, so that the picture stays below 1,600 pixels.
    cell = max(8, min(48, 1600 // max(level.shape)))
    if job["format"] == "svg":
        return board_svg(level.tokens, cell).encode()
    if job["format"] == "png":
        out = io.BytesIO()
        board_image(level.tokens, cell).save(out, "PNG")
        return out.getvalue()
    moves, most = job["solution"], job["max_moves"]
    if not moves:
        found = solve(level, "pushes", _limits(job))
        if not found.solved:
            raise MaskobanError(f"there is no solution to animate: the board is {found.verdict}")
        moves = found.solution
    if len(moves) > most:
        raise MaskobanError(
            f"a solution of {len(moves)} moves is too long to animate; expected at most {most}"
        )
    if not solves(level, moves):
        raise MaskobanError("these moves do not solve the board")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solution.gif"
        solution_gif(level, moves, path, cell=max(8, min(32, 800 // max(level.shape))))
        return path.read_bytes()


_KINDS: dict[str, Callable[[Job], Job]] = {
    "solve": _solve,
    "rate": _rate,
    "repair": _repair,
    "dead-cells": _dead_cells,
    "convert": _convert,
    "picture": lambda job: {"data": b64encode(_picture(job)).decode()},
}


def main(answer: Callable[[Job], Job] = answer) -> None:
    """Write an empty line, then answer jobs until the input ends."""
    # Ctrl-C in a terminal reaches every process; the server ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(flush=True)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(json.dumps(answer(json.loads(line))).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
