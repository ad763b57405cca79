"""The fuzzers of the HTTP API and the core work: a short run finds nothing, and a planted bug is found."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from maskoban.solving import Results
from maskoban.studio.app import create_app
from tests.fuzz import core, http_api
from tests.fuzz.__main__ import run as run_in_a_process
from tests.fuzz.report import Budget, Report


def test_a_short_run_of_the_core_finds_nothing() -> None:
    report = core.run(Budget(minutes=10, max_inputs=400), seed=3)
    assert report.findings == []
    assert min(report.outcomes[verdict] for verdict in Results.VERDICTS) > 5


def test_a_wrong_solution_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "solves", lambda *_: False)
    report = core.run(Budget(minutes=10, max_inputs=400), seed=3)
    assert any("does not solve it" in finding for finding in report.findings)


def test_a_short_run_of_the_http_api_finds_nothing() -> None:
    report = http_api.run(Budget(minutes=10, max_inputs=300), seed=3)
    assert report.findings == []
    assert report.outcomes["200"] > 30
    assert report.outcomes["422"] > 30


def test_an_error_of_the_server_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_app(load_model: Any) -> FastAPI:
        app = create_app(load_model)
        app.add_api_route("/api/broken", lambda: 1 / 0)
        return app

    monkeypatch.setattr(http_api, "create_app", broken_app)
    report = http_api.run(Budget(minutes=10, max_inputs=100), seed=3)
    assert any("status 500" in finding for finding in report.findings)


def test_the_end_of_a_process_is_a_finding(tmp_path: Path) -> None:
    report = run_in_a_process("core", 0.1, 0, tmp_path, {"MASKOBAN_CORE": "/dev/null"})
    assert len(report.findings) == 1
    assert report.findings[0].startswith("core ended with 1")


def test_a_report_is_read_back(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.readers", "--minutes", "0.02", "--json", str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    report = Report(**json.loads((tmp_path / "a").read_text()))
    assert report.inputs > 0
    assert str(report).endswith(" 0 findings")


def test_a_stopped_run_prints_its_table() -> None:
    """The fuzzer at work ends after the input at hand, its report is kept, and no other one starts."""
    command = [sys.executable, "-m", "tests.fuzz", "--minutes", "600"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "fuzzing: level files\n"
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    assert printed.count("\n") == 3
    assert "| level files |" in printed
