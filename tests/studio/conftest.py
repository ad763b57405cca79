"""One served studio for all tests that do not need one of their own, and its page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from maskoban.studio import app, limits, solver_pool
from maskoban.studio.app import create_app
from tests.studio.browsing import person
from tests.studio.serving import PATIENCE, known_model, serving


@pytest.fixture(scope="session", autouse=True)
def _patience() -> Iterator[None]:
    """No deadline that a slow machine could miss."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver_pool, "QUICK_JOB", PATIENCE)
        patch.setattr(limits, "JUDGE_SECONDS", PATIENCE)
        patch.setattr(limits, "LONG_SECONDS", PATIENCE)
        patch.setattr(app, "GRACE", round(PATIENCE))
        yield


@pytest.fixture(scope="session")
def studio() -> Iterator[str]:
    """The address of a studio that draws with the known model."""
    with serving(create_app(known_model)) as address:
        yield address


@pytest.fixture
def page(browser: Browser, studio: str) -> Iterator[Page]:
    """The page as it opens, and at the end nothing in the console."""
    page = person(browser, studio)
    yield page
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()
