"""The tables of docs/results.md and the README come from reports, and a number that is not there is a dash."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from maskoban.errors import MaskobanError
from maskoban.evaluation.figures import FIGURES, Picture, draw_figures
from maskoban.evaluation.measure import Plan
from maskoban.evaluation.page import render
from maskoban.evaluation.report import Comparison, Report, from_json, read_report
from maskoban.evaluation.results import (
    BEGIN,
    CAPTIONS,
    END,
    read_reports,
    results_page,
    table,
    with_results,
    write_results,
)
from maskoban.evaluation.rows import ROWS

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path: Path, whole_report: tuple[Path, Report]) -> Path:
    """A repository with one report, of a model that is not shipped."""
    folder = tmp_path / "docs" / "reports" / "recall"
    folder.mkdir(parents=True)
    (folder / "report.json").write_bytes((whole_report[0] / "report.json").read_bytes())
    (tmp_path / "README.md").write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nmore\n")
    return tmp_path


@pytest.mark.parametrize(
    "path", sorted(REPOSITORY.glob("docs/reports/*/report.html")), ids=lambda path: path.parent.name
)
def test_pages_are_what_the_present_code_makes_of_the_numbers(path: Path) -> None:
    report = read_report(path.with_name("report.json"))
    page = path.read_text(encoding="utf-8")
    blank = [Picture(name, None, "<svg></svg>", b"") for name in names_of(report)]
    assert without_pictures(page) == without_pictures(render(report, blank))


@pytest.mark.parametrize(
    "path",
    sorted(REPOSITORY.glob("docs/reports/*/figures/*.svg")),
    ids=lambda path: "-".join(path.parts[-3::2]),
)
def test_figures_in_the_repository_are_those_of_the_numbers(path: Path) -> None:
    """Their words and tick labels; another version of matplotlib may place them differently."""
    report = read_report(path.parents[1] / "report.json")
    (picture,) = [each for each in draw_figures(report, Plan.axes) if each.name == path.stem]
    assert words(path.read_text(encoding="utf-8")) == words(picture.svg)


def words(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)<", svg)


def names_of(report: Report | Comparison) -> list[str]:
    """The figures of a report, without drawing them."""
    reports = report.generators if isinstance(report, Comparison) else {"these boards": report}
    names = [name for name, kind in FIGURES.items() if kind.data(reports)]
    if any(each.board_measures for each in reports.values()):
        names += [f"range-{x}-{y}" for x, y in Plan.axes]
    if isinstance(report, Comparison):
        names += [f"boards-{number}" for number in range(len(reports))]
    return names


def without_pictures(page: str) -> str:
    return re.sub(r"<svg.*?</svg>\n?", "", page, flags=re.DOTALL)


def cells(text: str, label: str) -> list[str]:
    """The cells of the table's row with this label."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def test_every_number_is_beside_the_papers(repository: Path) -> None:
    reports, _ = read_reports(repository)
    recall = reports["recall"]
    assert recall is not None
    assert recall.solvability is not None
    assert list(reports) == ["recall"]
    text = table(reports)
    solvable = recall.solvability.solvable
    assert solvable.share is not None
    paper, ours = cells(text, "solvable")
    assert paper == "77.4 %"
    assert ours.startswith(f"{solvable.share * 100:.1f} % (")
    assert cells(text, "culprit walls, median probability when committed")[0] == "0.45"
    assert cells(text, "most probable tile first: walls a board")[0] == "81.5"
    # The sample is too small for an exponent, so there is none.
    assert cells(text, "its fall with the sample size, exponent")[:2] == ["−0.59", "–"]


def test_what_a_board_takes_is_told(repository: Path) -> None:
    reports, _ = read_reports(repository)
    text, recall = table(reports), reports["recall"]
    assert recall is not None
    assert recall.source.attempts is not None
    assert cells(text, "attempts a board")[1] == f"{recall.source.attempts:.2f}"
    assert cells(text, "network evaluations a board")[1] == f"{recall.source.evaluations:.1f}"
    _, swept, kept, both = recall.critic
    for label, way in (("one Gibbs sweep: solvable", swept), ("a critic: solvable", kept),
                       ("one Gibbs sweep, then a critic: solvable", both)):  # fmt: skip
        assert way.solvable.share is not None
        assert cells(text, label)[1].startswith(f"{way.solvable.share * 100:.1f} % (")
    page = results_page(reports)
    assert (
        "- `recall`: model recall, seed 0; then 1 Gibbs sweep; then rejection sampling with a critic" in page
    )
    assert "never saw a solver; [numbers]" in page


def test_a_report_from_before_there_were_critics_is_read() -> None:
    report = json.loads((REPOSITORY / "docs" / "reports" / "best" / "report.json").read_text())
    del report["critic"]
    for key in ("critic", "attempts", "evaluations"):
        del report["source"][key]
    for comparison in ("temperature", "order", "steps", "sweeps"):
        for setting in report[comparison]:
            del setting["critic"], setting["attempts"]
    read = from_json(json.dumps(report))
    assert isinstance(read, Report)
    text = table({"best": read})
    for label in ("attempts a board", "network evaluations a board", "a critic: solvable"):
        assert cells(text, label)[1] == "–"
    assert cells(text, "one Gibbs sweep: solvable")[1] != "–"
    assert "- `best`: model best, seed 0; then 1 Gibbs sweep; [numbers]" in results_page({"best": read})


def test_a_culprit_probability_that_is_not_the_papers_says_so() -> None:
    reports, _ = read_reports(REPOSITORY)
    labels = [f"{walls} walls, median probability when committed" for walls in ("culprit", "other")]
    for label in labels:
        by_name = dict(zip(reports, cells(table(reports), label)[1:], strict=True))
        for name, report in reports.items():
            if report is not None and report.culprits is not None:
                assert ("in the last sweep" in by_name[name]) == report.culprits.last_commit
    best, plain = reports["best"], reports["best-plain"]
    assert best is not None
    assert plain is not None
    assert best.culprits is not None
    assert plain.culprits is not None
    assert (best.culprits.last_commit, plain.culprits.last_commit) == (True, False)


def test_nothing_is_invented() -> None:
    for line in table({"nothing": None}).splitlines()[2:]:
        assert line.endswith("| – |")


def test_both_files_are_written_once(repository: Path) -> None:
    changed = write_results(repository)
    assert changed == [repository / "docs" / "results.md", repository / "README.md"]
    readme = (repository / "README.md").read_text()
    assert readme.startswith("# Title\n")
    assert readme.endswith("\n\nmore\n")
    assert "old" not in readme
    assert cells(readme, "solvable")[0] == "77.4 %"
    assert write_results(repository) == []


def test_figures_are_shown_where_they_are_in_the_repository(repository: Path) -> None:
    write_results(repository)
    assert "![" not in (repository / "docs" / "results.md").read_text()
    figures = repository / "docs" / "reports" / "recall" / "figures"
    figures.mkdir()
    for name in ("training", "outcomes", "solutions"):
        (figures / f"{name}.svg").write_text("<svg/>")
    write_results(repository)
    page = (repository / "docs" / "results.md").read_text()
    assert page.count("## Figures of ") == page.count("## Figures of `recall`") == 1
    shown = re.findall(r"!\[(.+)\]\((.+)\)", page)
    assert [path for _, path in shown] == [
        f"reports/recall/figures/{name}.svg" for name in ("outcomes", "training")
    ]


def test_every_figure_shown_is_one_of_the_reports() -> None:
    assert list(CAPTIONS) == [name for name in FIGURES if name in CAPTIONS]


def test_rows_have_different_names() -> None:
    assert len({row.label for row in ROWS}) == len(ROWS)


def test_a_readme_without_its_place_is_said() -> None:
    with pytest.raises(MaskobanError, match="no lines"):
        with_results("# Title\n", {})


@pytest.mark.parametrize("content", [None, "{", '{"measures": {}}'])
def test_reports_that_are_not_there_are_said(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "docs" / "reports" / "best").mkdir(parents=True)
        (tmp_path / "docs" / "reports" / "best" / "report.json").write_text(content)
    with pytest.raises(MaskobanError, match=r"report\.json"):
        read_reports(tmp_path)


def test_the_repository_says_what_its_reports_say() -> None:
    """Whoever adds a report must run the command."""
    results, readme = REPOSITORY / "docs" / "results.md", (REPOSITORY / "README.md").read_text()
    assert BEGIN in readme
    assert END in readme
    found = list(REPOSITORY.glob("docs/reports/*/report.json"))
    assert results.exists() == bool(found)
    if found:
        reports, comparisons = read_reports(REPOSITORY)
        assert with_results(readme, reports) == readme
        folder = REPOSITORY / "docs" / "reports"
        figures = (path.relative_to(folder) for path in folder.glob("*/figures/*.svg"))
        assert results_page(reports, comparisons, figures) == results.read_text()
