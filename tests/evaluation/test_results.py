"""The tables of docs/results.md and the README come from reports, and a number that is not there is a dash."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from maskoban.diffusion.loading import shipped_models
from maskoban.errors import MaskobanError
from maskoban.evaluation.comparison import ROWS
from maskoban.evaluation.figures import FIGURES
from maskoban.evaluation.page import render
from maskoban.evaluation.results import (
    BEGIN,
    CAPTIONS,
    END,
    IN_BRIEF,
    read_reports,
    results_page,
    table,
    with_results,
    write_results,
)

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path: Path, whole_report: tuple[Path, dict[str, Any]]) -> Path:
    """A repository with one report, of a model that is not shipped."""
    folder = tmp_path / "docs" / "reports" / "recall"
    folder.mkdir(parents=True)
    (folder / "report.json").write_bytes((whole_report[0] / "report.json").read_bytes())
    (tmp_path / "README.md").write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nmore\n")
    return tmp_path


@pytest.mark.parametrize("folder", sorted(REPOSITORY.glob("docs/reports/*")), ids=lambda path: path.name)
def test_pages_are_what_the_present_code_makes_of_the_numbers(folder: Path) -> None:
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    blank = {name: "<svg></svg>" for name, kind in FIGURES.items() if kind.data(report)}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert without_pictures(page) == without_pictures(render(report, blank))


def without_pictures(page: str) -> str:
    return re.sub(r"<svg.*?</svg>\n?", "", page, flags=re.DOTALL)


def cells(text: str, label: str) -> list[str]:
    """The cells of the table's row with this label."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def test_every_number_is_beside_the_papers(repository: Path) -> None:
    reports = read_reports(repository)
    assert list(reports) == ["recall", *shipped_models()]
    text = table(reports)
    solvable = reports["recall"]["measures"]["solvability"]["solvable"]
    paper, ours, *unmeasured = cells(text, "solvable")
    assert paper == "77.4 %"
    assert ours.startswith(f"{solvable['share'] * 100:.1f} % (")
    assert set(unmeasured) == {"–"}
    assert cells(text, "culprit walls, median probability")[0] == "0.45"
    assert cells(text, "most probable tile first: walls a board")[0] == "81.5"
    # The sample is too small for an exponent, so there is none.
    assert cells(text, "its fall with the sample size, exponent")[:2] == ["−0.59", "–"]


def test_what_a_board_takes_is_told(repository: Path) -> None:
    reports = read_reports(repository)
    text = table(reports)
    source = reports["recall"]["source"]
    assert cells(text, "attempts a board")[1] == f"{source['attempts']:.2f}"
    assert cells(text, "network evaluations a board")[1] == f"{source['evaluations']:.1f}"
    _, swept, kept, both = reports["recall"]["measures"]["critic"]
    for label, way in (("one polish sweep: solvable", swept), ("a critic: solvable", kept),
                       ("one polish sweep, then a critic: solvable", both)):  # fmt: skip
        assert cells(text, label)[1].startswith(f"{way['solvable']['share'] * 100:.1f} % (")
    page = results_page(reports)
    assert "- `recall`: model recall, seed 0; then 1 polish sweep; then a critic, which tells" in page
    assert "of them drawn again; [report]" in page


def test_a_report_from_before_there_were_critics_is_read(repository: Path) -> None:
    path = repository / "docs" / "reports" / "recall" / "report.json"
    report = json.loads(path.read_text())
    del report["measures"]["critic"]
    for key in ("critic", "attempts", "evaluations"):
        del report["source"][key]
    for comparison in ("temperature", "order", "steps", "polish"):
        for setting in report["measures"][comparison]:
            del setting["critic"], setting["attempts"]
    path.write_text(json.dumps(report))
    text = table(read_reports(repository))
    for label in ("attempts a board", "network evaluations a board", "a critic: solvable"):
        assert cells(text, label)[1] == "–"
    assert cells(text, "one polish sweep: solvable")[1] != "–"
    page = results_page(read_reports(repository))
    assert "- `recall`: model recall, seed 0; then 1 polish sweep; [report]" in page


def test_nothing_is_invented() -> None:
    for line in table({"nothing": {}}).splitlines()[2:]:
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


def test_the_readme_has_rows_that_exist() -> None:
    assert set(IN_BRIEF) <= {row.label for row in ROWS}
    assert len({row.label for row in ROWS}) == len(ROWS)


def test_a_readme_without_its_place_is_said() -> None:
    with pytest.raises(MaskobanError, match="no lines"):
        with_results("# Title\n", {})


@pytest.mark.parametrize("content", [None, "{"])
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
        reports = read_reports(REPOSITORY)
        assert with_results(readme, reports) == readme
        assert table(reports) in results.read_text()
        assert all(json.loads(path.read_text())["maskoban"] for path in found)
