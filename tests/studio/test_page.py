"""The page as a whole, in a real browser, as people use it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from maskoban.boards import Level
from maskoban.pictures.surroundings import looks
from maskoban.studio.app import create_app
from tests.studio.browsing import person
from tests.studio.serving import known_model, serving
from tests.studio.test_command import command


def test_the_page_recovers_when_the_server_is_killed_and_restarted(browser: Browser) -> None:
    with command() as (process, address):
        page = person(browser, address.rstrip("/"))
        process.kill()
        process.wait()
        page.click("#generate")
        expect(page.locator("#offline")).to_be_visible()
    with command("--port", address.rstrip("/").rpartition(":")[2]):
        expect(page.locator("#offline")).to_be_hidden()
        page.fill("[name=count]", "1")
        page.click("#generate")
        expect(page.locator("#watch-boards .verdict b")).to_have_count(1, timeout=60_000)
    page.context.close()


def test_the_page_recovers_when_the_server_stops_during_a_drawing(browser: Browser) -> None:
    with serving(create_app(lambda: known_model(0.05))) as address:
        page = person(browser, address)
        page.click("#generate")
        expect(page.locator("#watch-at")).to_have_text(re.compile(r"cell [1-9]"))
    expect(page.locator("#offline")).to_be_visible()
    expect(page.locator("#generate")).to_be_enabled()
    port = int(address.rpartition(":")[2])
    with serving(create_app(known_model), port):
        expect(page.locator("#offline")).to_be_hidden()
        page.click("#generate")
        expect(page.locator("#watch-boards .verdict b")).to_have_count(6)
    page.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_sticks_out_at_any_width(browser: Browser, studio: str, width: int, theme: Any) -> None:
    page = person(browser, studio, viewport={"width": width, "height": 850}, color_scheme=theme)
    expect(page.locator(f"html[data-theme={theme}]")).to_be_attached()
    for tab in ("watch", "play", "draw", "collection"):
        page.click(f"[data-tab={tab}]")
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.context.close()


def test_everything_to_press_has_a_name_and_can_be_reached(page: Page) -> None:
    for tab in ("watch", "play", "draw", "collection"):
        page.click(f"[data-tab={tab}]")
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, textarea, canvas[tabindex]")]
                .filter((each) => !(each.textContent.trim() || each.ariaLabel || each.labels?.length))
                .map((each) => each.outerHTML)"""
        )
        assert nameless == []
    page.keyboard.press("Tab")
    page.click("[data-tab=play]")
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.id"))
    assert {"restart", "hint", "shade", "warn", "play-edit", "play-board"} <= reached


def test_boards_look_as_in_all_other_pictures(page: Page) -> None:
    rng = np.random.default_rng(3)
    boards = [
        rng.choice(8, size=(7, 9), p=[0.45, 0.4, 0.02, 0.05, 0.05, 0.01, 0.01, 0.01]) for _ in range(20)
    ]
    texts = [str(Level(board)) for board in boards]
    found = page.evaluate(
        """async (texts) => {
            const { looks, parse } = await import("/board.js");
            return texts.map((text) => [...looks(parse(text))]);
        }""",
        texts,
    )
    for board, text, seen in zip(boards, texts, found, strict=True):
        if Level.parse(text).shape == board.shape:
            assert looks(board.astype(np.uint8)).ravel().tolist() == seen
