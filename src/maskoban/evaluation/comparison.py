"""Our numbers beside the paper's: the rows of the report's first table, of docs/results.md and of the README."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maskoban.evaluation.paper import PAPER, Stated

Report = dict[str, Any]

#: What stands where something was not measured.
NOTHING = "–"


@dataclass(frozen=True)
class Row:
    """A measure: ``ours`` finds its text in a report (None where it is not there), ``paper`` is its counterpart."""

    label: str
    ours: Callable[[Report], str | None]
    paper: Stated | None = None


def percent(share: float | None, digits: int = 1) -> str:
    """A share as people read it.

    >>> percent(0.827099), percent(0.004, 2), percent(None)
    ('82.7 %', '0.40 %', '–')
    """
    return NOTHING if share is None else f"{share * 100:.{digits}f} %"


def interval(share: dict[str, Any], digits: int = 1) -> str:
    """The 95 % interval of a share.

    >>> interval({"low": 0.822, "high": 0.832})
    '82.2 to 83.2'
    """
    return f"{share['low'] * 100:.{digits}f} to {share['high'] * 100:.{digits}f}"


def rounded(mean: float) -> str:
    """A mean of whole numbers, with a digit behind the point where it needs one.

    >>> rounded(128.0), rounded(187.34)
    ('128', '187.3')
    """
    return f"{mean:,.1f}".removesuffix(".0")


def drawn_how(source: dict[str, Any]) -> list[str]:
    """What followed the reveal, in the order in which it was done.

    >>> drawn_how({"critic": None, "polish": 2})
    ['2 polish sweeps']
    >>> for each in drawn_how({"critic": 1.5, "attempts": 1.25, "polish": 1}):
    ...     print(each)
    1 polish sweep
    a critic, which tells drawn boards from the corpus's and never saw a solver, has 20 % of them drawn again
    """
    told = []
    if source["polish"]:
        told.append(f"{source['polish']} polish sweep{'s' if source['polish'] > 1 else ''}")
    if source.get("critic") is not None:
        told.append(
            "a critic, which tells drawn boards from the corpus's and never saw a solver, has "
            f"{percent(1 - 1 / source['attempts'], 0)} of them drawn again"
        )
    return told


def find(report: Report, *path: str) -> Any:
    """What lies at a path of names, or None.

    >>> find({"measures": {}}, "measures", "tiles", "walls") is None
    True
    """
    found: Any = report
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _share(digits: int, *path: str) -> Callable[[Report], str | None]:
    def ours(report: Report) -> str | None:
        share = find(report, "measures", *path)
        if share is None or share["share"] is None:
            return None
        return f"{percent(share['share'], digits)} ({interval(share, digits)})"

    return ours


def _number(form: str, *path: str) -> Callable[[Report], str | None]:
    def ours(report: Report) -> str | None:
        number = find(report, *path)
        return None if number is None else _minus(format(number, form))

    return ours


def _mean(*path: str) -> Callable[[Report], str | None]:
    def ours(report: Report) -> str | None:
        number = find(report, *path)
        return None if number is None else rounded(number)

    return ours


def _walls(report: Report) -> str | None:
    walls = find(report, "measures", "tiles", "walls")
    return None if walls is None else f"{walls['mean']:.2f} ({walls['low']:.2f} to {walls['high']:.2f})"


def known_ratios(report: Report) -> dict[str, float]:
    """The ratios of pattern divergence by sample size, where there are any.

    >>> known_ratios({"measures": {"patterns": {"ratio": {"250": 1.01, "500": None}}}})
    {'250': 1.01}
    """
    ratios = find(report, "measures", "patterns", "ratio") or {}
    return {size: ratio for size, ratio in ratios.items() if ratio is not None}


def _ratio(report: Report) -> str | None:
    ratios = known_ratios(report)
    if not ratios:
        return None
    largest = max(ratios, key=int)
    return f"at most {max(ratios.values()):.3f}; {ratios[largest]:.3f} at {int(largest):,}"


def _setting(report: Report, comparison: str, **wanted: Any) -> Any:
    for each in find(report, "measures", comparison) or []:
        if all(each.get(key) == value for key, value in wanted.items()):
            return each
    return None


def _cool(find_in: Callable[[Any, Any], str | None]) -> Callable[[Report], str | None]:
    """A change between temperature 1 and 0.6, the paper's lowest."""

    def ours(report: Report) -> str | None:
        plain, cool = (_setting(report, "temperature", temperature=t) for t in (1.0, 0.6))
        return None if plain is None or cool is None else find_in(plain, cool)

    return ours


def _gain(plain: Any, cool: Any) -> str:
    return _minus(f"{(cool['solvable']['share'] - plain['solvable']['share']) * 100:+.1f} points")


def _effort(plain: Any, cool: Any) -> str | None:
    if not plain["median_effort"] or cool["median_effort"] is None:
        return None
    return _minus(f"{(cool['median_effort'] / plain['median_effort'] - 1) * 100:+.0f} %")


def _confident(report: Report) -> str | None:
    found = _setting(report, "order", order="confidence")
    return found and f"{found['walls']['mean']:.2f}"


def _polished(sweeps: int) -> Callable[[Report], str | None]:
    return lambda report: _solvable(_setting(report, "polish", polish=sweeps))


def _kept(sweeps: int) -> Callable[[Report], str | None]:
    """With the critic, after so many sweeps."""

    def ours(report: Report) -> str | None:
        found = find(report, "measures", "critic") or []
        return _solvable(next((each for each in found if each["critic"] and each["polish"] == sweeps), None))

    return ours


def _solvable(setting: Any) -> str | None:
    return setting and f"{percent(setting['solvable']['share'])} ({interval(setting['solvable'])})"


def _millions(report: Report) -> str | None:
    parameters = find(report, "source", "model", "parameters")
    return parameters and f"{parameters / 1e6:.1f} M"


def _minus(text: str) -> str:
    return text.replace("-", "−")


_CULPRITS, _DISTANCES = ("measures", "culprits"), ("measures", "distances")
_HELD_OUT = (*_DISTANCES, "held_out")

#: Every number of the paper's, and what else a reader asks for, in the order of the report.
ROWS = (
    Row("boards measured", _number(",", "source", "boards"), PAPER["boards"]),
    Row("attempts a board", _number(".2f", "source", "attempts")),
    Row("network evaluations a board", _mean("source", "evaluations"), PAPER["evaluations"]),
    Row("solvable", _share(1, "solvability", "solvable"), PAPER["solvable"]),
    Row("malformed", _share(2, "solvability", "malformed")),
    Row("failures mended by one wall", _share(1, "repairs", "one_wall"), PAPER["one_wall"]),
    Row("solvable, or mended by one wall", _share(1, "repairs", "effective"), PAPER["effective"]),
    Row("broken even after two walls", _share(2, "repairs", "broken"), PAPER["broken"]),
    Row("culprit walls, median probability", _number(".2f", *_CULPRITS, "median"), PAPER["culprit_median"]),
    Row("other walls, median probability", _number(".2f", *_CULPRITS, "other_median"), PAPER["other_median"]),
    Row("walls a board", _walls, PAPER["walls"]),
    Row("walls a level of the corpus", _number(".2f", "corpus", "tiles", "wall"), PAPER["corpus_walls"]),
    Row("pattern divergence, ratio to held-out", _ratio, PAPER["jsd_ratio"]),
    Row(
        "its fall with the sample size, exponent",
        _number(".2f", "measures", "patterns", "exponent"),
        PAPER["jsd_exponent"],
    ),
    Row(
        "nearest training level, median cells", _number("g", *_DISTANCES, "median"), PAPER["distance_median"]
    ),
    Row("nearest training level, mean cells", _number(".2f", *_DISTANCES, "mean"), PAPER["distance_mean"]),
    Row("exact copies of training levels", _number(",", *_DISTANCES, "exact"), PAPER["distance_exact"]),
    Row("within five cells of one", _share(1, "distances", "within_five"), PAPER["distance_within_five"]),
    Row("held-out levels: mean cells", _number(".2f", *_HELD_OUT, "mean"), PAPER["held_out_distance_mean"]),
    Row("held-out levels: exact copies", _number(",", *_HELD_OUT, "exact"), PAPER["held_out_distance_exact"]),
    Row(
        "held-out levels: within five cells",
        _share(1, "distances", "held_out", "within_five"),
        PAPER["held_out_distance_within_five"],
    ),
    Row("duplicates within the sample", _number(",", "measures", "duplicates", "exact", "count")),
    Row(
        "duplicates, turned or mirrored too",
        _number(",", "measures", "duplicates", "under_symmetry", "count"),
    ),
    Row("temperature 0.6: solvability", _cool(_gain), PAPER["cool_gain"]),
    Row(
        "temperature 0.6: walls a board",
        _cool(lambda _, cool: f"{cool['walls']['mean']:.2f}"),
        PAPER["cool_walls"],
    ),
    Row("temperature 0.6: median effort", _cool(_effort), PAPER["cool_effort"]),
    Row("most probable tile first: walls a board", _confident, PAPER["confidence_walls"]),
    Row("one polish sweep: solvable", _polished(1)),
    Row("two polish sweeps: solvable", _polished(2)),
    Row("a critic: solvable", _kept(0)),
    Row("one polish sweep, then a critic: solvable", _kept(1)),
    Row("parameters", _millions, PAPER["parameters"]),
    Row("training steps", _number(",", "source", "model", "training_steps"), PAPER["training_steps"]),
)
