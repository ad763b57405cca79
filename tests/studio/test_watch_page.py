"""Watch, in a real browser: boards appear as they are drawn."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Browser, Page, Route, expect

from maskoban.diffusion.model import Model
from maskoban.studio.app import create_app
from tests.studio.browsing import ROOM, middle, person, shows
from tests.studio.serving import Known, known_model, serving


def test_generate_and_watch_to_the_end(page: Page) -> None:
    page.fill("[name=count]", "3")
    page.fill("[name=seed]", "5")
    page.click("#generate")
    boards = page.locator("#watch-boards canvas")
    expect(page.locator("#watch-boards .verdict b")).to_have_text(["solved, easy"] * 3)
    expected = [str(level) for level in known_model().generate(3, seed=5)]
    for number, board in enumerate(expected):
        shows(boards.nth(number), board)
    # Back to the beginning: nothing is drawn; and forward by one cell.
    scrubber = page.locator("#watch-step")
    scrubber.focus()
    page.keyboard.press("Home")
    first = boards.first.get_attribute("data-board")
    assert first is not None
    assert first.count("?") == 64
    page.keyboard.press("ArrowRight")
    assert (boards.first.get_attribute("data-board") or "").count("?") == 63
    expect(page.locator("#watch-at")).to_have_text("cell 1 of 64")
    page.keyboard.press("End")
    shows(boards.first, expected[0])
    # What the model thought of the cell with the player: it was sure.
    page.mouse.move(*middle(boards.first, 2, 2))
    expect(page.locator("#chances .drawn")).to_have_text("100 %")
    expect(page.locator("#chances h3")).to_have_text(re.compile("^row 3, column 3, player: commit"))


def test_the_drawing_is_seen_while_it_happens(browser: Browser) -> None:
    with serving(create_app(lambda: known_model(0.05))) as address:
        page = person(browser, address)
        page.focus("#generate")
        page.keyboard.press("Enter")
        expect(page.locator("#watch-at")).to_have_text(re.compile(r"cell ([1-9]|[12]\d) of 64"))
        expect(page.locator("#watch-step")).to_have_attribute("max", "64")
        expect(page.locator("#generate")).to_be_focused()
        page.focus("#watch-stop")
        page.keyboard.press("Enter")
        expect(page.locator("#generate")).to_have_text("Generate")
        expect(page.locator("#generate")).to_be_focused()
        # What was not drawn to the end can be gone on with, after a reload as well.
        expect(page.locator("#watch-boards .verdict").first).to_contain_text("Stopped.")
        half = page.locator("#watch-boards canvas").nth(2).get_attribute("data-board") or ""
        page.reload()
        page.click("#watch-boards button:text('Edit') >> nth=2")
        expect(page.locator("#draw-board")).to_have_attribute("data-board", half)
        assert "?" in half
        assert page.complaints == []  # type: ignore[attr-defined]
        page.context.close()


def test_two_people_do_not_meet(browser: Browser) -> None:
    denoiser = Known(seconds=0.01)
    with serving(create_app(lambda: Model(denoiser, {"name": "shared"}))) as address:
        people = [person(browser, address) for _ in range(2)]
        for seed, each in enumerate(people):
            each.fill("[name=count]", "2")
            each.fill("[name=seed]", str(seed))
            each.click("#generate")
        third = person(browser, address)
        third.click("#generate")
        third.context.close()  # and somebody who leaves takes nobody along
        for seed, each in enumerate(people):
            expect(each.locator("#watch-boards .verdict b")).to_have_count(2)
            for number, level in enumerate(known_model().generate(2, seed=seed)):
                shows(each.locator("#watch-boards canvas").nth(number), str(level))
            each.click("#watch-boards button:text('Keep') >> nth=0")
            expect(each.locator("#kept")).to_have_text("1")
            each.context.close()


def test_polish_goes_on_beyond_the_cells_and_a_reload_forgets_nothing(page: Page) -> None:
    page.fill("[name=count]", "1")
    page.select_option("[name=polish]", "2")
    page.click("#generate")
    expect(page.locator("#watch-boards .verdict b")).to_have_text("solved, easy")
    expect(page.locator("#watch-at")).to_have_text("step 192 of 192")
    drawn = page.locator("#watch-boards canvas").get_attribute("data-board") or ""
    page.reload()
    canvas = page.locator("#watch-boards canvas")
    expect(canvas).to_have_attribute("data-board", drawn)
    expect(page.locator("#watch-boards .verdict b")).to_have_text("solved, easy")
    canvas.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#chances h3")).to_contain_text("row 2, column 9")


def test_what_a_finger_asked_for_stays_to_be_read(browser: Browser, studio: str) -> None:
    phone = person(browser, studio, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    phone.fill("[name=count]", "1")
    phone.click("#generate")
    expect(phone.locator("#watch-boards .verdict b")).to_have_count(1)
    canvas = phone.locator("#watch-boards canvas")
    canvas.scroll_into_view_if_needed()
    phone.touchscreen.tap(*middle(canvas, 2, 2))
    phone.wait_for_timeout(300)  # the finger is gone by now
    expect(phone.locator("#chances")).to_be_visible()
    expect(phone.locator("#chances h3")).to_contain_text("row 3, column 3, player")
    phone.locator("#scrubber output").tap()
    expect(phone.locator("#chances")).to_be_hidden()
    phone.context.close()


def test_a_window_that_is_left_half_way_has_it_all_again(browser: Browser) -> None:
    with serving(create_app(lambda: known_model(0.05))) as address:
        page = person(browser, address)
        page.click("#generate")
        expect(page.locator("#watch-at")).to_have_text(re.compile(r"cell ([5-9]|[1-5]\d) of 64"))
        page.reload()
        expect(page.locator("#watch-boards canvas")).to_have_count(6)
        expect(page.locator("#watch-boards .verdict").first).to_contain_text("Stopped.")
        half = page.locator("#watch-boards canvas").first.get_attribute("data-board") or ""
        assert 0 < half.count("?") < 64
        page.context.close()


def test_boards_that_were_not_judged_when_the_window_was_left_are_judged_then(page: Page) -> None:
    page.fill("[name=count]", "2")
    page.click("#generate")
    verdicts = page.locator("#watch-boards .verdict b")
    expect(verdicts).to_have_count(2)
    page.evaluate(
        """() => {
            const told = JSON.parse(sessionStorage["maskoban.watch"]).filter(([name]) => name !== "judged");
            addEventListener("pagehide", () => (sessionStorage["maskoban.watch"] = JSON.stringify(told)));
        }"""
    )
    page.reload()
    expect(verdicts).to_have_text(["solved, easy"] * 2)


def test_a_late_judgement_is_not_taken_for_another_drawings(browser: Browser) -> None:
    start = {"count": 1, "seed": 1, "model": "known", "board": re.sub("[^#\n]", "?", ROOM)}
    told = json.dumps(json.dumps([["start", start], ["finished", {"boards": [ROOM]}]]))
    held: list[Route] = []
    with serving(create_app(lambda: known_model(0.05))) as address:
        page = browser.new_page()
        page.add_init_script(f"sessionStorage['maskoban.watch'] ??= {told}")
        page.route("**/api/rate", lambda route: held.append(route))
        with page.expect_request("**/api/rate"):
            page.goto(address)
        page.click("#generate")
        expect(page.locator("#watch-at")).to_have_text(re.compile(r"cell [1-9]"))
        with page.expect_response("**/api/rate"):
            held[0].continue_()
        page.wait_for_function("() => true")  # a moment for whoever heard it
        expect(page.locator("#watch-boards .verdict b")).to_have_count(0, timeout=1000)
        page.context.close()
