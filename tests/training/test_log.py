"""The run_log: a line a note, whatever a killed run left, and little on the terminal."""

from __future__ import annotations

import io
import json
import signal
import sys
from pathlib import Path

import pytest

from maskoban.training.log import RunLog


def test_every_note_is_a_line_and_half_a_line_costs_no_other(tmp_path: Path) -> None:
    run_log, log = RunLog(tmp_path, quiet=True), tmp_path / "log.jsonl"
    run_log.record({"event": "start", "from_step": 0})
    with open(log, "a") as torn:
        torn.write('{"step": 4, "va')
    run_log.record({"step": 8, "valid": 0.5})
    first, half, last = log.read_text().splitlines()
    assert json.loads(first) == {"event": "start", "from_step": 0}
    assert half == '{"step": 4, "va'
    assert json.loads(last) == {"step": 8, "valid": 0.5}
    assert run_log.recorded(8) == {"step", "valid"}
    assert run_log.recorded(4) == set()


def test_what_was_noted_of_a_step_is_forgotten_when_a_run_goes_on_from_before_it(tmp_path: Path) -> None:
    run_log = RunLog(tmp_path, quiet=True)
    run_log.record({"event": "start", "from_step": 0})
    run_log.record({"step": 8, "valid": 0.5})
    run_log.record({"event": "resume", "from_step": 8})
    assert run_log.recorded(8) == {"step", "valid"}
    run_log.record({"event": "resume", "from_step": 4})
    assert run_log.recorded(8) == set()


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
    run_log = RunLog(tmp_path, quiet)
    run_log.record({"event": "start"})
    run_log.say_live("step 20")
    run_log.record({"step": 40, "valid": 0.5})
    run_log.say("ended")
    assert capsys.readouterr().err == said


class Pressed(io.StringIO):
    """Standard error; Ctrl-C comes while the first piece of text is being written."""

    def write(self, text: str) -> int:
        if not self.getvalue():
            super().write(text[:3])
            signal.raise_signal(signal.SIGINT)
            text = text[3:]
        return super().write(text)


def test_ctrl_c_tears_neither_a_line_nor_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_log, stderr = RunLog(tmp_path), Pressed()
    monkeypatch.setattr(sys, "stderr", stderr)
    with pytest.raises(KeyboardInterrupt):
        run_log.record({"step": 10, "rate": 0.22})
    run_log.say("interrupted at step 10")
    assert stderr.getvalue() == "step 10  rate 0.22\ninterrupted at step 10\n"
    assert (tmp_path / "log.jsonl").read_text() == '{"step": 10, "rate": 0.22}\n'
