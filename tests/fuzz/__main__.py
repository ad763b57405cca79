"""All fuzzers one after another, and a table of what they tried: ``make fuzz MINUTES=60 SEED=1``.

    python -m tests.fuzz --minutes 60 --seed 1 --core build/sanitize

``--core`` is the folder of a core built with sanitizers. Findings are printed, and kept in build/fuzz. Ctrl-C
or SIGTERM ends the run early; the table is printed all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.fuzz.report import Report, table

FUZZERS = {"readers": "level files", "http_api": "HTTP API", "core": "native core"}


def sanitizers(folder: Path) -> dict[str, str]:
    """The environment in which Python runs with a sanitized core."""
    (core,) = folder.glob("_core*.so")
    libraries = [
        subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    return {
        "MASKOBAN_CORE": str(core.resolve()),
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself never frees everything
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run(fuzzer: str, minutes: float, seed: int, out: Path, environment: dict[str, str]) -> Report:
    """One fuzzer in a process of its own; the end of the process is a finding."""
    file, last_input = out / f"{fuzzer}-{seed}.json", out / f"{fuzzer}-{seed}-last-input.npy"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", f"tests.fuzz.{fuzzer}", "--minutes", str(minutes), "--seed", str(seed)]
    environment = os.environ | environment | {"FUZZ_LAST_INPUT": str(last_input)}
    # In a session of its own, with SIGTERM blocked until it has a handler: whenever it is stopped, it ends well.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    process = subprocess.Popen(
        [*command, "--json", str(file)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    stopped = False
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        print(f"fuzzing: {FUZZERS[fuzzer]}", flush=True)
        _, errors = process.communicate()
    except KeyboardInterrupt:
        stopped = True
        process.terminate()
        _, errors = process.communicate()
    if file.exists():
        last_input.unlink(missing_ok=True)
        return Report(**json.loads(file.read_text()))
    finding = f"{fuzzer} ended with {process.returncode}, {last_input}:\n{errors[-5000:]}"
    return Report(findings=[finding], stopped=stopped)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="CPU minutes of all together (default: 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--core", type=Path, help="folder of a core built with sanitizers")
    options = parser.parse_args()
    out = Path("build/fuzz")
    out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    reports = {}
    for fuzzer, name in FUZZERS.items():
        environment = sanitizers(options.core) if options.core and fuzzer == "core" else {}
        reports[name] = run(fuzzer, options.minutes / len(FUZZERS), options.seed, out, environment)
        if reports[name].stopped:
            break
    for report in reports.values():
        print(*report.findings[:10], sep="\n", end="\n" if report.findings else "")
    print(table(reports), flush=True)
    raise SystemExit(any(report.findings for report in reports.values()))


if __name__ == "__main__":
    main()
