"""The journal: a line a note, whatever a killed run left, and little on the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from maskoban.training.journal import Journal


def test_every_note_is_a_line_and_half_a_line_costs_no_other(tmp_path: Path) -> None:
    journal, log = Journal(tmp_path, quiet=True), tmp_path / "log.jsonl"
    journal.note({"event": "start", "from_step": 0})
    with open(log, "a") as torn:
        torn.write('{"step": 4, "va')
    journal.note({"step": 8, "valid": 0.5})
    first, half, last = log.read_text().splitlines()
    assert json.loads(first) == {"event": "start", "from_step": 0}
    assert half == '{"step": 4, "va'
    assert json.loads(last) == {"step": 8, "valid": 0.5}
    assert journal.noted(8) == {"step", "valid"}
    assert journal.noted(4) == set()


def test_what_was_noted_of_a_step_is_forgotten_when_a_run_goes_on_from_before_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path, quiet=True)
    journal.note({"event": "start", "from_step": 0})
    journal.note({"step": 8, "valid": 0.5})
    journal.note({"event": "resume", "from_step": 8})
    assert journal.noted(8) == {"step", "valid"}
    journal.note({"event": "resume", "from_step": 4})
    assert journal.noted(8) == set()


@pytest.mark.parametrize(
    ("terminal", "quiet", "said"),
    [
        (True, False, "\r\033[Kstep 20\r\033[Kstep 40  valid 0.5\n\r\033[Kended\n"),
        (False, False, "step 40  valid 0.5\nended\n"),
        (True, True, ""),
        (False, True, ""),
    ],
)
def test_events_are_not_said_and_the_live_line_is_for_terminals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    terminal: bool, quiet: bool, said: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    journal = Journal(tmp_path, quiet)
    journal.note({"event": "start"})
    journal.say_live("step 20")
    journal.note({"step": 40, "valid": 0.5})
    journal.say("ended")
    assert capsys.readouterr().err == said
