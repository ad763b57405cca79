"""The fuzzer of the readers works: it reads its seeds, finds nothing in a short run, and finds a planted bug."""

from __future__ import annotations

import pytest

from maskoban.boards import Level
from maskoban.boards.formats import text
from tests.fuzz import readers
from tests.fuzz.report import Budget


def test_a_short_run_finds_nothing() -> None:
    report = readers.run(Budget(minutes=10, max_inputs=400), seed=3)
    assert report.findings == []
    assert report.inputs == 400
    assert all(report.outcomes[f"{way} levels"] > 100 for way in ("lenient", "strict", "tiles"))
    assert report.outcomes["refusals"] > 100


def test_a_bug_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Level:
        raise IndexError("planted")

    monkeypatch.setattr(text, "parse_rows", broken)
    report = readers.run(Budget(minutes=10, max_inputs=50))
    assert any("IndexError: planted" in finding for finding in report.findings)
