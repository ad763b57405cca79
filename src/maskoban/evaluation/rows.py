"""Our numbers beside the paper's: the rows of the tables in reports, docs/results.md and the README.

The paper is *Solvable Sokoban Without a Solver via Diffusion* (Baghal); each of its numbers stands with its section.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from maskoban.evaluation.measures.share import Mean, Share
from maskoban.evaluation.report import Report, Source

TITLE = "Solvable Sokoban Without a Solver via Diffusion"


@dataclass(frozen=True)
class Stated:
    """A number of the paper's: its value, how the paper writes it, and in which section."""

    value: float
    text: str
    where: str


PAPER = {
    "solvable": Stated(0.774, "77.4 %", "abstract"),
    "one_wall": Stated(0.945, "94.5 %", "abstract; 3.2 One-wall fixes"),
    "effective": Stated(0.987, "98.7 %", "1.3.1 Solvability emerges without supervision"),
    "broken": Stated(0.0040, "0.40 %", "1.3.1 Solvability emerges without supervision"),
    "culprit_median": Stated(0.45, "0.45", "3.2 One-wall fixes"),
    "other_median": Stated(0.93, "0.93", "3.2 One-wall fixes"),
    "jsd_ratio": Stated(1.04, "under 1.04", "1.3.2 Distribution match"),
    "jsd_exponent": Stated(-0.59, "−0.59", "2.5 Distribution match, figure"),
    "distance_median": Stated(12, "12", "3.3 Memorization"),
    "distance_mean": Stated(11.43, "11.43", "3.3 Memorization"),
    "distance_exact": Stated(5, "5", "3.3 Memorization"),
    "distance_within_five": Stated(0.056, "5.6 %", "3.3 Memorization"),
    "held_out_distance_median": Stated(12, "12", "3.3 Memorization"),
    "held_out_distance_mean": Stated(11.33, "11.33", "3.3 Memorization"),
    "held_out_distance_exact": Stated(19, "19", "3.3 Memorization"),
    "held_out_distance_within_five": Stated(0.075, "7.5 %", "3.3 Memorization"),
    "walls": Stated(69.5, "69.5", "1.3.3 Temperature trade-off"),
    "corpus_walls": Stated(68.6, "68.6", "1.3.3 Temperature trade-off"),
    "cool_gain": Stated(0.038, "+3.8 points", "1.3.3 Temperature trade-off"),
    "cool_walls": Stated(73.2, "73.2", "1.3.3 Temperature trade-off"),
    "cool_effort": Stated(-0.36, "−36 %", "1.3.3 Temperature trade-off"),
    "confidence_walls": Stated(81.5, "81.5", "3.1 Sampling algorithm"),
    "boards": Stated(50_000, "50,000", "1.3.1 Solvability emerges without supervision"),
    "evaluations": Stated(100, "100", "3.1 Sampling algorithm"),
    "parameters": Stated(4.9e6, "4.9 M", "2.2 Architecture"),
    "training_steps": Stated(292_000, "292,000", "2.4 Loss and solvability"),
}

#: What stands where something was not measured.
NOTHING = "–"


@dataclass(frozen=True)
class Row:
    """A measure: where a report has it, its form, and the paper's counterpart.

    ``form`` is the number of digits of a share or a mean, else a format. ``brief`` rows are in the README, too.
    """

    label: str
    find: str | Callable[[Any], Any]  # a path of fields, or a function of a report
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
        find = attrgetter(self.find) if isinstance(self.find, str) else self.find
        try:
            found = find(report)
        except (AttributeError, TypeError, LookupError):  # something on the way was not measured and is None
            return None
        if isinstance(found, Share | Mean):
            return with_interval(found, int(self.form or 1))
        return None if found is None else format(found, self.form).replace("-", "−")


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
    steps = []
    if source.sweeps:
        steps.append(f"{source.sweeps} Gibbs sweep{'s' if source.sweeps > 1 else ''}")
    if source.critic is not None and source.attempts is not None:
        rejected = percent(1 - 1 / source.attempts, 0)
        steps.append(
            f"rejection sampling with a critic, which rejects {rejected} of the boards and never saw a solver"
        )
    return steps


def known_ratios(report: Report) -> dict[int, float]:
    """The ratios of pattern divergence by sample size, where there are any."""
    ratios = report.patterns.ratio if report.patterns else {}
    return {size: ratio for size, ratio in ratios.items() if ratio is not None}


def _ratio(report: Report) -> str | None:
    ratios = known_ratios(report)
    if not ratios:
        return None
    return f"at most {max(ratios.values()):.3f}; {ratios[max(ratios)]:.3f} at {max(ratios):,}"


def _culprits(field: str) -> Callable[[Report], str]:
    """Says so where the probability is not the paper's, which is that of the first commit."""

    def find(report: Any) -> str:
        note = " (in the last sweep)" if report.culprits.last_commit else ""
        return f"{getattr(report.culprits, field):.2f}{note}"

    return find


def _at(report: Report, temperature: float) -> Any:
    return report.setting("temperature", temperature=temperature)


def _gain(report: Report) -> str:
    return f"{(_at(report, 0.6).solvable.share - _at(report, 1.0).solvable.share) * 100:+.1f} points"


def _effort(report: Report) -> str | None:
    cool, plain = _at(report, 0.6).median_effort, _at(report, 1.0).median_effort
    return f"{(cool / plain - 1) * 100:+.0f} %" if plain else None


def _surest_first(report: Report) -> float | None:
    setting = report.setting("order", order="confidence")
    return setting.walls.mean if setting else None


def _critic(report: Report, sweeps: int) -> Share | None:
    return next((each.solvable for each in report.critic if each.critic and each.sweeps == sweeps), None)


#: Every number of the paper's, and what else a reader asks for, in the order of the report.
ROWS = (
    Row("boards measured", "source.boards", ",", "boards", brief=True),
    Row("attempts a board", "source.attempts", ".2f"),
    Row(
        "network evaluations a board", lambda r: rounded(r.source.evaluations), "", "evaluations", brief=True
    ),
    Row("solvable", "solvability.solvable", "1", "solvable", brief=True),
    Row("malformed", "solvability.malformed", "2", brief=True),
    Row("failures repaired by one wall", "repairs.one_wall", "1", "one_wall", brief=True),
    Row("solvable, or repaired by one wall", "repairs.effective", "1", "effective", brief=True),
    Row("broken even after two walls", "repairs.broken", "2", "broken", brief=True),
    Row("culprit walls, median probability when committed", _culprits("median"), "", "culprit_median"),
    Row("other walls, median probability when committed", _culprits("other_median"), "", "other_median"),
    Row("walls a board", "tiles.walls", "2", "walls", brief=True),
    Row("walls a level of the corpus", lambda r: r.corpus.tiles["wall"], ".2f", "corpus_walls", brief=True),
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
    Row("temperature 0.6: solvability", _gain, "", "cool_gain"),
    Row("temperature 0.6: walls a board", lambda r: _at(r, 0.6).walls.mean, ".2f", "cool_walls"),
    Row("temperature 0.6: median effort", _effort, "", "cool_effort"),
    Row("most probable tile first: walls a board", _surest_first, ".2f", "confidence_walls"),
    Row("one Gibbs sweep: solvable", lambda r: r.setting("sweeps", sweeps=1).solvable),
    Row("two Gibbs sweeps: solvable", lambda r: r.setting("sweeps", sweeps=2).solvable),
    Row("a critic: solvable", lambda r: _critic(r, 0)),
    Row("one Gibbs sweep, then a critic: solvable", lambda r: _critic(r, 1)),
    Row("parameters", lambda r: f"{r.source.model['parameters'] / 1e6:.1f} M", "", "parameters", brief=True),
    Row("training steps", lambda r: r.source.model["training_steps"], ",", "training_steps", brief=True),
)

#: Diversity and difficulty, for comparing generators.
DIVERSITY_ROWS = (
    Row("boards compared", "diversity.boards", ","),
    Row("cells in which two boards differ, mean", "diversity.pairwise_distance", ".2f"),
    Row("distinct 3x3 patterns", "diversity.patterns", ","),
    Row("windows of the corpus with one of them", lambda r: percent(r.diversity.coverage)),
    Row("windows with a pattern the corpus never has", lambda r: percent(r.diversity.novel)),
    Row("solved boards", "diversity.solved", ","),
    Row("distinct solutions (pushes, box changes)", "diversity.solutions", ","),
    Row("effective number of solutions, 2^entropy", "diversity.effective_solutions", ".1f"),
    Row("fewest pushes, median", lambda r: r.difficulty.pushes.percentiles[50], ","),
    Row("effort, median", lambda r: r.difficulty.effort.percentiles[50], ","),
    Row("decomposed effort, median", lambda r: r.difficulty.decomposed.percentiles[50], ","),
)
