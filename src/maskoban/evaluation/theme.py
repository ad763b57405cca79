"""The colours and letters of the report's figures, by day and by night.

Figures are drawn in the colours of the day on nothing, and carry rules that replace each colour in the dark: so
one SVG serves a light page, a dark page and paper. Ours against theirs is teal against amber, a pair that
colour-blind eyes tell apart, and no line relies on its colour alone.
"""

from __future__ import annotations

from maskoban.pictures import palette

INK, SOFT, GRID, PAGE, CARD = "#2d3142", "#6a7083", "#ddd6c8", "#fdfbf7", "#f3eee4"
OURS, ON_OURS, THEIRS, PAPER = "#0b7a8c", "#fffffe", "#b86a1b", "#b92c60"
ONE_WALL, ON_ONE_WALL = "#6fb7b9", "#1b2b33"

#: Each colour of the charts by night.
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
}

#: What surrounds boards by night; the tiles themselves stay as they are.
NIGHT_AROUND_BOARDS = {
    palette.PAGE: NIGHT[PAGE],
    palette.CARD: NIGHT[CARD],
    palette.INK: NIGHT[INK],
    palette.INK_SOFT: NIGHT[SOFT],
}

#: How boards end up, from good to bad: told apart by lightness too.
FATES = {"solvable": OURS, "one wall": ONE_WALL, "two walls": "#e3b45f", "broken": PAPER}

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def night_rules() -> str:
    """The rules that turn a figure to its colours by night.

    >>> '[fill="#2d3142"]{fill:#ece8df}' in night_rules()
    True
    """
    # Charts are coloured by style, boards by attributes: so a goal and a line of the same teal stay apart.
    rules = [f'[fill="{day}"]{{fill:{night}}}' for day, night in NIGHT_AROUND_BOARDS.items()]
    for day, night in NIGHT.items():
        rules.append(f'[style*="fill: {day}"]{{fill:{night}!important}}')
        rules.append(f'[style*="stroke: {day}"]{{stroke:{night}!important}}')
    return "@media screen and (prefers-color-scheme: dark){" + "".join(rules) + "}"


def with_night(svg: str) -> str:
    """An SVG document that knows its colours by night.

    >>> with_night("<svg></svg>")[:30]
    '<svg><style>@media screen and '
    """
    return svg.replace(">", f"><style>{night_rules()}</style>", 1)
