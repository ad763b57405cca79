"""Our numbers beside the paper's: the rows of the tables in reports, docs/results.md and the README."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maskoban.evaluation.measures.samplers import Setting
from maskoban.evaluation.measures.share import Mean, Share
from maskoban.evaluation.paper import PAPER, Stated
from maskoban.evaluation.report import Report, Source

#: What stands where something was not measured.
NOTHING = "–"


@dataclass(frozen=True)
class Row:
    """A measure: where a report has it (a path of fields, or a function), its form, and the paper's counterpart.

    ``form`` is the number of digits of a share or a mean, else a format. ``brief`` rows are in the README, too.
    """

    label: str
    find: str | Callable[[Report], Any]
    form: str = ""
    stated: str = ""
    brief: bool = False

    @property
    def paper(self) -> Stated | None:
        """What the paper says."""
        return PAPER[self.stated] if self.stated else None

    def ours(self, report: Report) -> str | None:
        """The text in a report; None where it was not measured.

        >>> ROWS[0].ours(Report("1", Source("best", 20_000)))
        '20,000'
        """
        found = find_field(report, self.find) if isinstance(self.find, str) else self.find(report)
        if isinstance(found, Share | Mean):
            return with_interval(found, int(self.form or 1))
        return (
            found if found is None or isinstance(found, str) else format(found, self.form).replace("-", "−")
        )


def find_field(value: Any, path: str) -> Any:
    """The field at a path like "repairs.one_wall"; None where something on the way is None.

    >>> find_field(Report("1", Source("best", 3)), "repairs.one_wall") is None
    True
    """
    for name in path.split("."):
        if value is None:
            return None
        value = value.get(name) if isinstance(value, dict) else getattr(value, name)
    return value


def percent(share: float | None, digits: int = 1) -> str:
    """A share as people read it.

    >>> percent(0.827099), percent(0.004, 2), percent(None)
    ('82.7 %', '0.40 %', '–')
    """
    return NOTHING if share is None else f"{share * 100:.{digits}f} %"


def interval(share: Share, digits: int = 1) -> str:
    """The 95 % interval of a share, in per cent.

    >>> from maskoban.evaluation.measures.share import share_of
    >>> interval(share_of(9, 10))
    '59.6 to 98.2'
    """
    return f"{share.low * 100:.{digits}f} to {share.high * 100:.{digits}f}"


def with_interval(value: Share | Mean, digits: int = 1) -> str | None:
    """A share or a mean and its 95 % interval.

    >>> with_interval(Mean(1.5, 1.25, 1.75), 2)
    '1.50 (1.25 to 1.75)'
    """
    if isinstance(value, Mean):
        return f"{value.mean:.{digits}f} ({value.low:.{digits}f} to {value.high:.{digits}f})"
    return None if value.share is None else f"{percent(value.share, digits)} ({interval(value, digits)})"


def fixed(number: float | None, digits: int) -> str:
    """A number with so many digits behind the point.

    >>> fixed(-0.586, 2), fixed(None, 2)
    ('−0.59', '–')
    """
    return NOTHING if number is None else f"{number:.{digits}f}".replace("-", "−")


def rounded(mean: float) -> str:
    """A mean of whole numbers, with a digit behind the point where it needs one.

    >>> rounded(128.0), rounded(187.34)
    ('128', '187.3')
    """
    return f"{mean:,.1f}".removesuffix(".0")


def sampled_how(source: Source) -> list[str]:
    """What the sampler did after unmasking, in order.

    >>> for each in sampled_how(Source("best", 9, sweeps=1, critic=1.5, attempts=1.25)):
    ...     print(each)
    1 Gibbs sweep
    rejection sampling with a critic, which rejects 20 % of the boards and never saw a solver
    """
    told = []
    if source.sweeps:
        told.append(f"{source.sweeps} Gibbs sweep{'s' if source.sweeps > 1 else ''}")
    if source.critic is not None and source.attempts is not None:
        rejected = percent(1 - 1 / source.attempts, 0)
        told.append(
            f"rejection sampling with a critic, which rejects {rejected} of the boards and never saw a solver"
        )
    return told


def known_ratios(report: Report) -> dict[int, float]:
    """The ratios of pattern divergence by sample size, where there are any."""
    ratios = report.patterns.ratio if report.patterns else {}
    return {size: ratio for size, ratio in ratios.items() if ratio is not None}


def _ratio(report: Report) -> str | None:
    ratios = known_ratios(report)
    if not ratios:
        return None
    return f"at most {max(ratios.values()):.3f}; {ratios[max(ratios)]:.3f} at {max(ratios):,}"


def _culprits(field: str) -> Callable[[Report], str | None]:
    """Says so where the probability is not the paper's, which is that of the first commit."""

    def find(report: Report) -> str | None:
        found = find_field(report, f"culprits.{field}")
        if found is None or report.culprits is None:
            return None
        return f"{found:.2f}" + (" (in the last sweep)" if report.culprits.last_commit else "")

    return find


def _cool(change: Callable[[Setting, Setting], str | None]) -> Callable[[Report], str | None]:
    """A change between temperature 1 and 0.6, the paper's lowest."""

    def find(report: Report) -> str | None:
        plain, cool = (report.setting("temperature", temperature=t) for t in (1.0, 0.6))
        return None if plain is None or cool is None else change(plain, cool)

    return find


def _gain(plain: Setting, cool: Setting) -> str | None:
    if plain.solvable.share is None or cool.solvable.share is None:
        return None
    return f"{(cool.solvable.share - plain.solvable.share) * 100:+.1f} points".replace("-", "−")


def _effort(plain: Setting, cool: Setting) -> str | None:
    if not plain.median_effort or cool.median_effort is None:
        return None
    return f"{(cool.median_effort / plain.median_effort - 1) * 100:+.0f} %".replace("-", "−")


def _sampler(comparison: str, path: str, **wanted: Any) -> Callable[[Report], Any]:
    return lambda report: find_field(report.setting(comparison, **wanted), path)


def _critic(sweeps: int) -> Callable[[Report], Share | None]:
    return lambda r: next((each.solvable for each in r.critic if each.critic and each.sweeps == sweeps), None)


def _evaluations(report: Report) -> str | None:
    return None if report.source.evaluations is None else rounded(report.source.evaluations)


def _parameters(report: Report) -> str | None:
    parameters = find_field(report, "source.model.parameters")
    return None if parameters is None else f"{parameters / 1e6:.1f} M"


#: Every number of the paper's, and what else a reader asks for, in the order of the report.
ROWS = (
    Row("boards measured", "source.boards", ",", "boards", brief=True),
    Row("attempts a board", "source.attempts", ".2f"),
    Row("network evaluations a board", _evaluations, "", "evaluations", brief=True),
    Row("solvable", "solvability.solvable", "1", "solvable", brief=True),
    Row("malformed", "solvability.malformed", "2", brief=True),
    Row("failures repaired by one wall", "repairs.one_wall", "1", "one_wall", brief=True),
    Row("solvable, or repaired by one wall", "repairs.effective", "1", "effective", brief=True),
    Row("broken even after two walls", "repairs.broken", "2", "broken", brief=True),
    Row("culprit walls, median probability when committed", _culprits("median"), "", "culprit_median"),
    Row("other walls, median probability when committed", _culprits("other_median"), "", "other_median"),
    Row("walls a board", "tiles.walls", "2", "walls", brief=True),
    Row("walls a level of the corpus", "corpus.tiles.wall", ".2f", "corpus_walls", brief=True),
    Row("pattern divergence, ratio to held-out", _ratio, "", "jsd_ratio", brief=True),
    Row("its fall with the sample size, exponent", "patterns.exponent", ".2f", "jsd_exponent"),
    Row("nearest training level, median cells", "distances.median", "g", "distance_median", brief=True),
    Row("nearest training level, mean cells", "distances.mean", ".2f", "distance_mean"),
    Row("exact copies of training levels", "distances.exact", ",", "distance_exact", brief=True),
    Row("within five cells of one", "distances.within_five", "1", "distance_within_five"),
    Row("held-out levels: mean cells", "held_out.mean", ".2f", "held_out_distance_mean"),
    Row("held-out levels: exact copies", "held_out.exact", ",", "held_out_distance_exact"),
    Row("held-out levels: within five cells", "held_out.within_five", "1", "held_out_distance_within_five"),
    Row("duplicates within the sample", "duplicates.exact.count", ","),
    Row("duplicates, turned or mirrored too", "duplicates.under_symmetry.count", ","),
    Row("temperature 0.6: solvability", _cool(_gain), "", "cool_gain"),
    Row(
        "temperature 0.6: walls a board",
        _sampler("temperature", "walls.mean", temperature=0.6),
        ".2f",
        "cool_walls",
    ),
    Row("temperature 0.6: median effort", _cool(_effort), "", "cool_effort"),
    Row(
        "most probable tile first: walls a board",
        _sampler("order", "walls.mean", order="confidence"),
        ".2f",
        "confidence_walls",
    ),
    Row("one Gibbs sweep: solvable", _sampler("sweeps", "solvable", sweeps=1)),
    Row("two Gibbs sweeps: solvable", _sampler("sweeps", "solvable", sweeps=2)),
    Row("a critic: solvable", _critic(0)),
    Row("one Gibbs sweep, then a critic: solvable", _critic(1)),
    Row("parameters", _parameters, "", "parameters", brief=True),
    Row("training steps", "source.model.training_steps", ",", "training_steps", brief=True),
)


def _share_of_windows(field: str) -> Callable[[Report], str | None]:
    def find(report: Report) -> str | None:
        found = find_field(report, f"diversity.{field}")
        return None if found is None else percent(found)

    return find


def _median(field: str) -> Callable[[Report], int | None]:
    def find(report: Report) -> int | None:
        found = find_field(report, f"difficulty.{field}.percentiles")
        return None if found is None else int(found[50])

    return find


#: Diversity and difficulty, for comparing generators.
DIVERSITY_ROWS = (
    Row("boards compared", "diversity.boards", ","),
    Row("cells in which two boards differ, mean", "diversity.pairwise_distance", ".2f"),
    Row("distinct 3x3 patterns", "diversity.patterns", ","),
    Row("windows of the corpus with one of them", _share_of_windows("coverage")),
    Row("windows with a pattern the corpus never has", _share_of_windows("novel")),
    Row("solved boards", "diversity.solved", ","),
    Row("distinct solutions (pushes, box changes)", "diversity.solutions", ","),
    Row("effective number of solutions, 2^entropy", "diversity.effective_solutions", ".1f"),
    Row("fewest pushes, median", _median("pushes"), ","),
    Row("effort, median", _median("effort"), ","),
    Row("decomposed effort, median", _median("decomposed"), ","),
)
