"""What a fuzzing run has tried and found, and the command line that all fuzzers share."""

from __future__ import annotations

import argparse
import json
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Report:
    """Inputs tried, what became of them, and the findings: tracebacks with the inputs that cause them."""

    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0
    slowest: float = 0.0
    findings: list[str] = field(default_factory=list)
    stopped: bool = False  # by a signal

    def __post_init__(self) -> None:
        self.outcomes = Counter(self.outcomes)  # also of a report that was read from JSON

    @property
    def what(self) -> str:
        """The outcomes in words, the most frequent first."""
        return ", ".join(f"{name} {number:,}" for name, number in self.outcomes.most_common())

    def __str__(self) -> str:
        return (
            f"{self.inputs:,} inputs in {self.cpu_seconds / 60:.1f} CPU minutes ({self.what}), "
            f"slowest {self.slowest:.2f} s, {len(self.findings)} findings"
        )

    @contextmanager
    def checking(self, describe: Callable[[], str], max_seconds: float) -> Iterator[None]:
        """One check of an input. An exception and too much CPU time are findings."""
        started = time.process_time()
        try:
            yield
        except Exception:
            self.findings.append(f"{describe()}\n{traceback.format_exc()}")
        seconds = time.process_time() - started
        self.slowest = max(self.slowest, seconds)
        if seconds > max_seconds:
            self.findings.append(f"{seconds:.1f} s for {describe()}")


@dataclass
class Budget:
    """How long to fuzz: CPU minutes of this process, so that a busy machine does not shorten a run, or inputs."""

    minutes: float = 1.0
    max_inputs: int | None = None
    stopped: bool = False
    started: float = field(default_factory=time.process_time)

    def left(self, report: Report) -> bool:
        """Whether to go on."""
        report.cpu_seconds = time.process_time() - self.started
        enough = self.max_inputs is not None and report.inputs >= self.max_inputs
        return report.cpu_seconds < 60 * self.minutes and not enough and not self.stopped

    def stop(self, *_: object) -> None:
        """End the run after the input at hand: what a signal does."""
        self.stopped = True


def table(reports: dict[str, Report]) -> str:
    """The reports as a table in Markdown, by the names of their fuzzers.

    >>> print(table({"level files": Report(1200, Counter(refusals=3), cpu_seconds=90)}))
    | fuzzed | inputs | outcomes | CPU minutes | slowest input (s) | findings |
    |---|--:|---|--:|--:|--:|
    | level files | 1,200 | refusals 3 | 1.5 | 0.00 | 0 |
    """
    rows = [
        "| fuzzed | inputs | outcomes | CPU minutes | slowest input (s) | findings |",
        "|---|--:|---|--:|--:|--:|",
    ]
    for name, report in reports.items():
        cells = [name, f"{report.inputs:,}", report.what, f"{report.cpu_seconds / 60:.1f}"]
        rows.append(f"| {' | '.join([*cells, f'{report.slowest:.2f}', str(len(report.findings))])} |")
    return "\n".join(rows)


def main(run: Callable[[Budget, int], Report], text: str) -> None:
    """The command line of one fuzzer."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--minutes", type=float, default=1.0, help="CPU minutes (default: 1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options, _ = parser.parse_known_args()
    budget = Budget(options.minutes)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, budget.stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    report = run(budget, options.seed)
    report.stopped = budget.stopped
    if options.json:
        options.json.write_text(json.dumps(vars(report)))
    print(*report.findings[:20], report, sep="\n")
    raise SystemExit(1 if report.findings else 0)
