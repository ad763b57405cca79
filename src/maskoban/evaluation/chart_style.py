"""The style of the charts: size, colours, tick labels, and what becomes of a figure when it is saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from maskoban.evaluation import theme
from maskoban.evaluation.measures.share import Share

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
    """The chart as an SVG document on a transparent ground, and as a PNG on the colour of the page."""
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = chart(data)
        vectors, pixels = BytesIO(), BytesIO()
        figure.savefig(vectors, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(
            pixels,
            format="png",
            dpi=200,
            facecolor=theme.PAGE,
            transparent=False,
            metadata={"Software": None},
        )
    return _tidied(vectors.getvalue().decode()), pixels.getvalue()


#: Tick labels that say the number at which the tick stands, with as many digits as that takes.
PERCENT = FuncFormatter(lambda x, _: f"{round(x * 100, 6):g} %")
PLAIN = FuncFormatter(lambda x, _: f"{round(x, 9):g}")
SHORT = FuncFormatter(lambda x, _: short(x))


def series(names: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """Colour, line style and marker for each name."""
    return [theme.SERIES[place % len(theme.SERIES)] for place in range(len(names))]


def band(axes: Axes, at: list[float], shares: list[Share], colour: str, style: str, name: str = "") -> None:
    """Shares with their 95 % intervals as a band."""
    axes.fill_between(
        at, [s.low for s in shares], [s.high for s in shares], color=colour, alpha=0.18, linewidth=0
    )
    axes.plot(at, [s.share or 0 for s in shares], style, color=colour, label=name)


def level(axes: Axes, y: float, text: str, colour: str) -> None:
    """A dotted line at a number, with words on it."""
    axes.axhline(y, color=colour, linestyle=":", linewidth=1.3)
    axes.annotate(
        text, (0, y), (2, 3), xycoords=("axes fraction", "data"), textcoords="offset points", color=colour,
        fontsize=8.5,
    )  # fmt: skip


def new_figure(height: int = HEIGHT) -> tuple[Figure, Axes]:
    """A figure with one panel."""
    figure = Figure(figsize=(WIDTH / 100, height / 100), layout="constrained")
    return figure, figure.subplots()


def new_panels(heights: Sequence[float], height: int) -> tuple[Figure, Sequence[Axes]]:
    """A figure with panels above each other that share what is across."""
    figure = Figure(figsize=(WIDTH / 100, height / 100), layout="constrained")
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
    return figure, list(panels[:, 0])


def short(number: float) -> str:
    """A tick label: thousands as k.

    >>> short(250), short(2500)
    ('250', '2.5k')
    """
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def _tidied(svg: str) -> str:
    """The drawing without its prologue, in the reader's font, with its dark colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font(-family)?: [^;\"]*sans-serif[^;\"]*", _font, svg)
    return theme.with_night(svg)


def _font(found: re.Match[str]) -> str:
    size = re.search(r"[\d.]+px", found[0])
    return f"font: {size[0]} {theme.FONT}" if size else f"font-family: {theme.FONT}"
