"""Writes docs/results.md, the README's table of results and the pages of the reports in the repository:

python -m maskoban.evaluation.results

Reports are in docs/reports/NAME/report.json, and those of their figures that the repository keeps in
docs/reports/NAME/figures; all come from the numbers in report.json. Every shipped model has a column, whether it has a
report or not, and a measure that is not in a report is a dash: nothing in these tables is written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from maskoban._util.files import atomic_file
from maskoban.errors import MaskobanError
from maskoban.evaluation.page import template
from maskoban.evaluation.report import COMPARISONS, Comparison, Report, read_report
from maskoban.evaluation.rows import DIVERSITY_ROWS, NOTHING, ROWS, TITLE, Row, sampled_how

#: A shipped model without a report has none.
Reports = Mapping[str, Report | None]

#: The README's table is between these two lines.
BEGIN, END = "<!-- results: python -m maskoban.evaluation.results -->", "<!-- end of results -->"

#: What docs/results.md says of the figures it shows.
CAPTIONS = {
    "strip": "One board while it is sampled, the first solvable one",
    "outcomes": "All boards by what it takes to repair them",
    "repaired": "Unsolvable boards, and of the walls whose removal makes them solvable the least probable",
    "culprits": "Commit probabilities of walls that have to go, and of other walls",
    "patterns": "Divergence of 3x3 patterns from the corpus's, by the number of boards",
    "distances": "Cells between a board and the nearest training level",
    "difficulty": "How hard the solvable boards are, beside the corpus's",
    "temperature": "Solvability and walls against temperature",
    "cost": "Solvability and pattern divergence against the network evaluations a board takes",
    "training": "Losses, and the solvability of boards sampled on the way",
}

#: What docs/results.md says of boards that a rule makes.
RULES = {
    "synth": "`maskoban corpus synth`, solvable by construction",
    "random": "Boxoban's counts of tiles at random places",
}


def read_reports(repository: str | Path) -> tuple[dict[str, Report], dict[str, Comparison]]:
    """The reports of a repository by the names of their folders, and its comparisons.

    >>> list(read_reports(".")[0])  # doctest: +SKIP
    ['best', 'best-plain', 'paper']
    """
    single: dict[str, Report] = {}
    several: dict[str, Comparison] = {}
    for path in sorted(Path(repository).glob("docs/reports/*/report.json")):
        found = read_report(path)
        if isinstance(found, Comparison):
            several[path.parent.name] = found
        else:
            single[path.parent.name] = found
    if not single:
        raise MaskobanError(
            f"{repository}: no docs/reports/NAME/report.json in it; maskoban evaluate --out docs/reports/NAME"
        )
    return single, several


def table(reports: Reports, rows: Sequence[Row] = ROWS, paper: bool = True) -> str:
    """A Markdown table: the paper, and a column for each report.

    >>> from maskoban.evaluation.report import Source
    >>> print(table({"best": Report("1", Source("best", 20)), "new": None}, ROWS[:1]))
    | | the paper | `best` | `new` |
    |---|---|---|---|
    | boards measured | 50,000 | 20 | – |
    """
    heads = (["the paper"] if paper else []) + [f"`{name}`" for name in reports]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for row in rows:
        stated = [row.paper.text if row.paper else NOTHING] if paper else []
        ours = [(each and row.ours(each)) or NOTHING for each in reports.values()]
        lines.append(f"| {' | '.join([row.label, *stated, *ours])} |")
    return "\n".join(lines)


def results_page(
    reports: Reports, comparisons: Mapping[str, Comparison] | None = None, figures: Iterable[Path] = ()
) -> str:
    """docs/results.md, with these figures in it (NAME/figures/FIGURE.svg, seen from docs/reports)."""
    found = [report for report in reports.values() if report]
    sizes = {setting.boards for report in found for name in COMPARISONS for setting in getattr(report, name)}
    heads = ("solvable", "malformed", "walls a board", "pattern divergence, ratio to held-out")
    return template("results.md.j2").render(
        reports=reports,
        comparisons=comparisons or {},
        figures=sorted(path.as_posix() for path in figures),
        sizes=[f"{size:,}" for size in sorted(sizes, reverse=True)],
        last_commit=any(report.culprits and report.culprits.last_commit for report in found),
        title=TITLE,
        table=table,
        rows=ROWS,
        compared_rows=[*(row for row in ROWS if row.label in heads), *DIVERSITY_ROWS],
        captions=CAPTIONS,
        rules=RULES,
        sampled_how=sampled_how,
    )


def with_results(readme: str, reports: Reports) -> str:
    """The README with its table of results made new.

    >>> text = with_results(f"{BEGIN}\\n{END}", {"best": None})
    >>> text.splitlines()[2]
    '| | the paper | `best` |'
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise MaskobanError(f"the README has no lines {BEGIN!r} and {END!r} to put the results between")
    return f"{before}{BEGIN}\n\n{table(reports, [row for row in ROWS if row.brief])}\n\n{END}{after}"


def write_results(repository: str | Path) -> list[Path]:
    """Write both files; returns those that changed.

    >>> write_results(".")  # doctest: +SKIP
    [PosixPath('docs/results.md'), PosixPath('README.md')]
    """
    root = Path(repository)
    reports, comparisons = read_reports(root)
    readme, folder = root / "README.md", root / "docs" / "reports"
    figures = (path.relative_to(folder) for path in folder.glob("*/figures/*.svg"))
    texts = {
        root / "docs" / "results.md": results_page(reports, comparisons, figures),
        readme: with_results(readme.read_text(encoding="utf-8"), reports),
    }
    changed = [path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in changed:
        with atomic_file(path) as file:
            file.write(texts[path].encode())
    return changed


def render_reports(repository: str | Path) -> None:
    """Make the pages and figures again that the repository keeps of its reports."""
    from maskoban.evaluation.evaluate import write_report

    for path in sorted(Path(repository).glob("docs/reports/*/report.json")):
        kept = {each.name for each in path.parent.glob("figures/*")}
        page = path.with_name("report.html").is_file()
        write_report(read_report(path), path.parent, keep=kept.__contains__, numbers=False, page=page)


if __name__ == "__main__":
    try:
        render_reports(Path.cwd())
        for changed in write_results(Path.cwd()):
            print(f"written: {changed}")
    except MaskobanError as error:
        sys.exit(str(error))
