"""The studio's pictures in docs/pictures, taken again: ``python -m tests.studio.pictures``."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from maskoban.boards import Level
from maskoban.solving import solve
from maskoban.studio.app import create_app
from tests.conftest import CHROMIUM, FLAGS
from tests.studio.browsing import link, middle, paste, person
from tests.studio.serving import serving

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SIZES = {"phone": (390, 664), "tablet": (820, 1180), "wide": (1440, 900)}
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
    for each in ("#watch-settings", "#watch-more"):
        page.locator(each).evaluate("(details) => (details.open = true)")
    page.fill("[name=seed]", str(seed))
    page.fill("[name=count]", str(count))
    page.click("#generate")
    expect(page.locator("#watch-boards .verdict b")).to_have_count(count, timeout=200_000)
    return [canvas.get_attribute("data-board") or "" for canvas in page.locator("#watch-boards canvas").all()]


def _take(browser: Browser, studio: str) -> None:
    def sitting(size: str, theme: str, path: str = "/") -> Page:
        width, height = SIZES[size]
        phone = {"has_touch": True, "is_mobile": True} if size == "phone" else {}
        screen = {"viewport": {"width": width, "height": height}, "color_scheme": theme}
        return person(browser, studio, path, **screen, **phone)

    def shoot(page: Page, name: str, whole: bool = False) -> None:
        page.wait_for_timeout(4000)  # passing words are gone, and answers there
        picture = Image.open(BytesIO(page.screenshot(full_page=whole))).convert("RGB").quantize(256, kmeans=4)
        picture.save(FOLDER / f"studio-{name}.png", optimize=True)  # a third of the bytes, and no eye sees it
        page.context.close()

    page = sitting("wide", "light", "/#/watch")
    boards = _drawn(page, seed=7, count=6)
    page.click("#watch-more summary")
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
    for box in boxes:  # to one that can be pushed
        page.mouse.click(*middle(page.locator("#play-board"), *box))
        if "cannot" not in page.locator("#play-message").inner_text():
            break
    shoot(page, "wide-dark")

    page = sitting("tablet", "light")
    paste(page, HALF)
    page.click("#complete")
    expect(page.locator("#suggestions .verdict b")).to_have_count(6, timeout=200_000)
    shoot(page, "tablet-light")

    page = sitting("tablet", "dark")
    for board in boards:
        paste(page, board)
        page.click("#draw-keep")
    page.click("[data-tab=collection]")
    shoot(page, "tablet-dark")

    solvable = [board for board in boards if solve(Level.parse(board)).solved]
    page = sitting("phone", "light", link(solvable[0]))
    for letter in solve(Level.parse(solvable[0]), "pushes").solution:
        page.keyboard.press({"l": "a", "u": "w", "r": "d", "d": "s"}[letter.lower()])
    expect(page.locator("#won-score")).to_contain_text("par")
    shoot(page, "phone-light")

    page = sitting("phone", "dark", link(solvable[1]))
    page.click("#hint")
    expect(page.locator("#play-message")).to_contain_text("Hint")
    shoot(page, "phone-dark")


if __name__ == "__main__":
    with serving(create_app()) as address, sync_playwright() as playwright:
        _take(playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS), address)
