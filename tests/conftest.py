"""What several tests share: where the real levels are, if they are anywhere, a browser, and one thread for torch."""

from __future__ import annotations

import inspect
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, sync_playwright

# On a busy machine, slow is no failure.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process they start;
# several tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def boxoban() -> Path:
    """A folder laid out as DeepMind's boxoban-levels: medium/train, medium/valid, hard, unfiltered/test."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "boxoban"
    folder = Path(os.environ.get("MASKOBAN_BOXOBAN", beside))
    if not (folder / "medium").is_dir():
        pytest.skip("no Boxoban levels: set MASKOBAN_BOXOBAN to a checkout of boxoban-levels")
    return folder


NO_BROWSER = "needs Chromium: install it (Debian: apt-get install chromium), so that `chromium` is a command"
CHROMIUM = which("chromium") or which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, Debian's package."""
    if CHROMIUM is None and os.environ.get("CI") != "true":
        pytest.skip(NO_BROWSER)
    assert CHROMIUM is not None, "continuous integration must have chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """The networks of tests are small, and on a busy machine threads wait for each other."""
    import torch  # here: most tests need none

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


#: A test whose text has one of these words waits for a process, a signal, a server, a browser or a thread.
WAITING = re.compile(
    r"\b(subprocess|signal|threading|Thread\w*|Timer|Barrier|httpx|socket|browser|page|studio|serving|ray|Pool)\b"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that wait as ``waits``, so that they can be run by themselves: ``pytest -m waits``."""
    for item in items:
        if isinstance(item, pytest.Function) and any(map(WAITING.search, _sources(item))):
            item.add_marker("waits")


def _sources(test: pytest.Function) -> Iterator[str]:
    """The text of a test, the names of its fixtures, and the text of those functions of its module that it names."""
    yield inspect.getsource(test.function)
    yield " ".join(test.fixturenames)
    for name in {*test.function.__code__.co_names, *test.fixturenames}:
        helper = vars(test.module).get(name)
        if getattr(helper, "__module__", None) == test.module.__name__ and hasattr(helper, "__name__"):
            yield inspect.getsource(helper)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly which tests did not run for want of a browser."""
    skipped = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", [])
        if NO_BROWSER in str(report.longrepr)
    ]
    if skipped:
        files = " ".join(sorted({name.partition("::")[0] for name in skipped}))
        terminalreporter.section("browser tests did not run", yellow=True)
        terminalreporter.write_line(f"{len(skipped)} tests did not run. Each {NO_BROWSER}. Then run:")
        terminalreporter.write_line(f"python -m pytest {files}")
