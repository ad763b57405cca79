"""How the figures of a report look: colours in a light and a dark scheme, letters, sizes and tick labels.

Figures have the light colours on a transparent ground, and carry rules that replace each colour in a dark scheme, so
one SVG serves a light page, a dark page and paper. Ours and theirs are teal and amber, a pair that colour-blind
readers tell apart, and no line relies on its colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from maskoban.evaluation.measures.share import Mean, Share
from maskoban.pictures import palette

INK, SOFT, GRID, PAGE, CARD = "#2d3142", "#6a7083", "#ddd6c8", "#fdfbf7", "#f3eee4"
OURS, ON_OURS, THEIRS, PAPER = "#0b7a8c", "#fffffe", "#b86a1b", "#b92c60"
ONE_WALL, ON_ONE_WALL = "#6fb7b9", "#1b2b33"
VIOLET, GREEN = "#6551b5", "#3d7a34"

#: Each colour of the charts in the dark scheme.
NIGHT = {
    INK: "#ece8df",
    SOFT: "#a3a9bb",
    GRID: "#3b404e",
    PAGE: "#14161c",
    CARD: "#1e212a",
    OURS: "#4cc3d1",
    ON_OURS: "#0b2a30",
    ONE_WALL: "#2b6d75",
    ON_ONE_WALL: "#f4f1ea",
    THEIRS: "#f0aa55",
    PAPER: "#f27aa8",
    VIOLET: "#a99bf0",
    GREEN: "#86c97c",
}

#: Lines of several generators: colour, line style, marker.
SERIES = (
    (OURS, "-", "o"),
    (PAPER, "-.", "D"),
    (VIOLET, (0, (4, 1, 1, 1, 1, 1)), "^"),
    (GREEN, (0, (1, 1)), "v"),
    (INK, (0, (6, 2)), "P"),
    (SOFT, (0, (2, 2)), "X"),
)

#: What surrounds boards in the dark scheme; the tiles themselves stay as they are.
NIGHT_AROUND_BOARDS = {
    palette.PAGE: NIGHT[PAGE],
    palette.CARD: NIGHT[CARD],
    palette.INK: NIGHT[INK],
    palette.INK_SOFT: NIGHT[SOFT],
}

#: What it takes to repair boards; told apart by lightness, too.
FATES = {"solvable": OURS, "one wall": ONE_WALL, "two walls": "#e3b45f", "broken": PAPER}

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def night_rules(svg: str | None = None) -> str:
    """The rules that turn a figure to its dark colours: those that this SVG needs, or all.

    >>> '[fill="#2d3142"]{fill:#ece8df}' in night_rules()
    True
    """
    # Charts are coloured by style, boards by attributes: so a goal and a line of the same teal stay apart.
    # What is in the SVG, the selector for it, the rule.
    rules = [(f'fill="{day}"', "[{}]", f"fill:{night}") for day, night in NIGHT_AROUND_BOARDS.items()]
    for place in ("fill", "stroke"):
        rules += [
            (f"{place}: {day}", '[style*="{}"]', f"{place}:{night}!important") for day, night in NIGHT.items()
        ]
    needed = [
        f"{selector.format(found)}{{{rule}}}"
        for found, selector, rule in rules
        if svg is None or found in svg
    ]
    return "@media screen and (prefers-color-scheme: dark){" + "".join(needed) + "}"


def with_night(svg: str) -> str:
    """An SVG document with its dark colours.

    >>> with_night("<svg></svg>")[:30]
    '<svg><style>@media screen and '
    """
    return svg.replace(">", f"><style>{night_rules(svg)}</style>", 1)


#: In hundredths of an inch, which are the pixels of the page.
WIDTH, HEIGHT = 520, 340

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "maskoban",  # the same figure, the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": SOFT,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": GRID,
    "xtick.labelcolor": SOFT,
    "ytick.color": GRID,
    "ytick.labelcolor": SOFT,
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
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure = chart(data)
        vectors, pixels = BytesIO(), BytesIO()
        figure.savefig(vectors, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(
            pixels,
            format="png",
            dpi=200,
            facecolor=PAGE,
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
    return [SERIES[place % len(SERIES)] for place in range(len(names))]


def band(
    axes: Axes, at: list[float], found: Sequence[Share | Mean], colour: str, style: str, name: str = ""
) -> None:
    """Shares or means with their 95 % intervals as a band."""
    low, high = [each.low for each in found], [each.high for each in found]
    axes.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
    middle = [each.mean if isinstance(each, Mean) else each.share or 0 for each in found]
    axes.plot(at, middle, style, color=colour, label=name)


def level(axes: Axes, y: float, text: str, colour: str) -> None:
    """A dotted line at a number. Its words stand above the panel, where no other line crosses them."""
    axes.axhline(y, color=colour, linestyle=":", linewidth=1.3)
    axes.set_title(f"dotted: {text}", loc="right", color=colour, fontsize=8.5)


def shares_up(axes: Axes, title: str) -> None:
    """Per cent on the axis that goes up, and what they are of as the title."""
    axes.set_title(title)
    axes.yaxis.set_major_formatter(PERCENT)


def legend(figure: Figure, **look: Any) -> None:
    """The names of the first panel's lines or bars above all panels, in as many columns as the longest name allows."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    widest = max((len(name) for name in names), default=0)
    columns = max(1, int(100 * figure.get_figwidth() // (50 + 7.5 * widest)))
    figure.legend(handles, names, loc="outside upper left", ncols=columns, columnspacing=1.4, **look)


def new_figure(height: int = HEIGHT, width: float = WIDTH, **grid: Any) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, arranged by the arguments of ``Figure.subplots``."""
    figure = Figure(figsize=(width / 100, height / 100), layout="constrained")
    return figure, list(figure.subplots(squeeze=False, **grid).ravel())


def short(number: float) -> str:
    """A tick label: thousands as k.

    >>> short(250), short(2500)
    ('250', '2.5k')
    """
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def _tidied(svg: str) -> str:
    """The drawing without its prologue, in the reader's font, with its dark colours, as small as it can be."""
    svg = svg[svg.index("<svg") :].replace("<svg", f'<svg font-family="{FONT}"', 1)
    for found, instead in (
        (r"(?s)<metadata>.*?</metadata>|<!--.*?-->", ""),
        (r"font: ([\d.]+px)[^;\"]*", r"font-size: \1"),
        (r"font-family: [^;\"]*; ", ""),
        (r' transform="rotate\(-0 [^)]*\)"', ""),
        (r"\s*\n\s*", "\n"),
        (r"\n(?=[LMCQz\"])", ""),  # within a path
        (r' id="(?:figure|line2d|text|patch|legend|matplotlib\.axis)_\d+"', ""),
    ):
        svg = re.sub(found, instead, svg)
    # A hundredth of a pixel is fine enough.
    svg = re.sub(r"(?<![#\w.])-?\d+\.\d{3,}", lambda number: f"{round(float(number[0]), 2):g}", svg)
    return with_night(re.sub(r"(?<= d=\")[^\"]+", _short_path, svg))


def _short_path(path: re.Match[str]) -> str:
    """Horizontal and vertical lines as one number each: M 0 0L 5 0L 5 3z is M 0 0H5V3z."""
    x = y = ""
    parts = []
    for command, numbers in re.findall(r"([MLCQz])([^MLCQz]*)", path[0]):
        place = numbers.split()
        if command == "L" and x == place[0]:
            parts.append(f"V{place[1]}")
        elif command == "L" and y == place[1]:
            parts.append(f"H{place[0]}")
        else:
            parts.append(command + numbers)
        x, y = place[-2:] or ("", "")
    return "".join(parts)
