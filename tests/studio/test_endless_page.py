"""Endless play: proved boards one after the other, what counts, and what is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from maskoban.boards import Level
from maskoban.solving import solve
from tests.site.serving import FOLDER
from tests.studio.browsing import ROOM, link, middle, person, play, shows
from tests.studio.conftest import Halted
from tests.studio.serving import eventually

NOON = datetime(2026, 11, 18, 12)
CORRIDOR = "#######\n#@$  .#\n#######"
PHONE = {"viewport": {"width": 390, "height": 664}, "has_touch": True, "is_mobile": True}
TABLET = {"viewport": {"width": 820, "height": 1180}}
WIDE = {"viewport": {"width": 1440, "height": 900}}
NEEDED = (
    "#play-board", "#undo", "#redo", "#restart", "#hint", "#previous", "#difficulty", "#daily", "#next",
    ".counters", "#play-message",
)  # fmt: skip

ARROWS = {"l": "ArrowLeft", "u": "ArrowUp", "r": "ArrowRight", "d": "ArrowDown"}
STEPS = {"l": (0, -1), "u": (-1, 0), "r": (0, 1), "d": (1, 0)}


def board_of(canvas: Locator) -> Level:
    return Level.parse(canvas.get_attribute("data-board") or "")


def player(canvas: Locator) -> tuple[int, int]:
    rows = (canvas.get_attribute("data-board") or "").split("\n")
    return next((i, row.index(p)) for i, row in enumerate(rows) for p in "@+" if p in row)


def by_keyboard(page: Page, canvas: Locator, letter: str) -> None:
    page.keyboard.press(ARROWS[letter.lower()])


def by_mouse(page: Page, canvas: Locator, letter: str) -> None:
    """Click the next cell, or drag the box that stands there."""
    (row, column), (down, right) = player(canvas), STEPS[letter.lower()]
    if letter.islower():
        return page.mouse.click(*middle(canvas, row + down, column + right))
    page.mouse.move(*middle(canvas, row + down, column + right))
    page.mouse.down()
    page.mouse.move(*middle(canvas, row + 2 * down, column + 2 * right))
    page.mouse.up()
    return None


def by_touch(page: Page, canvas: Locator, letter: str) -> None:
    """A swipe that begins on a wall, where no box is."""
    touch = page.context.new_cdp_session(page)
    (x, y), (down, right) = middle(canvas, 0, 0), STEPS[letter.lower()]
    beside, below = middle(canvas, 0, 1)[0] - x, middle(canvas, 1, 0)[1] - y
    there = [{"x": x + beside * right + 1, "y": y + below * down + 1}]
    for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchMove", there), ("touchEnd", [])):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    touch.detach()


def win(page: Page, move: Callable[[Page, Locator, str], None]) -> int:
    """Solve the board on the table with the fewest pushes."""
    canvas = page.locator("#play-board")
    found = solve(board_of(canvas), "pushes")
    for number, letter in enumerate(found.solution, 1):
        move(page, canvas, letter)
        expect(page.locator("#moves")).to_have_text(str(number))
    return found.pushes or 0


def fully_on_screen(page: Page, *selectors: str) -> None:
    size = page.viewport_size
    assert size is not None
    for selector in selectors:
        box = page.locator(selector).bounding_box()
        assert box is not None, selector
        inside = box["x"] >= 0 and box["x"] + box["width"] <= size["width"] + 0.5
        assert inside, (selector, box)
        assert 0 <= box["y"] <= box["y"] + box["height"] <= size["height"] + 0.5, (selector, box)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("move", [by_touch, by_mouse, by_keyboard], ids=["touch", "mouse", "keyboard"])
@pytest.mark.parametrize("device", [PHONE, TABLET, WIDE], ids=["phone", "tablet", "wide"])
def test_one_proved_board_after_the_other(
    browser: Browser, studio: str, device: dict[str, Any], move: Callable[..., None], theme: Any
) -> None:
    page = person(browser, studio, color_scheme=theme, **{**device, "has_touch": move is by_touch})
    canvas, first = page.locator("#play-board"), page.locator("#play-board").get_attribute("data-board") or ""
    fully_on_screen(page, *NEEDED)
    page.click("#next")
    expect(canvas).not_to_have_attribute("data-board", first)
    expect(page.locator("#par")).to_have_text(re.compile(r"^\d+$"))  # proved: it has a shortest solution
    pushes = win(page, move)
    expect(page.locator("#won-score")).to_have_text(re.compile(rf"^{pushes} push(es)?, par {pushes}$"))
    fully_on_screen(page, "#won-next", "#won-replay", "#won-share", "#play-message")
    won = canvas.get_attribute("data-board") or ""
    page.keyboard.press("Enter") if move is by_keyboard else page.click("#won-next")
    expect(page.locator("#won")).to_be_hidden()
    expect(page.locator("#moves")).to_have_text("0")
    # Back is the board that was won, and further back the first one.
    page.keyboard.press("p") if move is by_keyboard else page.click("#previous")
    expect(canvas).to_have_attribute("data-board", won)
    expect(page.locator("#won")).to_be_visible()
    page.click("#previous")
    expect(canvas).to_have_attribute("data-board", first)
    page.click("#next")
    page.click("#won-replay")
    expect(page.locator("#moves")).to_have_text("0")
    expect(page.locator("#best")).to_have_text(str(pushes))
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()


@pytest.mark.parametrize(("width", "height"), [(390, 664), (375, 553), (740, 360)])
def test_all_that_is_needed_to_play_is_on_a_phones_screen(
    browser: Browser, studio: str, width: int, height: int
) -> None:
    device: dict[str, Any] = {**PHONE, "viewport": {"width": width, "height": height}}
    page = person(browser, studio, **device)
    fully_on_screen(page, *NEEDED)
    box = page.locator("#play-board").bounding_box()
    tools = page.locator("#undo").bounding_box()
    assert box is not None
    assert tools is not None
    if width < height:  # on its side, the tools are beside the board
        assert 0 <= tools["y"] - box["y"] - box["height"] < 16  # directly under the board
    before = page.locator("#next").bounding_box()
    page.click("#hint")  # a message moves nothing
    expect(page.locator("#play-message")).to_contain_text("Hint")
    assert page.locator("#next").bounding_box() == before
    kinds = "button, select, summary, textarea, label.check, input:not([type=checkbox], .hide)"
    small = """(kinds) => [...document.querySelectorAll(kinds)]
        .filter((each) => each.checkVisibility())
        .map((each) => [each.outerHTML.slice(0, 80), each.getBoundingClientRect()])
        .filter(([, { width, height }]) => height < 43.9 || width < 43.9).map(([name]) => name)"""
    page.click("[data-tab=draw]")
    for tab in ("play", "watch", "draw", "collection"):
        page.click(f"[data-tab={tab}]")
        assert page.evaluate(small, kinds) == [], tab
    page.context.close()


def test_every_board_keeps_its_own_moves(page: Page, studio: str) -> None:
    canvas = play(page, studio, ROOM)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    moved = canvas.get_attribute("data-board") or ""
    for other in (CORRIDOR, "######\n#@$?.#\n######"):  # another board, and one that is not finished
        page.goto(studio + link(other))
        shows(canvas, other)
        page.keyboard.press("ArrowRight")
        page.goto(studio + link(ROOM))
        expect(canvas).to_have_attribute("data-board", moved)
        expect(page.locator("#moves")).to_have_text("2")
    page.click("#previous")
    page.click("#previous")
    page.click("#previous")
    expect(canvas).to_have_attribute("data-board", "#######\n# @$ .#\n#######")
    page.reload()
    expect(canvas).to_have_attribute("data-board", "#######\n# @$ .#\n#######")


def test_one_undo_takes_back_one_gesture(page: Page, studio: str) -> None:
    canvas, moves = play(page, studio, ROOM), page.locator("#moves")
    page.mouse.click(*middle(canvas, 5, 6))  # a walk of seven steps
    page.mouse.click(*middle(canvas, 4, 2))
    page.mouse.click(*middle(canvas, 4, 4))  # a box pushed by two
    pushed = int(moves.inner_text())
    page.keyboard.press("Shift+Z")
    expect(moves).to_have_text(str(pushed - 1))
    page.keyboard.press("z")
    expect(moves).to_have_text("7")
    page.keyboard.press("y")
    expect(moves).to_have_text(str(pushed))
    page.keyboard.press("z")
    page.reload()  # what a gesture was is not forgotten
    page.keyboard.press("z")
    expect(moves).to_have_text("0")


def test_a_swipe_that_goes_on_walks_on_and_is_one_gesture(browser: Browser, studio: str) -> None:
    page = person(browser, studio, link(CORRIDOR), **PHONE)
    canvas = page.locator("#play-board")
    shows(canvas, CORRIDOR)
    box = canvas.bounding_box()
    assert box is not None
    cell = box["width"] / 7
    x, y = middle(canvas, 0, 1)
    touch = page.context.new_cdp_session(page)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 4):
        there = [{"x": x + 1.1 * cell * step, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": there})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(page.locator("#play-message")).to_have_text("Solved in 3 moves and 3 pushes, your best so far!")
    page.click("#undo")
    expect(page.locator("#moves")).to_have_text("0")
    page.context.close()


def test_a_win_with_a_hint_does_not_count_until_a_restart(page: Page, studio: str) -> None:
    play(page, studio, CORRIDOR)
    page.click("#hint")
    expect(page.locator("#play-message")).to_contain_text("Hint")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#won-helped")).to_be_visible()
    expect(page.locator("#best")).to_have_text("–")
    page.click("#won-replay")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#won-helped")).to_be_hidden()
    expect(page.locator("#best")).to_have_text("3")
    page.click("summary:text('Statistics')")
    expect(page.locator("#stats")).to_contain_text("Solved1At par1")
    # The same board again is no second board.
    page.click("#won-replay")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#won")).to_be_visible()
    expect(page.locator("#stats")).to_contain_text("Solved1At par1")


def test_the_daily_board_is_the_same_for_everybody_and_feeds_the_streak(
    browser: Browser, studio: str
) -> None:
    boards = []
    for _ in range(2):
        page = person(browser, studio, at=NOON, permissions=["clipboard-read", "clipboard-write"])
        page.click("#daily")
        expect(page.locator("#board-name")).to_contain_text("Daily 2026-11-18")
        boards.append(page.locator("#play-board").get_attribute("data-board"))
        if len(boards) < 2:
            page.context.close()
    assert boards[0] == boards[1]
    pushes = win(page, by_keyboard)
    page.click("#won-share")
    expect(page.locator("#toast")).to_contain_text("Copied")
    text = page.evaluate("() => navigator.clipboard.readText()")
    assert text.startswith(f"maskoban daily 2026-11-18\n{pushes} push")
    assert "#/daily/2026-11-18" in text
    assert not re.search("[lurd]{5}", text, re.IGNORECASE)  # how it is solved is not told
    page.click("summary:text('Statistics')")
    expect(page.locator("#stats")).to_contain_text("Daily streak1Longest streak1")
    page.context.close()


@pytest.mark.parametrize(
    ("days", "current", "longest"),
    [
        ([], 0, 0),
        (["2026-11-18"], 1, 1),
        (["2026-11-16", "2026-11-17"], 2, 2),  # today can still be played
        (["2026-11-15", "2026-11-16"], 0, 2),
        (["2026-10-30", "2026-10-31", "2026-11-01", "2026-11-18"], 1, 3),
    ],
)
def test_streaks_are_days_in_a_row(page: Page, days: list[str], current: int, longest: int) -> None:
    found = page.evaluate(
        """async (days) => {
            const { streaks } = await import("./records.js");
            return streaks(Object.fromEntries(days.map((day) => [day, 1])), "2026-11-18");
        }""",
        days,
    )
    assert found == {"current": current, "longest": longest}


def test_the_time_runs_while_one_plays(browser: Browser, studio: str) -> None:
    page = person(browser, studio, link(CORRIDOR))
    page.clock.install(time="2026-01-01T00:00:00")
    page.reload()
    shows(page.locator("#play-board"), CORRIDOR)
    page.clock.pause_at("2026-01-01T01:00:00")  # from here on only the test moves the clock
    page.clock.run_for(30_000)
    expect(page.locator("#time")).to_have_text("0:00")  # not before the first move
    page.keyboard.press("ArrowRight")
    page.clock.run_for(65_000)
    expect(page.locator("#time")).to_have_text("1:05")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#won-detail")).to_have_text("3 moves · 1:05 · best 3 pushes, 3 moves")
    page.context.close()


def test_every_move_is_spoken_and_cells_can_be_explored(page: Page, studio: str) -> None:
    play(page, studio, CORRIDOR)
    spoken = page.locator("#spoken")
    for key, sentence in (
        ("ArrowUp", "Blocked."),
        ("Shift+ArrowRight", "row 2, column 2, player"),
        ("Shift+ArrowRight", "row 2, column 3, box"),
        ("ArrowRight", "Pushed right."),
        ("Shift+ArrowRight", "row 2, column 4, box"),
        ("Enter", "Box in hand; 2 cells to push it to."),
        ("Shift+ArrowRight", "row 2, column 5, floor"),
        ("Shift+ArrowRight", "row 2, column 6, goal"),
        ("Enter", "2 pushes, 2 moves, onto a goal. You are at row 2, column 5."),
        ("z", "Undone. You are at row 2, column 3."),
    ):
        page.keyboard.press(key)
        expect(spoken).to_have_text(sentence)


def test_letters_are_known_by_their_place(page: Page, studio: str) -> None:
    canvas = play(page, studio, ROOM)
    press = """([code, key]) =>
        document.body.dispatchEvent(new KeyboardEvent("keydown", { code, key, bubbles: true }))"""
    # On a French keyboard the keys of W A S D say Z Q S D.
    for code, key in (("KeyW", "z"), ("KeyA", "q"), ("KeyS", "s"), ("KeyS", "s")):
        page.evaluate(press, [code, key])
    expect(page.locator("#moves")).to_have_text("4")
    assert player(canvas) == (3, 1)
    page.evaluate(press, ["KeyZ", "w"])
    expect(page.locator("#moves")).to_have_text("3")


def test_boards_of_a_difficulty_nobody_draws_are_given_up(studio: str, browser: Browser) -> None:
    page = person(browser, studio)
    page.select_option("#difficulty", "expert")  # the known model draws easy boards only
    expect(page.locator("#play-message")).to_have_text("60 boards were drawn, and none is expert.")
    page.select_option("#difficulty", "easy")
    expect(page.locator("#board-name")).to_contain_text("easy")
    expect(page.locator("#par")).to_have_text("3")
    page.context.close()


def test_boards_drawn_ahead_are_there_without_the_model(page: Page, studio: str) -> None:
    assert eventually(
        lambda: page.evaluate("() => JSON.parse(localStorage['maskoban.pool'] ?? '[]').length >= 3")
    )
    page.route("**/api/generate/**", lambda route: route.abort())
    canvas, seen = page.locator("#play-board"), {page.locator("#play-board").get_attribute("data-board")}
    for number in range(3):
        page.click("#next")
        expect(page.locator("#par")).to_have_text(re.compile(r"^\d+$"))
        seen.add(canvas.get_attribute("data-board"))
        assert len(seen) == number + 2
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser's own remark on what was cut off


def test_where_none_was_drawn_ahead_one_sees_it_being_drawn(browser: Browser, halted: Halted) -> None:
    # A board that waits, but is of another difficulty.
    waiting = {"board": ROOM, "title": "Other", "word": "expert", "pushes": 5}
    stored = {"maskoban.pool": [waiting], "maskoban.difficulty": "easy"}
    items = [{"name": name, "value": json.dumps(value)} for name, value in stored.items()]
    origin = halted.address.removesuffix(f"/{FOLDER}")
    page = person(
        browser,
        halted.address,
        storage_state={"cookies": [], "origins": [{"origin": origin, "localStorage": items}]},
    )
    canvas, welcome = page.locator("#play-board"), page.locator("#play-board").get_attribute("data-board")
    page.click("#next")
    expect(page.locator("#play-message")).to_have_text("The model draws a board…")
    halted.allow(page, 1)
    page.wait_for_function(
        "() => document.getElementById('play-board').dataset.board.split('?').length === 44"
    )
    page.keyboard.press("ArrowLeft")  # this is no board to move on yet
    expect(page.locator("#moves")).to_have_text("0")
    page.keyboard.press("Escape")
    expect(canvas).to_have_attribute("data-board", welcome or "")
    page.click("#next")
    halted.allow(page, 100_000)
    expect(page.locator("#par")).to_have_text("3")
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()
