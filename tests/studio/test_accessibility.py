"""axe-core finds nothing wrong, in any state of the page."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.studio.accessibility import axe_source, violations
from tests.studio.browsing import BLOCKED, ROOM, link, paste, person
from tests.studio.serving import KNOWN


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_source(tmp_path_factory.mktemp("axe"))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(390, 664), (820, 1180), (1440, 900)])
def test_axe_finds_nothing(
    browser: Browser, studio: str, axe: str, theme: Any, width: int, height: int
) -> None:
    page = person(browser, studio, color_scheme=theme, viewport={"width": width, "height": height})

    def clean(state: str) -> None:
        assert violations(page, axe) == [], state

    clean("play, first screen")
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => (each.open = true))")
    clean("play, everything open")
    page.goto(studio + link("######\n#@$ .#\n######"))
    page.click("#hint")
    expect(page.locator("#play-message")).to_contain_text("Hint")
    clean("a hint")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#won")).to_be_visible()
    clean("a win")
    page.click("[data-tab=watch]")
    clean("watch, empty")
    page.locator("#watch-settings").evaluate("(details) => (details.open = true)")
    page.fill("[name=count]", "2")
    page.click("#generate")
    expect(page.locator("#watch-boards .verdict b")).to_have_count(2)
    page.locator("#watch-boards canvas").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#chances")).to_be_visible()
    clean("watch, with odds")
    paste(page, KNOWN)
    page.click("#complete")
    expect(page.locator("#suggestions .verdict b")).to_have_count(6)
    clean("draw, with completions")
    page.click("#import")
    clean("import")
    page.keyboard.press("Escape")
    page.click("[data-tab=collection]")
    clean("collection, empty")
    for board in (ROOM, BLOCKED):
        paste(page, board)
        page.click("#draw-keep")
    page.click("[data-tab=collection]")
    expect(page.locator("#kept-boards .verdict b")).to_have_count(2)
    page.locator("#kept-boards button:text('Remove')").first.click()
    clean("collection, one removed")
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()
