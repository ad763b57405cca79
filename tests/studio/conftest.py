"""One served studio for all tests that do not need one of their own, and a browser to look at it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from shutil import which

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from maskoban.studio.app import create_app
from tests.studio.browsing import person
from tests.studio.serving import known_model, serving

CHROMIUM = which("chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def studio() -> Iterator[str]:
    """The address of a studio that draws with the known model."""
    with serving(create_app(known_model)) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, Debian's package."""
    if CHROMIUM is None and os.environ.get("CI") != "true":
        pytest.skip("needs chromium (Debian's package)")
    assert CHROMIUM is not None, "continuous integration must have chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, studio: str) -> Iterator[Page]:
    """The page as it opens, and at the end nothing in the console."""
    page = person(browser, studio)
    yield page
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()
