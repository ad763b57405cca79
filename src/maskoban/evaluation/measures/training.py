"""A training run: losses from its log, and the solvability of the boards it sampled on the way."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskoban.boards import Tokens, read_boards
from maskoban.errors import FileError, MaskobanError
from maskoban.evaluation.measures.share import Share, share_of
from maskoban.solving import Limits, solve_many


@dataclass(frozen=True)
class Loss:
    """Losses after a step; None where one was not measured."""

    step: int
    train: float | None
    valid: float | None


@dataclass(frozen=True)
class Checkpoint:
    """How many of the boards sampled at a step are solvable."""

    step: int
    solvable: Share


@dataclass(frozen=True)
class Training:
    """A run: its settings as it logged them, its losses, and its boards judged."""

    settings: dict[str, Any]
    losses: list[Loss]
    solvability: list[Checkpoint]
    missing: list[str]  # boards that the log names but that do not lie beside it


def read_training(log: str | Path, limits: Limits | None = None) -> Training:
    """The curves of a run's ``log.jsonl``; the boards files it names are judged where they lie beside it.

    Where they do not, or cannot be read, the solvability the trainer logged stands in. A log may hold several runs one
    after the other, each started from the weights of the one before: their steps add up, and what they logged counts,
    for their boards have the same names. What a run that was killed had logged after the checkpoint from which it was
    resumed, or begun anew, does not count.

    >>> read_training("runs/best/log.jsonl").losses[-1].step  # doctest: +SKIP
    53171
    """
    path = Path(log)
    settings: dict[str, Any] = {}
    losses: list[Loss] = []
    solvability: list[Checkpoint] = []
    missing: list[str] = []
    before, ended = 0, 0  # steps of the runs that this one stands on, and that the next one will
    entries = _entries(path)
    several = sum(entry.get("event") == "start" for entry in entries) > 1
    for entry in entries:
        if "settings" in entry:
            settings = entry["settings"]
            if entry.get("event") == "start":
                before = entry.get("before", ended)  # older logs do not say
            last = before + entry.get("from_step", 0)
            losses = [loss for loss in losses if loss.step <= last]
            solvability = [each for each in solvability if each.step <= last]
        elif entry.get("event") in ("end", "interrupted"):
            ended = before + entry["step"]
        elif "boards" in entry:
            file = path.parent / str(entry["boards"])
            logged = "solvable" in entry and "sample_boards" in settings
            boards = None if several and logged else _boards(file)
            if boards is not None:
                solved = solve_many(boards, limits=limits, solutions=False).solved
                share = share_of(int(solved.sum()), len(solved))
            elif logged:
                count = settings["sample_boards"]
                share = share_of(round(entry["solvable"] * count), count)
            else:
                missing.append(file.name)
                continue
            solvability.append(Checkpoint(before + entry["step"], share))
        elif "train" in entry or "valid" in entry:
            losses.append(Loss(before + entry["step"], entry.get("train"), entry.get("valid")))
    if not losses:
        raise MaskobanError(f"{path}: no losses in it; expected the log.jsonl of a training run")
    return Training(settings, losses, solvability, missing)


def _boards(file: Path) -> Tokens | None:
    """The boards of a file that the trainer wrote, if it is there and whole."""
    try:
        return read_boards(file)
    except FileError:
        return None


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MaskobanError(f"{path}: cannot be read: {error}") from None
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):  # half a line, of a run that was killed or a disk that was full
            continue
        if not isinstance(entry, dict):
            raise MaskobanError(f"{path}, line {number}: not a JSON object; expected a training run's log")
        entries.append(entry)
    return entries
