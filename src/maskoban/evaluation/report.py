"""A report as a typed value, ``report.repairs.one_wall.share``, and as JSON.

A measure that was not made is None, and ``notes`` says why.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskoban.errors import MaskobanError
from maskoban.evaluation.measures.board_measures import BoardMeasures
from maskoban.evaluation.measures.culprits import Culprits
from maskoban.evaluation.measures.difficulty import Difficulty
from maskoban.evaluation.measures.distances import Distances
from maskoban.evaluation.measures.diversity import Diversity, Duplicates
from maskoban.evaluation.measures.patterns import PatternMatch, TileCounts
from maskoban.evaluation.measures.repairs import RepairRates
from maskoban.evaluation.measures.samplers import Setting
from maskoban.evaluation.measures.solvability import Solvability
from maskoban.evaluation.measures.training import Training
from maskoban.evaluation.stages import from_plain, plain

#: Samplers that a report compares, each list with one field that varies.
COMPARISONS = ("temperature", "order", "steps", "sweeps", "critic")


@dataclass(frozen=True)
class Source:
    """The generator: a model and its sampler, or a file, or a rule."""

    name: str
    boards: int
    height: int = 0
    width: int = 0
    fingerprint: str = ""
    file: str | None = None
    rule: str | None = None
    model: dict[str, Any] | None = None
    seed: int | None = None
    sampler: dict[str, Any] | None = None
    sweeps: int = 0
    critic: float | None = None  # the bound c of its rejection sampling, where it is used
    attempts: float | None = None  # a board, on average
    evaluations: float | None = None  # of the network, a board


@dataclass(frozen=True)
class Corpus:
    """Mean counts of every tile, by name."""

    tiles: dict[str, float]
    held_out_tiles: dict[str, float]


@dataclass(frozen=True)
class Plate:
    """Boards as rows of text, with captions, so many in a row."""

    columns: int
    boards: list[list[str]]
    captions: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RepairedBoard:
    """A board that the removal of one wall repairs, and the least probable of the walls that do."""

    board: list[str]
    row: int
    column: int
    probability: float | None


@dataclass(frozen=True)
class Gallery:
    """Boards to show: always the first of the sample that fit."""

    denoising: Plate | None = None
    strip: Plate | None = None
    solutions: Plate | None = None
    repaired: list[RepairedBoard] = field(default_factory=list)
    first: Plate | None = None


@dataclass(frozen=True)
class Report:
    """Every measure of one generator."""

    maskoban: str
    source: Source
    corpus: Corpus | None = None
    held_out: Distances | None = None
    solvability: Solvability | None = None
    repairs: RepairRates | None = None
    culprits: Culprits | None = None
    difficulty: Difficulty | None = None
    tiles: TileCounts | None = None
    patterns: PatternMatch | None = None
    duplicates: Duplicates | None = None
    distances: Distances | None = None
    board_measures: BoardMeasures | None = None
    diversity: Diversity | None = None
    temperature: list[Setting] = field(default_factory=list)
    order: list[Setting] = field(default_factory=list)
    steps: list[Setting] = field(default_factory=list)
    sweeps: list[Setting] = field(default_factory=list)
    critic: list[Setting] = field(default_factory=list)
    training: Training | None = None
    gallery: Gallery = field(default_factory=Gallery)
    notes: dict[str, str] = field(default_factory=dict)

    def setting(self, comparison: str, **wanted: Any) -> Setting | None:
        """The first sampler of a comparison whose fields have these values."""
        settings: list[Setting] = getattr(self, comparison)
        fitting = (
            each for each in settings if all(getattr(each, key) == value for key, value in wanted.items())
        )
        return next(fitting, None)


@dataclass(frozen=True)
class Comparison:
    """Several generators side by side, by name."""

    maskoban: str
    generators: dict[str, Report]


def to_json(report: Report | Comparison) -> str:
    """The text of report.json, with every list of numbers or texts on one line."""
    text = json.dumps(plain(report), indent=1, ensure_ascii=False)
    return re.sub(r"\[[^][{}]*\]", lambda found: re.sub(r"\n *", "", found[0]), text) + "\n"


def from_json(text: str | bytes) -> Report | Comparison:
    """The report whose text this is. What an older version did not measure is None, or has its default.

    >>> report = Report("1", Source("best", 3), notes={"patterns": "too few boards"})
    >>> from_json(to_json(report)) == report
    True
    """
    data = json.loads(text)
    if "measures" in data:
        raise ValueError("an older version wrote it; measure the boards again")
    report: Report | Comparison = from_plain(Comparison if "generators" in data else Report, data)
    return report


def read_report(path: str | Path) -> Report | Comparison:
    """The report of a report.json.

    >>> read_report("report/report.json").repairs.one_wall.share  # doctest: +SKIP
    0.935
    """
    try:
        return from_json(Path(path).read_bytes())
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MaskobanError(f"{path}: not the report.json of maskoban evaluate: {error}") from None
