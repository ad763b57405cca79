"""Watch, in a real browser: boards appear while they are sampled."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from maskoban.diffusion.loading import load
from tests.studio.browsing import middle, person, shows
from tests.studio.conftest import Halted
from tests.studio.serving import known_model, picky_model


def generate(page: Page, count: int, seed: int | None = None) -> None:
    page.click("[data-tab=watch]")
    page.locator("#watch-settings").evaluate("(details) => (details.open = true)")
    page.fill("[name=count]", str(count))
    if seed is not None:
        page.locator("#watch-more").evaluate("(details) => (details.open = true)")
        page.fill("[name=seed]", str(seed))
    page.click("#generate")


def test_generate_and_watch_to_the_end(page: Page) -> None:
    generate(page, 3, seed=5)
    boards = page.locator("#watch-boards canvas")
    expect(page.locator("#watch-boards .verdict b")).to_have_text(["solved, easy"] * 3)
    expected = [str(level) for level in known_model().generate(3, seed=5)]
    for number, board in enumerate(expected):
        shows(boards.nth(number), board)
    # Back to the beginning: every cell is masked; and forward by one cell.
    page.locator("#watch-step").focus()
    page.keyboard.press("Home")
    first = boards.first.get_attribute("data-board")
    assert first is not None
    assert first.count("?") == 64
    page.keyboard.press("ArrowRight")
    assert (boards.first.get_attribute("data-board") or "").count("?") == 63
    expect(page.locator("#watch-at")).to_have_text("step 1 of 64")
    page.keyboard.press("End")
    shows(boards.first, expected[0])
    # The model was sure of the cell with the player.
    page.mouse.move(*middle(boards.first, 2, 2))
    expect(page.locator("#chances .drawn")).to_have_text("100 %")
    expect(page.locator("#chances h3")).to_have_text(re.compile("^row 3, column 3, player: commit"))
    page.keyboard.press("Escape")
    expect(page.locator("#chances")).to_be_hidden()


def test_a_board_that_the_critic_rejects_is_cleared_and_sampled_again(browser: Browser, picky: str) -> None:
    trajectory = picky_model().trajectory(4, seed=3)
    attempts = trajectory.attempts.tolist()
    again = attempts.index(max(attempts))
    assert attempts[again] > 1
    page = person(browser, picky, "/#/watch")
    generate(page, 4, seed=3)
    expect(page.locator("#watch-summary")).to_have_text(
        f"4 of 4 boards solvable; {sum(attempts)} attempts and {sum(attempts) * 129:,} network evaluations in all."
    )
    card = page.locator("#watch-boards .card").nth(again)
    expect(card).to_contain_text(f"attempt {attempts[again]}, the critic rejected {attempts[again] - 1}")
    canvas = card.locator("canvas")
    shows(canvas, "\n".join("".join("# @$.*+?"[tile] for tile in row) for row in trajectory.boards[again]))
    # At the end of its first attempt the board is full, and a step later all but one cell is masked.
    page.locator("#watch-step").fill("128")
    assert "?" not in (canvas.get_attribute("data-board") or "?")
    page.locator("#watch-step").fill("129")
    assert (canvas.get_attribute("data-board") or "").count("?") == 63
    page.context.close()


def test_the_note_says_what_a_sampler_costs(browser: Browser, shipped: str) -> None:
    page = person(browser, shipped, "/#/watch")
    note = page.locator("#sampler-note")
    expect(note).to_have_text(
        "90 % of its boards are solvable; about 1.3 attempts and 171 network evaluations a board, "
        "2.7 times the work of plain."
    )
    page.select_option("[name=sampler]", "plain")
    expect(note).to_have_text("83 % of its boards are solvable; 64 network evaluations a board.")
    page.click("#watch-more summary")
    page.locator("[name=temperature]").fill("0.8")
    expect(note).to_have_text("With these settings nobody has measured how many boards are solvable.")
    page.context.close()


def test_boards_of_another_size_come_from_the_model_any(browser: Browser, known: str) -> None:
    page = person(browser, known, "/#/watch")
    page.locator("#watch-settings").evaluate("(details) => (details.open = true)")
    for name, number in (("rows", 6), ("columns", 7), ("boxes", 2)):
        page.fill(f"[name={name}]", str(number))
    page.select_option("[name=sampler]", "fast")
    expect(page.locator("#sampler-note")).to_contain_text("The model any draws boards of this kind")
    generate(page, 2, seed=5)
    boards, expected = page.locator("#watch-boards canvas"), load("any").given(size=(6, 7), boxes=2)
    expect(page.locator("#watch-boards .verdict b")).to_have_count(2)
    for number, board in enumerate(expected.generate(2, 5, "fast")):
        shows(boards.nth(number), str(board))
    page.fill("[name=rows]", "10")
    page.fill("[name=columns]", "10")
    page.fill("[name=boxes]", "4")
    expect(page.locator("#sampler-note")).not_to_contain_text("The model any")
    page.context.close()


def test_without_another_model_no_other_size_is_offered(browser: Browser, static: str) -> None:
    page = person(browser, static, "/#/watch")
    expect(page.locator("[name=count]")).to_be_visible()
    expect(page.locator("[name=rows]")).to_be_hidden()
    page.context.close()


def test_only_boards_that_match_are_kept(page: Page) -> None:
    page.click("[data-tab=watch]")
    page.select_option("[name=keep]", "solvable")
    generate(page, 2, seed=5)
    expect(page.locator("#watch-summary")).to_contain_text("2 of 2 boards solvable")
    # The known boards are easy: none is hard, and the page says so instead of looking for ever.
    page.select_option("[name=keep]", "hard")
    generate(page, 1, seed=5)
    expect(page.locator("#watch-summary")).to_contain_text("Only 0 of 20 boards matched")


def test_the_sampling_is_seen_while_it_happens_and_can_be_stopped(browser: Browser, halted: Halted) -> None:
    page = person(browser, halted.address, "/#/watch")
    page.focus("#generate")
    page.keyboard.press("Enter")
    expect(page.locator("#watch-at")).to_have_text("step 20 of 64")
    expect(page.locator("#watch-step")).to_have_attribute("max", "64")
    expect(page.locator("#generate")).to_be_focused()
    page.focus("#watch-stop")
    page.keyboard.press("Enter")
    expect(page.locator("#generate")).to_have_text("Generate")
    expect(page.locator("#generate")).to_be_focused()
    # A board that was not finished can be completed, after a reload as well.
    expect(page.locator("#watch-boards .verdict").first).to_contain_text("Stopped.")
    half = page.locator("#watch-boards canvas").nth(2).get_attribute("data-board") or ""
    assert half.count("?") == 44
    page.reload()
    page.click("#watch-boards button:text('Edit') >> nth=2")
    expect(page.locator("#draw-board")).to_have_attribute("data-board", half)
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()


def test_two_people_do_not_meet(browser: Browser, studio: str) -> None:
    people = [person(browser, studio, "/#/watch") for _ in range(2)]
    for seed, each in enumerate(people):
        generate(each, 2, seed=seed)
    third = person(browser, studio, "/#/watch")
    third.click("#generate")
    third.context.close()  # somebody who leaves takes nobody along
    for seed, each in enumerate(people):
        expect(each.locator("#watch-boards .verdict b")).to_have_count(2)
        for number, level in enumerate(known_model().generate(2, seed=seed)):
            shows(each.locator("#watch-boards canvas").nth(number), str(level))
        each.click("#watch-boards button:text('Keep') >> nth=0")
        expect(each.locator("#kept")).to_have_text("1")
        each.context.close()


def test_sweeps_commit_cells_again_and_a_reload_forgets_nothing(page: Page) -> None:
    page.click("[data-tab=watch]")
    page.click("#watch-more summary")
    page.select_option("[name=sweeps]", "2")
    generate(page, 1)
    expect(page.locator("#watch-boards .verdict b")).to_have_text("solved, easy")
    expect(page.locator("#watch-at")).to_have_text("step 192 of 192")
    sampled = page.locator("#watch-boards canvas").get_attribute("data-board") or ""
    page.reload()
    canvas = page.locator("#watch-boards canvas")
    expect(canvas).to_have_attribute("data-board", sampled)
    expect(page.locator("#watch-boards .verdict b")).to_have_text("solved, easy")
    canvas.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#chances h3")).to_contain_text("row 2, column 9")


def test_a_click_plays_a_board_and_a_long_press_explains_a_cell(browser: Browser, studio: str) -> None:
    phone = person(
        browser, studio, "/#/watch", viewport={"width": 390, "height": 664}, has_touch=True, is_mobile=True
    )
    generate(phone, 1)
    expect(phone.locator("#watch-boards .verdict b")).to_have_count(1)
    canvas = phone.locator("#watch-boards canvas")
    canvas.scroll_into_view_if_needed()
    x, y = middle(canvas, 2, 2)
    touch = phone.context.new_cdp_session(phone)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    expect(phone.locator("#chances h3")).to_contain_text("row 3, column 3, player")
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(phone.locator("#chances")).to_be_visible()  # a finger covers what it points at
    expect(phone.locator("#watch")).to_be_visible()
    phone.locator("#scrubber output").tap()
    expect(phone.locator("#chances")).to_be_hidden()
    board = canvas.get_attribute("data-board") or ""
    phone.touchscreen.tap(*middle(canvas, 2, 2))
    shows(phone.locator("#play-board"), board)
    expect(phone.locator("#play")).to_be_visible()
    phone.context.close()


def test_the_first_screen_shows_boards_being_drawn(browser: Browser, studio: str) -> None:
    page = person(browser, studio, "/#/watch", first_visit=True)
    expect(page.locator("#watch-boards canvas")).to_have_count(6)
    expect(page.locator("#watch-boards .verdict b")).to_have_count(6)
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()


def test_a_window_that_is_left_while_it_samples_has_it_all_again(browser: Browser, halted: Halted) -> None:
    page = person(browser, halted.address, "/#/watch")
    page.click("#generate")
    expect(page.locator("#watch-at")).to_have_text("step 20 of 64")
    page.reload()
    expect(page.locator("#watch-boards canvas")).to_have_count(6)
    expect(page.locator("#watch-boards .verdict").first).to_contain_text("Stopped.")
    half = page.locator("#watch-boards canvas").first.get_attribute("data-board") or ""
    assert half.count("?") == 44
    page.context.close()
