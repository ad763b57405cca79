"""Writes docs/results.md and the README's table of results from the reports in the repository:

python -m maskoban.evaluation.results

Reports lie in docs/reports/NAME/report.json, and those of their figures that docs/results.md shows in
docs/reports/NAME/figures. Every shipped model has a column, whether it has a report or not,
and a measure that is not in a report is a dash: nothing in these tables is written by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from maskoban._util.files import atomic_file
from maskoban.diffusion.loading import shipped_models
from maskoban.errors import MaskobanError
from maskoban.evaluation.comparison import NOTHING, ROWS, Row, drawn_how
from maskoban.evaluation.paper import TITLE

Reports = Mapping[str, dict[str, Any]]

#: The README's table lies between these two lines.
BEGIN, END = "<!-- results: python -m maskoban.evaluation.results -->", "<!-- end of results -->"

#: The rows that the README has room for.
IN_BRIEF = (
    "boards measured",
    "network evaluations a board",
    "solvable",
    "malformed",
    "failures mended by one wall",
    "solvable, or mended by one wall",
    "broken even after two walls",
    "walls a board",
    "walls a level of the corpus",
    "pattern divergence, ratio to held-out",
    "nearest training level, median cells",
    "exact copies of training levels",
    "parameters",
    "training steps",
)

#: What docs/results.md says of the figures it shows.
CAPTIONS = {
    "strip": "One board being drawn from nothing",
    "outcomes": "All boards by what it takes to mend them",
    "repaired": "Boards that nobody can solve, and the walls whose removal mends them",
    "culprits": "How probable the model found walls that have to go, and other walls",
    "patterns": "How far patterns of 3x3 cells lie from the corpus's, by the number of boards",
    "distances": "How many cells lie between a board and the nearest training level",
    "difficulty": "How hard the boards are, beside the corpus's",
    "temperature": "What the temperature does to solvability, walls and effort",
    "cost": "Quality against the evaluations a board takes",
    "training": "Losses, and the solvability of boards drawn on the way",
}


def read_reports(repository: str | Path) -> dict[str, dict[str, Any]]:
    """The reports of a repository by the names of their folders, and nothing for models that have none.

    >>> list(read_reports("."))  # doctest: +SKIP
    ['best', 'best-polished']
    """
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(repository).glob("docs/reports/*/report.json")):
        try:
            found[path.parent.name] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise MaskobanError(f"{path}: not the report.json of maskoban evaluate: {error}") from None
    if not found:
        raise MaskobanError(
            f"{repository}: no docs/reports/NAME/report.json in it; maskoban evaluate --out docs/reports/NAME"
        )
    return found | {name: {} for name in shipped_models() if name not in found}


def table(reports: Reports, rows: Sequence[Row] = ROWS) -> str:
    """A Markdown table: the paper, and a column for each report.

    >>> print(table({"best": {"source": {"boards": 20}}}, ROWS[:1]))
    | | the paper | `best` |
    |---|---|---|
    | boards measured | 50,000 | 20 |
    """
    lines = [
        "| | the paper | " + " | ".join(f"`{name}`" for name in reports) + " |",
        "|---" * (len(reports) + 2) + "|",
    ]
    for row in rows:
        ours = [row.ours(report) or NOTHING for report in reports.values()]
        lines.append(f"| {' | '.join([row.label, row.paper.text if row.paper else NOTHING, *ours])} |")
    return "\n".join(lines)


def results_page(reports: Reports, figures: Iterable[Path] = ()) -> str:
    """docs/results.md, with these figures in it (NAME/figures/FIGURE.svg, seen from docs/reports)."""
    measured = "\n".join(f"- `{name}`: {_described(name, report)}" for name, report in reports.items())
    where = "\n".join(f"| {row.label} | {row.paper.where} |" for row in ROWS if row.paper)
    return f"""# Results

Written by `python -m maskoban.evaluation.results` from the reports in `docs/reports`; not edited by hand. The paper is
*{TITLE}* (Baghal). Brackets hold 95 % intervals; a dash means not measured, or not stated in the paper.

{table(reports)}

{measured}

{_sweeps(reports)}{_shown(set(figures), reports)}## Where the paper's numbers stand

| | section |
|---|---|
{where}
"""


def _sweeps(reports: Reports) -> str:
    """How the rows about other ways of drawing are to be read."""
    sizes = {
        setting["boards"]
        for report in reports.values()
        for name in ("temperature", "order", "polish", "critic")
        for setting in report.get("measures", {}).get(name) or []
    }
    if not sizes:
        return ""
    counted = " or ".join(f"{size:,}" for size in sorted(sizes, reverse=True))
    return f"""Rows about temperature, the most probable tile first, sweeps and a critic are {counted} boards
each, and what each names is the only thing in which it differs from plain drawing; so reports of one model share
them. Probabilities of walls are those at the last commit: after a polish sweep, with all other cells given, which
is not what the paper's are.

"""


def _shown(figures: Set[Path], reports: Reports) -> str:
    """The figures, report by report."""
    parts = []
    for name in reports:
        places = {Path(name, "figures", f"{figure}.svg"): text for figure, text in CAPTIONS.items()}
        there = [
            f"{text}:\n\n![{text}](reports/{path.as_posix()})"
            for path, text in places.items()
            if path in figures
        ]
        if there:
            parts.append("\n\n".join([f"## Figures of `{name}`", *there]) + "\n\n")
    return "".join(parts)


def with_results(readme: str, reports: Reports) -> str:
    """The README with its table of results made new.

    >>> text = with_results(f"{BEGIN}\\n{END}", {"best": {}})
    >>> text.splitlines()[2]
    '| | the paper | `best` |'
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise MaskobanError(f"the README has no lines {BEGIN!r} and {END!r} to put the results between")
    brief = [row for row in ROWS if row.label in IN_BRIEF]
    return f"{before}{BEGIN}\n\n{table(reports, brief)}\n\n{END}{after}"


def write_results(repository: str | Path) -> list[Path]:
    """Write both files; returns those that changed.

    >>> write_results(".")  # doctest: +SKIP
    [PosixPath('docs/results.md'), PosixPath('README.md')]
    """
    root = Path(repository)
    reports = read_reports(root)
    readme, folder = root / "README.md", root / "docs" / "reports"
    texts = {
        root / "docs" / "results.md": results_page(
            reports, (path.relative_to(folder) for path in folder.glob("*/figures/*.svg"))
        ),
        readme: with_results(readme.read_text(encoding="utf-8"), reports),
    }
    changed = [path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in changed:
        with atomic_file(path) as file:
            file.write(texts[path].encode())
    return changed


def _described(name: str, report: dict[str, Any]) -> str:
    if not report:
        return "shipped, but not measured yet"
    source = report["source"]
    if "model" not in source:
        return f"the {source['boards']:,} boards of {source['file']}; [report](reports/{name}/report.html)"
    how = "; then ".join([f"model {source['name']}, seed {source['seed']}", *drawn_how(source)])
    return f"{how}; [report](reports/{name}/report.html)"


if __name__ == "__main__":
    try:
        for path in write_results(Path.cwd()):
            print(f"written: {path}")
    except MaskobanError as error:
        sys.exit(str(error))
