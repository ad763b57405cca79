"""What a fuzzing run has tried and found, and the command line that all fuzzers share."""

from __future__ import annotations

import argparse
import json
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

    def __post_init__(self) -> None:
        self.outcomes = Counter(self.outcomes)  # also of a report that was read from JSON

    def __str__(self) -> str:
        outcomes = ", ".join(f"{name} {number:,}" for name, number in self.outcomes.most_common())
        return (
            f"{self.inputs:,} inputs in {self.cpu_seconds / 60:.1f} CPU minutes ({outcomes}), "
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
    started: float = field(default_factory=time.process_time)

    def left(self, report: Report) -> bool:
        """Whether to go on."""
        report.cpu_seconds = time.process_time() - self.started
        enough = self.max_inputs is not None and report.inputs >= self.max_inputs
        return report.cpu_seconds < 60 * self.minutes and not enough


def main(run: Callable[[Budget, int], Report], text: str) -> None:
    """The command line of one fuzzer."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--minutes", type=float, default=1.0, help="CPU minutes (default: 1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options, _ = parser.parse_known_args()
    report = run(Budget(options.minutes), options.seed)
    if options.json:
        options.json.write_text(json.dumps(vars(report)))
    print(*report.findings[:20], report, sep="\n")
    raise SystemExit(1 if report.findings else 0)
