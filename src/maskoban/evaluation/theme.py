"""The colours and letters of the report's figures, in a light and a dark scheme.

Figures have the light colours on a transparent ground, and carry rules that replace each colour in a dark scheme, so
one SVG serves a light page, a dark page and paper. Ours and theirs are teal and amber, a pair that colour-blind
readers tell apart, and no line relies on its colour alone.
"""

from __future__ import annotations

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


def night_rules() -> str:
    """The rules that turn a figure to its dark colours.

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
    """An SVG document with its dark colours.

    >>> with_night("<svg></svg>")[:30]
    '<svg><style>@media screen and '
    """
    return svg.replace(">", f"><style>{night_rules()}</style>", 1)
