"""One served studio for all tests that do not need one of their own, its page, and the backends of the page."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from maskoban.studio import app, limits, solver_pool
from maskoban.studio.app import create_app
from tests.site.serving import FOLDER, built_site, file_server, known_site
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
def known() -> Iterator[str]:
    """The address of a studio that samples with the known model, for tests that expect its boards or its API."""
    with serving(create_app(known_model)) as address:
        yield address


@pytest.fixture(scope="session")
def static(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a static site with the known model, in a folder of a plain file server."""
    root = tmp_path_factory.mktemp("static")
    known_site(built_site(), root / FOLDER)
    with file_server(root) as (address, _):
        yield address


#: The backends of the page, and the fixture with the address of each. Tests of ``studio`` and ``page`` run with all.
#: The static site does not pass all of them yet, so it takes part on demand: MASKOBAN_TEST_STATIC=1 make test
BACKENDS = {"server": "known"}
if os.environ.get("MASKOBAN_TEST_STATIC"):
    BACKENDS["static"] = "static"


@pytest.fixture(scope="session", params=BACKENDS.values(), ids=BACKENDS.keys())
def studio(request: pytest.FixtureRequest) -> str:
    """The address of the page, with every backend."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def page(browser: Browser, studio: str) -> Iterator[Page]:
    """The page as it opens, with every backend, and at the end nothing in the console."""
    yield from _opened(browser, studio)


@pytest.fixture
def known_page(browser: Browser, known: str) -> Iterator[Page]:
    """The page as it opens, with the known model, and at the end nothing in the console."""
    yield from _opened(browser, known)


def _opened(browser: Browser, address: str) -> Iterator[Page]:
    page = person(browser, address)
    yield page
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()


#: Tests that fail with the static backend today.
NOT_YET_STATIC = {
    "test_one_proved_board_after_the_other",
    "test_import_of_an_archive_fills_the_collection",
    "test_many_boards_are_kept_at_once_and_one_is_taken_out_alone",
    "test_a_win_with_a_hint_does_not_count_until_a_restart",
    "test_boards_drawn_ahead_are_there_without_the_model",
    "test_play_to_the_win_by_keyboard",
    "test_the_first_screen_shows_boards_being_drawn",
    "test_the_colours_chosen_last_time_are_there_before_anything_is_painted",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name, _, parameters = item.name.partition("[")
        if name in NOT_YET_STATIC and "static" in parameters:
            item.add_marker(pytest.mark.xfail(run=False, reason="does not work in the static site yet"))
