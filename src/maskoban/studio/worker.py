"""A solver process: one job a line comes in as JSON, one answer a line goes out.

Searches run in processes of their own so that a slow one never holds up the server, can be ended at any moment,
and takes its memory with it. A worker leaves when its input ends, so none outlives the server for long.
"""

from __future__ import annotations

import io
import json
import signal
import sys
import tempfile
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from maskoban.boards import FORMATS, Level, LevelFileError, MaskobanError, detect
from maskoban.solving import Limits, dead_cells, rate, repair, solve, solves

Job = dict[str, Any]

#: Levels one conversion may hold, letters of all of them together, and steps an animation may show.
MAX_LEVELS = 10_000
MAX_LETTERS = 4_000_000
MAX_STEPS = 1500


def answer(job: Job) -> Job:
    """The answer to a job, or the sentence that refuses it.

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
    mended = repair(level, job["walls"], job["all"], threads=1, limits=_limits(job))
    board = str(mended.apply(level)) if mended.verdict == "repaired" else None
    return {**asdict(mended), "board": board}


def _dead_cells(job: Job) -> Job:
    level = Level.parse(job["board"])
    dead = dead_cells(level) & (level.tokens != 0)  # that walls take no box needs no telling
    return {"dead": [[int(row), int(column)] for row, column in zip(*dead.nonzero(), strict=True)]}


def _convert(job: Job) -> Job:
    levels = _read(job["content"], job["encoding"]) if job["levels"] is None else _levels(job["levels"])
    described = [
        {
            "board": str(level),
            "title": level.title,
            "author": level.author,
            "comment": level.comment,
            "solutions": list(level.solutions),
        }
        for level in levels
    ]
    out = io.BytesIO()
    FORMATS[job["to"]].write(out, levels)
    if job["to"] in ("npz", "npy"):
        return {"levels": described, "content": b64encode(out.getvalue()).decode(), "encoding": "base64"}
    return {"levels": described, "content": out.getvalue().decode(), "encoding": "text"}


def _levels(given: list[Job]) -> list[Level]:
    return [
        Level(
            Level.parse(one["board"]).tokens,
            one["title"],
            one["author"],
            one["comment"],
            tuple(one["solutions"]),
        )
        for one in given
    ]


def _read(content: str, encoding: str) -> list[Level]:
    try:
        data = b64decode(content, validate=True) if encoding == "base64" else content.encode()
    except (NoBase64, ValueError):
        raise MaskobanError("the content is not base64") from None
    levels: list[Level] = []
    letters = 0
    for level in FORMATS[detect(data[:4096])].read(io.BytesIO(data), "content"):
        if len(levels) == MAX_LEVELS:
            raise LevelFileError("content", f"more than {MAX_LEVELS:,} levels; send fewer at a time")
        # Counted while they are read: a short file may stand for an endless one.
        letters += level.tokens.size + len(level.comment) + sum(map(len, level.solutions))
        if letters > MAX_LETTERS:
            raise LevelFileError(
                "content", f"more than {MAX_LETTERS:,} letters once unpacked; send less at a time"
            )
        levels.append(level)
    if not levels:
        raise LevelFileError("content", "no level in it; expected at least one board")
    return levels


def _picture(job: Job) -> Job:
    from maskoban.pictures import board_image, board_svg, solution_gif

    level = Level.parse(job["board"])
    # Large boards get smaller cells, so that no picture grows beyond what a browser likes to show.
    cell = max(8, min(48, 1600 // max(level.shape)))
    if job["format"] == "svg":
        return {"data": b64encode(board_svg(level.tokens, cell).encode()).decode()}
    if job["format"] == "png":
        out = io.BytesIO()
        board_image(level.tokens, cell).save(out, "PNG")
        return {"data": b64encode(out.getvalue()).decode()}
    steps = job["solution"]
    if not steps:
        found = solve(level, "pushes", _limits(job))
        if not found.solved:
            raise MaskobanError(f"there is no solution to animate: the board is {found.verdict}")
        steps = found.solution
    if len(steps) > MAX_STEPS:
        raise MaskobanError(
            f"a solution of {len(steps)} steps is too long to animate; expected at most {MAX_STEPS}"
        )
    if not solves(level, steps):
        raise MaskobanError("these steps do not solve the board")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solution.gif"
        solution_gif(level, steps, path, cell=max(8, min(32, 800 // max(level.shape))))
        return {"data": b64encode(path.read_bytes()).decode()}


_KINDS: dict[str, Callable[[Job], Job]] = {
    "solve": _solve,
    "rate": _rate,
    "repair": _repair,
    "dead-cells": _dead_cells,
    "convert": _convert,
    "picture": _picture,
}


def main() -> None:
    """Answer jobs until there are no more."""
    # Ctrl-C in a terminal reaches every process of it; ending is the server's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(json.dumps(answer(json.loads(line))).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
