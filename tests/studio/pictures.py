"""The studio's pictures in docs/pictures, taken again: ``python -m tests.studio.pictures``."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from maskoban.studio.app import create_app
from tests.conftest import CHROMIUM, FLAGS
from tests.studio.browsing import link, middle, paste, person
from tests.studio.serving import serving

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SIZES = {"phone": (390, 844), "tablet": (820, 1180), "wide": (1440, 900)}
HALF = """
##########
#????????#
#?..?????#
#???$????#
#????$???#
#??#@????#
#??#?????#
#????????#
#????????#
##########
""".strip()


def _drawn(page: Page, seed: int, count: int) -> list[str]:
    page.fill("[name=seed]", str(seed))
    page.fill("[name=count]", str(count))
    page.click("#generate")
    expect(page.locator("#watch-boards .verdict b")).to_have_count(count, timeout=200_000)
    return [canvas.get_attribute("data-board") or "" for canvas in page.locator("#watch-boards canvas").all()]


def _take(browser: Browser, studio: str) -> None:
    def sitting(size: str, theme: str, path: str = "/") -> Page:
        width, height = SIZES[size]
        return person(
            browser, studio, path,
            viewport={"width": width, "height": height}, color_scheme=theme, has_touch=size == "phone",
        )  # fmt: skip

    def shoot(page: Page, name: str, whole: bool = False) -> None:
        page.wait_for_timeout(4000)  # passing words are gone, and answers there
        picture = Image.open(BytesIO(page.screenshot(full_page=whole))).convert("RGB").quantize(256, kmeans=4)
        picture.save(FOLDER / f"studio-{name}.png", optimize=True)  # a third of the bytes, and no eye sees it
        page.context.close()

    page = sitting("wide", "light")
    boards = _drawn(page, seed=7, count=6)
    page.locator("#watch-step").fill("38")
    canvas = page.locator("#watch-boards canvas").nth(1)
    for row in range(2, 8):  # to a cell that is drawn by then
        page.mouse.move(*middle(canvas, row, 3))
        if page.locator("#chances").is_visible():
            break
    shoot(page, "wide-light")

    page = sitting("wide", "dark", link(boards[3]))
    page.check("#shade")
    rows = boards[3].split("\n")
    boxes = [(i, j) for i, row in enumerate(rows) for j, tile in enumerate(row) if tile == "$"]
    page.mouse.click(*middle(page.locator("#play-board"), *boxes[-2]))
    shoot(page, "wide-dark")

    page = sitting("tablet", "light")
    paste(page, HALF)
    page.click("#complete")
    expect(page.locator("#suggestions .verdict b")).to_have_count(6, timeout=200_000)
    shoot(page, "tablet-light", whole=True)  # the suggestions are at its end

    page = sitting("tablet", "dark")
    for board in boards:
        paste(page, board)
        page.click("#draw-keep")
    page.click("[data-tab=collection]")
    shoot(page, "tablet-dark")

    page = sitting("phone", "light", link(boards[0]))
    page.click("#hint")
    shoot(page, "phone-light")

    page = sitting("phone", "dark")
    _drawn(page, seed=11, count=4)
    page.evaluate("() => scrollTo(0, 420)")
    shoot(page, "phone-dark")


if __name__ == "__main__":
    with serving(create_app()) as address, sync_playwright() as playwright:
        _take(playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS), address)
