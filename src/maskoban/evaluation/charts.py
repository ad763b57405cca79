"""Each chart of a report, from its data to a picture.

Most take a value for each generator by name, so that one chart serves a report of one generator and of several.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from maskoban.evaluation import theme
from maskoban.evaluation.measures.board_measures import AXES
from maskoban.evaluation.measures.culprits import Culprits
from maskoban.evaluation.measures.difficulty import Difficulty, Spread
from maskoban.evaluation.measures.distances import Distances
from maskoban.evaluation.measures.patterns import PatternMatch
from maskoban.evaluation.measures.repairs import RepairRates
from maskoban.evaluation.measures.samplers import Setting
from maskoban.evaluation.measures.training import Training
from maskoban.evaluation.rows import PAPER, percent
from maskoban.evaluation.theme import (
    PERCENT,
    PLAIN,
    SHORT,
    WIDTH,
    band,
    legend,
    level,
    new_figure,
    series,
    shares_up,
    short,
)

#: Bins of an expressive range plot, across and up.
BINS = (26, 18)


@dataclass(frozen=True)
class DistanceData:
    """Distances of generators, and of held-out levels."""

    held_out: Distances
    generators: dict[str, Distances]


@dataclass(frozen=True)
class TemperatureData:
    """Samplers that differ in temperature, and the walls of the corpus."""

    settings: list[Setting]
    corpus_walls: float


@dataclass(frozen=True)
class CostData:
    """Samplers by what they vary."""

    steps: list[Setting]
    sweeps: list[Setting]
    critic: list[Setting]


@dataclass(frozen=True)
class RangeData:
    """Two measures of every board for which both are known, by generator."""

    x: str
    y: str
    points: dict[str, list[list[int]]]


def outcomes(data: Mapping[str, RepairRates]) -> Figure:
    """All boards by what it takes to repair them: a bar for each generator, and the paper's."""
    bars = {}
    for name, found in data.items():
        total = found.effective.total
        one, two = found.one_wall.count / total, found.two_walls.count / total
        bars[name] = [found.effective.count / total - one, one, two - one, found.broken.count / total]
    solvable, effective, broken = (PAPER[key].value for key in ("solvable", "effective", "broken"))
    bars["the paper's"] = [solvable, effective - solvable, 1 - effective - broken, broken]
    figure, (axes,) = new_figure(110 + 40 * len(bars))
    written = []
    for y, shares in enumerate(bars.values()):
        left = 0.0
        for (name, colour), share in zip(theme.FATES.items(), shares, strict=True):
            (bar,) = axes.barh(-y, share, 0.52, left, color=colour, label=None if y else name)
            ink = theme.ON_OURS if name in ("solvable", "broken") else theme.ON_ONE_WALL
            at = (left + share / 2, -y)
            written.append((bar, axes.text(*at, percent(share), ha="center", va="center", color=ink)))
            left += share
    axes.set(xlim=(0, 1), ylim=(0.5 - len(bars), 0.5))
    axes.set_yticks([-y for y in range(len(bars))], list(bars))
    axes.tick_params(axis="y", labelcolor=theme.INK)
    axes.xaxis.set_major_formatter(PERCENT)
    axes.grid(axis="y", visible=False)
    legend(figure, handlelength=1)
    figure.draw_without_rendering()
    for bar, text in written:
        if text.get_window_extent().width + 4 > bar.get_window_extent().width:
            text.remove()  # it has no room in its segment
    return figure


def culprits(data: Culprits) -> Figure:
    """Commit probabilities of the walls that make boards unsolvable, and of the other walls of the same boards."""
    figure, (axes,) = new_figure()
    for counts, median, name, colour, style in (
        (data.histogram, data.median, "culprit walls", theme.PAPER, "-"),
        (data.other_histogram, data.other_median, "other interior walls", theme.OURS, "--"),
    ):
        shares = [count / (sum(counts) or 1) for count in counts]
        if median is not None:
            name = f"{name}, median {median:.2f}"
            axes.axvline(median, color=colour, linewidth=1, linestyle=":")
        axes.stairs(shares, data.edges, fill=True, color=colour, alpha=0.18)
        axes.stairs(shares, data.edges, color=colour, linewidth=1.8, linestyle=style, label=name)
    when = "in the last sweep, given all other cells" if data.last_commit else "when it was first committed"
    axes.set(xlim=(0, 1), ylim=(0, axes.get_ylim()[1]), xlabel=f"probability {when}")
    shares_up(axes, "share of the walls")
    axes.grid(axis="x", visible=False)
    legend(figure)  # inside, the medians would cross it
    return figure


def patterns(data: Mapping[str, PatternMatch]) -> Figure:
    """Divergence from the corpus against the number of boards, and its ratio to that of held-out levels."""
    figure, (curve, ratio) = new_figure(420, nrows=2, sharex=True, height_ratios=(2.4, 1))
    held_out = next(iter(data.values())).held_out
    floor = {size: jsd for size, jsd in held_out.items() if jsd}  # a logarithmic axis has no place for 0
    curve.plot(list(floor), list(floor.values()), "s--", color=theme.THEIRS, label="held-out levels")
    ratios: list[float] = []
    for (name, found), (colour, style, marker) in zip(data.items(), series(data), strict=True):
        points = {size: jsd for size, jsd in found.jsd.items() if jsd}
        look = {"color": colour, "linestyle": style, "marker": marker}
        curve.plot(list(points), list(points.values()), label=name, **look)
        known = {size: each for size, each in found.ratio.items() if each is not None}
        ratio.plot(list(known), list(known.values()), **look)
        ratios += known.values()
    positive = floor or any(jsd for found in data.values() for jsd in found.jsd.values())
    curve.set(xscale="log", yscale="log" if positive else "linear")
    curve.set_title("3x3 pattern divergence from the corpus (JSD, bits)")
    if positive:
        curve.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    curve.yaxis.set_major_formatter(PLAIN)
    curve.yaxis.set_minor_locator(NullLocator())
    ratio.axhline(1, color=theme.THEIRS, linestyle="--", linewidth=1.4)
    # Fractions of a per cent are no news: the panel is never narrower than what the paper states.
    low, high = min([0.97, *ratios]), max([1.05, *ratios])
    ratio.set(ylim=(low - 0.1 * (high - low), high + 0.1 * (high - low)))
    ratio.yaxis.set_major_formatter(PLAIN)
    level(ratio, PAPER["jsd_ratio"].value, "the paper stays below 1.04", theme.PAPER)
    ratio.set_title("ratio to held-out levels")
    ratio.set_xlabel("boards")
    legend(figure)
    ratio.set_xticks(list(held_out), [short(size) for size in held_out])
    ratio.xaxis.set_minor_locator(NullLocator())
    return figure


def distances(data: DistanceData) -> Figure:
    """How many cells separate boards from the nearest training level."""
    figure, (axes,) = new_figure()
    looks = [(theme.THEIRS, "--", ""), *series(data.generators)]
    named = {"held-out levels": data.held_out} | data.generators
    for (name, found), (colour, style, _) in zip(named.items(), looks, strict=True):
        shares = [count / sum(found.histogram) for count in found.histogram]
        edges = [each - 0.5 for each in range(len(shares) + 1)]
        if len(named) == 2 and name != "held-out levels":
            axes.stairs(shares, edges, fill=True, color=colour, alpha=0.2)
        axes.stairs(shares, edges, color=colour, linestyle=style, linewidth=1.8, label=name)
    axes.set(xlim=(-0.5, None), ylim=(0, None), xlabel="cells that differ from the nearest training level")
    shares_up(axes, "share of boards")
    axes.grid(axis="x", visible=False)
    legend(figure)
    return figure


def difficulty(data: Mapping[str, Difficulty]) -> Figure:
    """The share of boards that need at most so much effort, decomposed effort or so many pushes, and the corpus's."""
    names = {"effort": "effort (states)", "decomposed": "decomposed effort", "pushes": "fewest pushes"}
    keys = [key for key in names if any(getattr(each, key) for each in data.values())]
    figure, panels = new_figure(ncols=len(keys), sharey=True)
    shares = [each / 100 for each in range(101)]
    against = next(iter(data.values())).against
    for axes, key in zip(panels, keys, strict=True):
        found = {name: getattr(each, key) for name, each in data.items()}
        known: dict[str, Spread] = {name: each for name, each in found.items() if each}
        corpus = next(iter(known.values())).corpus_percentiles
        axes.plot(corpus, shares, "--", color=theme.THEIRS, label=against)
        for name, (colour, style, _) in zip(data, series(data), strict=True):
            if name in known:
                axes.plot(known[name].percentiles, shares, color=colour, linestyle=style, label=name)
        axes.set(xlabel=names[key], ylim=(0, 1), yticks=(0, 0.25, 0.5, 0.75, 1))
        axes.yaxis.set_major_formatter(PERCENT)
        spreads = [corpus, *(each.percentiles for each in known.values())]
        low, high = min(each[1] for each in spreads), max(each[99] for each in spreads)
        if key == "pushes":
            axes.set_xlim(0, high * 1.15)
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        else:
            axes.set(xscale="log", xlim=(max(1, low), max(2, high) * 1.5))
            axes.xaxis.set_major_locator(LogLocator(numticks=10))
            axes.xaxis.set_major_formatter(SHORT)
            axes.xaxis.set_minor_locator(NullLocator())
    panels[0].set_title("share of the solvable boards")
    legend(figure)
    return figure


def quarters(data: Difficulty) -> Figure:
    """The share of boards in each quarter of the corpus by effort, and by decomposed effort."""
    figure, (axes,) = new_figure(230)
    both = {"by effort": data.quarters, "by decomposed effort": data.decomposed_quarters}
    shown = {name: shares for name, shares in both.items() if shares}
    width = 0.58 / len(shown)
    for place, (name, shares) in enumerate(shown.items()):
        colour = (theme.OURS, theme.ONE_WALL)[place]
        for number, share in enumerate(shares.values()):
            x = number + (place - (len(shown) - 1) / 2) * (width + 0.03)
            axes.bar(x, share.share or 0, width, color=colour, label=None if number else name)
            axes.plot([x, x], [share.low, share.high], color=theme.INK, linewidth=1.2)
            written = percent(share.share, 1 if len(shown) == 1 else 0)
            axes.annotate(
                written, (x, 0), (0, -4), textcoords="offset points", ha="center", va="top", color=theme.INK
            )
    axes.axhline(0.25, color=theme.THEIRS, linestyle="--", linewidth=1.4)
    axes.annotate(
        data.against, (1, 0.25), (2, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
        ha="right", color=theme.THEIRS,
    )  # fmt: skip
    axes.set_xticks(range(len(data.quarters)), list(data.quarters))
    axes.set_xlim(-0.5, len(data.quarters) - 0.1)
    axes.set_ylim(0, max(0.32, *(each.high * 1.15 for shares in shown.values() for each in shares.values())))
    axes.set_title("share of the solvable boards")
    axes.tick_params(axis="x", labelcolor=theme.INK, length=0, pad=20)  # below the shares
    axes.yaxis.set_major_formatter(PERCENT)
    axes.grid(axis="x", visible=False)
    if len(shown) > 1:
        legend(figure, handlelength=1)
    return figure


def temperature(data: TemperatureData) -> Figure:
    """Solvability and walls against temperature, with 95 % bands."""
    figure, (solvable, walls) = new_figure(420, nrows=2, sharex=True)
    at = [each.temperature for each in data.settings]
    band(solvable, at, [each.solvable for each in data.settings], theme.OURS, "o-")
    band(walls, at, [each.walls for each in data.settings], theme.OURS, "o-", "this model")
    paper = {1.0: PAPER["walls"].value, 0.6: PAPER["cool_walls"].value}
    walls.plot(list(paper), list(paper.values()), "D", color=theme.PAPER, label="the paper's")
    solvable.plot([1.0], [PAPER["solvable"].value], "D", color=theme.PAPER)
    walls.axhline(
        data.corpus_walls, color=theme.THEIRS, linestyle="--", linewidth=1.4, label="training levels"
    )
    shares_up(solvable, "solvable")
    walls.set_title("walls a board")
    walls.set_xlabel("temperature")
    walls.set_xticks(at, [f"{each:g}" for each in at])
    walls.legend(loc="upper right")
    return figure


def cost(data: CostData) -> Figure:
    """Solvability and divergence against the network evaluations that a board takes."""
    shown = (
        (data.steps, "fewer, coarser steps", theme.THEIRS, "s--"),
        (data.sweeps, "one cell a step, then Gibbs sweeps", theme.OURS, "o-"),
        (data.critic, "no or one sweep, then a critic", theme.INK, "D-."),
    )
    measured = any(each.jsd_ratio for settings, *_ in shown for each in settings)
    figure, panels = new_figure(420, nrows=2, sharex=True) if measured else new_figure()
    for settings, name, colour, style in shown:
        if settings:
            at = [each.evaluations for each in settings]
            band(panels[0], at, [each.solvable for each in settings], colour, style, name)
        known = [(each.evaluations, each.jsd_ratio) for each in settings if each.jsd_ratio]
        if known:
            panels[-1].plot(*zip(*known, strict=True), style, color=colour)
    shares_up(panels[0], "solvable")
    panels[0].legend(loc="lower right")
    if measured:
        panels[-1].axhline(1, color=theme.SOFT, linestyle=":", linewidth=1.2)
        panels[-1].set_title("pattern divergence, ratio to held-out levels")
    panels[-1].set(xscale="log", xlabel="network evaluations a board")
    # What a critic costs is seldom a round number, and may lie anywhere between the others.
    at = sorted({each.evaluations for each in data.steps + data.sweeps})
    panels[-1].set_xticks(at, [f"{x:g}" for x in at])
    panels[-1].xaxis.set_minor_locator(NullLocator())
    return figure


def training(data: Training) -> Figure:
    """Losses, and the solvability of the boards sampled on the way."""
    figure, panels = new_figure(420, nrows=2, sharex=True) if data.solvability else new_figure()
    for key, name, colour, style in (
        ("train", "training", theme.THEIRS, "--"),
        ("valid", "held-out", theme.OURS, "-"),
    ):
        points = [(each.step, getattr(each, key)) for each in data.losses if getattr(each, key) is not None]
        if points:
            panels[0].plot(*zip(*points, strict=True), style, color=colour, label=name)
    panels[0].set_title("loss")
    panels[0].legend(loc="upper right")
    if data.solvability:
        axes, each = panels[1], [(each.step, each.solvable) for each in data.solvability]
        middle = [share.share or 0 for _, share in each]
        ends = [
            [m - s.low for m, (_, s) in zip(middle, each, strict=True)],
            [s.high - m for m, (_, s) in zip(middle, each, strict=True)],
        ]
        axes.errorbar([step for step, _ in each], middle, ends, fmt="o-", color=theme.OURS, elinewidth=1.2)
        low, high = axes.get_ylim()
        top = max(high, PAPER["solvable"].value + 0.15 * (high - low))  # room for the words on the line
        axes.set_ylim(low, top)
        level(axes, PAPER["solvable"].value, "the paper's model", theme.PAPER)
        shares_up(axes, "solvable")
    panels[-1].set_xlabel("training steps")
    panels[-1].xaxis.set_major_formatter(SHORT)
    return figure


def expressive_range(data: RangeData) -> Figure:
    """Where the boards of each generator lie between two measures: a panel a generator, darker where there are more."""
    across = 1 if len(data.points) == 1 else 2
    rows = -(-len(data.points) // across)
    width = WIDTH if across == 1 else 1.8 * WIDTH
    figure, panels = new_figure(60 + 250 * rows, width, nrows=rows, ncols=across, sharex=True, sharey=True)
    everything = np.array([each for points in data.points.values() for each in points] or [[1, 1]], float)
    edges = [_edges(everything[:, place], name, BINS[place]) for place, name in enumerate((data.x, data.y))]
    for axes, (name, points), (colour, *_) in zip(
        panels, data.points.items(), series(data.points), strict=False
    ):
        found = np.array(points, float).reshape(len(points), 2)
        counts = np.histogram2d(found[:, 0], found[:, 1], edges)[0]
        for count in np.unique(counts[counts > 0]):  # one shape for all bins of a shade
            boxes = [
                [(edges[0][i + right], edges[1][j + up]) for right, up in ((0, 0), (1, 0), (1, 1), (0, 1))]
                for i, j in np.argwhere(counts == count)
            ]
            shade = 0.15 + 0.85 * (count / counts.max()) ** 0.5
            path = Path.make_compound_path_from_polys(np.array(boxes))
            axes.add_patch(PathPatch(path, facecolor=colour, alpha=shade, linewidth=0))
        for scale, which, limits in (("xscale", data.x, edges[0]), ("yscale", data.y, edges[1])):
            axes.set(
                **{scale: "log" if which.endswith("effort") else "linear", f"{scale[0]}lim": limits[[0, -1]]}
            )
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(SHORT)
            axis.set_minor_locator(NullLocator())
        axes.set_title(f"{name}: {len(points):,} boards")
        if not points:
            axes.text(0.5, 0.5, "no board has both measures", ha="center", transform=axes.transAxes)
    for axes in panels[len(data.points) :]:
        axes.set_visible(False)
    figure.supxlabel(AXES[data.x], fontsize=10, color=theme.SOFT)
    figure.supylabel(AXES[data.y], fontsize=10, color=theme.SOFT)
    return figure


def _edges(numbers: Any, name: str, bins: int) -> Any:
    """Edges of bins: of whole numbers where there are few, and growing ones for efforts."""
    low, high = numbers.min(), numbers.max()
    if name.endswith("effort"):
        return np.geomspace(max(low, 1), max(high, 2) * 1.01, bins + 1)
    step = max(1, int(np.ceil((high - low + 1) / bins)))
    return np.arange(low, high + step + 1, step) - 0.5
