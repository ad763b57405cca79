"""Each chart of a report, from its data (what ``report.json`` holds of it) to a picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from maskoban.evaluation import theme
from maskoban.evaluation.comparison import percent
from maskoban.evaluation.paper import PAPER

#: In hundredths of an inch, which are the pixels of the page.
WIDTH, HEIGHT = 520, 340

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "maskoban",  # the same figure, the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": theme.INK,
    "axes.edgecolor": theme.GRID,
    "axes.labelcolor": theme.SOFT,
    "axes.titlecolor": theme.INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": theme.GRID,
    "grid.linewidth": 0.7,
    "xtick.color": theme.GRID,
    "xtick.labelcolor": theme.SOFT,
    "ytick.color": theme.GRID,
    "ytick.labelcolor": theme.SOFT,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.borderaxespad": 0.2,
    "legend.handlelength": 1.8,
    "savefig.transparent": True,
}


def svg_and_png(chart: Callable[[Any], Figure], data: Any) -> tuple[str, bytes]:
    """The chart as an SVG document on nothing, and as a PNG on the colour of the page.

    >>> svg, png = svg_and_png(distances, {"histogram": [1, 2], "held_out": {"histogram": [2, 1]}})
    >>> svg[:4], png[1:4]
    ('<svg', b'PNG')
    """
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = chart(data)
        drawn, pixels = BytesIO(), BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(
            pixels,
            format="png",
            dpi=200,
            facecolor=theme.PAGE,
            transparent=False,
            metadata={"Software": None},
        )
    return _tidied(drawn.getvalue().decode()), pixels.getvalue()


def outcomes(repairs: dict[str, Any]) -> Figure:
    """What becomes of all boards, as one bar, above the paper's."""
    solvable = repairs["effective"]["count"] - repairs["one_wall"]["count"]
    total = repairs["effective"]["total"]
    one = repairs["one_wall"]["count"] / total
    two = repairs["two_walls"]["count"] / total - one
    ours = [solvable / total, one, two, repairs["broken"]["share"]]
    paper = [
        PAPER["solvable"].value,
        PAPER["effective"].value - PAPER["solvable"].value,
        0.0,
        PAPER["broken"].value,
    ]
    paper[2] = 1 - sum(paper)
    figure, axes = _figure(190)
    for y, shares in ((1, ours), (0, paper)):
        left = 0.0
        for (name, colour), share in zip(theme.FATES.items(), shares, strict=True):
            axes.barh(y, share, 0.52, left, color=colour, label=name if y else None)
            if share > 0.08:
                axes.text(
                    left + share / 2,
                    y,
                    percent(share),
                    ha="center",
                    va="center",
                    color=theme.ON_OURS if name == "solvable" else theme.ON_ONE_WALL,
                )
            left += share
    axes.set(xlim=(0, 1), ylim=(-0.5, 1.5), yticks=(1, 0), yticklabels=("these boards", "the paper's"))
    axes.tick_params(axis="y", labelcolor=theme.INK)
    axes.xaxis.set_major_formatter(_PERCENT)
    axes.grid(axis="y", visible=False)
    figure.legend(loc="outside upper left", ncols=4, handlelength=1, columnspacing=1.4)
    return figure


def culprits(data: dict[str, Any]) -> Figure:
    """Commit probabilities of the walls that spoil boards, against the other walls of the same boards."""
    figure, axes = _figure()
    edges = data["edges"]
    for key, middle, name, colour, style in (
        ("histogram", "median", "culprit walls", theme.PAPER, "-"),
        ("other_histogram", "other_median", "other interior walls", theme.OURS, "--"),
    ):
        total = sum(data[key]) or 1
        shares = [count / total for count in data[key]]
        if data[middle] is not None:
            name = f"{name}, median {data[middle]:.2f}"
            axes.axvline(data[middle], color=colour, linewidth=1, linestyle=":")
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.18)
        axes.stairs(shares, edges, color=colour, linewidth=1.8, linestyle=style, label=name)
    top = axes.get_ylim()[1]
    axes.set(xlim=(0, 1), ylim=(0, top), xlabel="probability when it was committed")
    axes.set_title("share of the walls")
    axes.yaxis.set_major_formatter(_PERCENT)
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside upper left", ncols=2, columnspacing=1.4)  # inside, the medians would cross it
    return figure


def patterns(data: dict[str, Any]) -> Figure:
    """Divergence from the corpus against the number of boards, and how far above the held-out levels it is."""
    figure, (curve, ratio) = _panels((2.4, 1), height=420)
    for key, name, colour, style in (
        ("held_out", "held-out levels: the floor", theme.THEIRS, "s--"),
        ("jsd", "these boards", theme.OURS, "o-"),
    ):
        points = {size: jsd for size, jsd in data[key].items() if jsd}  # an axis of powers has no place for 0
        if points:
            curve.plot(*_series(points), style, color=colour, label=name)
    curve.set(xscale="log", yscale="log")
    curve.set_title("3x3 pattern divergence from the corpus (JSD, bits)")
    curve.set_yticks([0.02, 0.05, 0.1, 0.2], ["0.02", "0.05", "0.10", "0.20"])
    curve.yaxis.set_minor_locator(NullLocator())
    if curve.lines:
        curve.legend(loc="lower left")
    ratio.axhline(1, color=theme.THEIRS, linestyle="--", linewidth=1.4)
    ratio.axhline(PAPER["jsd_ratio"].value, color=theme.PAPER, linestyle=":", linewidth=1.2)
    sizes, ratios = _series({size: each for size, each in data["ratio"].items() if each is not None})
    ratio.plot(sizes, ratios, "o-", color=theme.OURS)
    # Fractions of a per cent are no news: the panel is never narrower than what the paper allows itself.
    ratio.set(ylim=(min(0.97, *ratios) - 0.01, max(1.05, *ratios) + 0.01) if ratios else (0.96, 1.06))
    ratio.annotate(
        "the paper stays below 1.04",
        (0, PAPER["jsd_ratio"].value),
        (2, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        color=theme.PAPER,
        fontsize=8.5,
    )
    ratio.set_title("ratio to the floor")
    ratio.set_xlabel("boards")
    sizes = [int(size) for size in data["held_out"]]
    ratio.set_xticks(sizes, [_short(size) for size in sizes])
    ratio.xaxis.set_minor_locator(NullLocator())
    return figure


def distances(data: dict[str, Any]) -> Figure:
    """How many cells separate boards from the nearest training level: both distributions."""
    figure, axes = _figure()
    for source, name, colour, style, fill in (
        (data["held_out"], "held-out levels", theme.THEIRS, "--", False),
        (data, "these boards", theme.OURS, "-", True),
    ):
        counts = source["histogram"]
        shares = [count / sum(counts) for count in counts]
        edges = [each - 0.5 for each in range(len(counts) + 1)]
        if fill:
            axes.stairs(shares, edges, fill=True, color=colour, alpha=0.2)
        axes.stairs(shares, edges, color=colour, linestyle=style, linewidth=1.8, label=name)
    axes.set(xlim=(-0.5, None), ylim=(0, None), xlabel="cells that differ from the nearest training level")
    axes.set_title("share of boards")
    axes.yaxis.set_major_formatter(_PERCENT)
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right")
    return figure


def difficulty(data: dict[str, Any]) -> Figure:
    """Effort and pushes: the share of boards that need at most so much, against the corpus."""
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), layout="constrained")
    both = cast(Sequence[Axes], figure.subplots(1, 2, sharey=True))
    against = data.get("against", "Boxoban")  # reports from before there was a choice do not say
    for axes, key, name in (
        (both[0], "effort", "solver effort (states)"),
        (both[1], "pushes", "fewest pushes"),
    ):
        shares = [each / 100 for each in range(101)]
        axes.plot(
            data[key]["corpus_percentiles"],
            shares,
            "--",
            color=theme.THEIRS,
            label=against,
        )
        axes.plot(data[key]["percentiles"], shares, color=theme.OURS, label="these boards")
        axes.set(xlabel=name, ylim=(0, 1), yticks=(0, 0.25, 0.5, 0.75, 1))
        axes.yaxis.set_major_formatter(_PERCENT)
    both[0].set_xscale("log")
    least, most = (
        bound(data["effort"][whose][at] for whose in ("percentiles", "corpus_percentiles"))
        for bound, at in ((min, 1), (max, 99))
    )
    both[0].set_xlim(max(1, least), max(2, most) * 1.5)
    both[0].xaxis.set_major_formatter(FuncFormatter(lambda x, _: _short(x)))
    both[1].set_xlim(
        0, max(data["pushes"]["percentiles"][99], data["pushes"]["corpus_percentiles"][99]) * 1.15
    )
    both[0].set_title("share of the boards that can be solved")
    both[1].legend(loc="lower right")
    return figure


def quarters(data: dict[str, Any]) -> Figure:
    """The share of boards in each quarter of the corpus' effort."""
    figure, axes = _figure(230)
    shares = data["quarters"]
    for x, share in enumerate(shares.values()):
        axes.bar(x, share["share"], 0.58, color=theme.OURS, alpha=0.85)
        axes.plot([x, x], [share["low"], share["high"]], color=theme.INK, linewidth=1.2)
        axes.annotate(
            percent(share["share"]),
            (x, share["high"]),
            (0, 4),
            textcoords="offset points",
            ha="center",
            color=theme.INK,
        )
    axes.axhline(0.25, color=theme.THEIRS, linestyle="--", linewidth=1.4)
    axes.annotate(
        "Boxoban",
        (1, 0.25),
        (2, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        color=theme.THEIRS,
    )
    axes.set(xticks=range(len(shares)), xlim=(-0.5, len(shares) - 0.1))
    axes.set_xticklabels(list(shares))
    axes.set_ylim(0, max(0.32, *(share["high"] * 1.15 for share in shares.values())))
    axes.set_title("share of the boards that can be solved")
    axes.tick_params(axis="x", labelcolor=theme.INK)
    axes.yaxis.set_major_formatter(_PERCENT)
    axes.grid(axis="x", visible=False)
    return figure


def temperature(data: dict[str, Any]) -> Figure:
    """Solvability and walls against temperature, with 95 % bands."""
    figure, (solvable, walls) = _panels((1, 1), height=420)
    at = [each["temperature"] for each in data["settings"]]
    for axes, key, middle in ((solvable, "solvable", "share"), (walls, "walls", "mean")):
        each = [setting[key] for setting in data["settings"]]
        axes.fill_between(
            at, [e["low"] for e in each], [e["high"] for e in each], color=theme.OURS, alpha=0.2, linewidth=0
        )
        axes.plot(at, [e[middle] for e in each], "o-", color=theme.OURS)
    paper = {1.0: PAPER["walls"].value, 0.6: PAPER["cool_walls"].value}
    walls.plot(list(paper), list(paper.values()), "D", color=theme.PAPER, label="the paper's")
    solvable.plot([1.0], [PAPER["solvable"].value], "D", color=theme.PAPER, label="the paper's")
    walls.axhline(
        data["corpus_walls"], color=theme.THEIRS, linestyle="--", linewidth=1.4, label="training levels"
    )
    solvable.yaxis.set_major_formatter(_PERCENT)
    solvable.set_title("solvable")
    walls.set_title("walls a board")
    walls.set_xlabel("temperature")
    walls.set_xticks(at)
    walls.legend(loc="upper right")
    return figure


def cost(data: dict[str, Any]) -> Figure:
    """Solvability and divergence against the network evaluations that a board takes."""
    figure, (solvable, ratio) = _panels((1, 1), height=420)
    for key, name, colour, style in (
        ("steps", "fewer, coarser steps", theme.THEIRS, "s--"),
        ("polish", "one cell a step, then polish sweeps", theme.OURS, "o-"),
        ("critic", "no or one polish sweep, then a critic", theme.INK, "D-."),
    ):
        each = data.get(key)
        if each is None:
            continue
        at = [setting["evaluations"] for setting in each]
        shares = [setting["solvable"] for setting in each]
        solvable.fill_between(
            at, [s["low"] for s in shares], [s["high"] for s in shares], color=colour, alpha=0.18, linewidth=0
        )
        solvable.plot(at, [s["share"] for s in shares], style, color=colour, label=name)
        known = [
            (x, setting["jsd_ratio"]) for x, setting in zip(at, each, strict=True) if setting["jsd_ratio"]
        ]
        if known:
            ratio.plot(*zip(*known, strict=True), style, color=colour)
    solvable.yaxis.set_major_formatter(_PERCENT)
    solvable.set_title("solvable")
    solvable.legend(loc="lower right")
    ratio.axhline(1, color=theme.SOFT, linestyle=":", linewidth=1.2)
    ratio.set_title("pattern divergence, ratio to the held-out floor")
    ratio.set(xscale="log", xlabel="network evaluations a board")
    # What a critic costs is seldom a round number, and may lie anywhere between the others.
    at = sorted({setting["evaluations"] for key in ("steps", "polish") for setting in data[key]})
    ratio.set_xticks(at, [f"{x:g}" for x in at])
    ratio.xaxis.set_minor_locator(NullLocator())
    return figure


def training(data: dict[str, Any]) -> Figure:
    """Losses above, solvability of the boards drawn on the way below."""
    figure, (loss, solvable) = _panels((1, 1), height=420)
    for key, name, colour, style in (
        ("train", "training", theme.THEIRS, "--"),
        ("valid", "held-out", theme.OURS, "-"),
    ):
        points = [(each["step"], each[key]) for each in data["losses"] if each[key] is not None]
        if points:
            loss.plot(*zip(*points, strict=True), style, color=colour, label=name)
    loss.set_title("loss")
    loss.legend(loc="upper right")
    at = [each["step"] for each in data["solvability"]]
    each = [checkpoint["solvable"] for checkpoint in data["solvability"]]
    solvable.errorbar(
        at,
        [s["share"] for s in each],
        [[s["share"] - s["low"] for s in each], [s["high"] - s["share"] for s in each]],
        fmt="o-",
        color=theme.OURS,
        elinewidth=1.2,
    )
    solvable.axhline(PAPER["solvable"].value, color=theme.PAPER, linestyle=":", linewidth=1.4)
    solvable.annotate(
        "the paper's model",
        (0, PAPER["solvable"].value),
        (2, 4),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        color=theme.PAPER,
    )
    low, high = solvable.get_ylim()
    solvable.set_ylim(low, max(high, PAPER["solvable"].value + 0.15 * (high - low)))  # room for these words
    solvable.yaxis.set_major_formatter(_PERCENT)
    solvable.set_title("solvable")
    solvable.set_xlabel("training steps")
    solvable.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _short(x)))
    return figure


_PERCENT = PercentFormatter(1, decimals=0, symbol=" %")


def _figure(height: int = HEIGHT) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH / 100, height / 100), layout="constrained")
    return figure, figure.subplots()


def _panels(heights: tuple[float, float], height: int) -> tuple[Figure, tuple[Axes, Axes]]:
    """Two panels above each other that share what is across."""
    figure = Figure(figsize=(WIDTH / 100, height / 100), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=heights)
    return figure, (upper, lower)


def _series(by_size: dict[str, float]) -> tuple[list[int], list[float]]:
    return [int(size) for size in by_size], list(by_size.values())


def _short(number: float) -> str:
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def _tidied(svg: str) -> str:
    """The drawing without its prologue, in the reader's letters, with the colours of the night."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font(-family)?: [^;\"]*sans-serif[^;\"]*", _letters, svg)
    return theme.with_night(svg)


def _letters(found: re.Match[str]) -> str:
    size = re.search(r"[\d.]+px", found[0])
    return f"font: {size[0]} {theme.FONT}" if size else f"font-family: {theme.FONT}"
