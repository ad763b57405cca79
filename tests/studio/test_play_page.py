"""Play, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from maskoban.boards import Level
from maskoban.solving import solve, solves
from tests.studio.browsing import ROOM, link, middle, person, pinch, play, shows, unanswered
from tests.studio.serving import known_model


def test_play_to_the_win_by_keyboard(page: Page, studio: str) -> None:
    play(page, studio, "######\n#@$ .#\n######")
    expect(page.locator("#par")).to_have_text("2")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("d")
    expect(page.locator("#play-message")).to_have_text("Solved in 2 moves and 2 pushes, your best so far!")
    expect(page.locator("#best")).to_have_text("2")
    # What was won is remembered.
    page.reload()
    expect(page.locator("#best")).to_have_text("2")


def test_undo_and_redo_without_end(page: Page, studio: str) -> None:
    canvas = play(page, studio, ROOM)
    for key in ["ArrowRight", "ArrowRight", "ArrowDown", "s", "a"]:
        page.keyboard.press(key)
    after = canvas.get_attribute("data-board")
    expect(page.locator("#moves")).to_have_text("5")
    for _ in range(9):
        page.keyboard.press("z")
    shows(canvas, ROOM)
    expect(page.locator("#undo")).to_be_disabled()
    for _ in range(9):
        page.keyboard.press("y")
    expect(canvas).to_have_attribute("data-board", after or "")
    page.click("#restart")
    shows(canvas, ROOM)


def test_drag_boxes_to_the_win(page: Page, studio: str) -> None:
    canvas = play(page, studio, ROOM)
    for box, goal in (((2, 3), (2, 5)), ((4, 2), (4, 5))):
        page.mouse.move(*middle(canvas, *box))
        page.mouse.down()
        page.mouse.move(*middle(canvas, *goal), steps=4)
        page.mouse.up()
    expect(page.locator("#play-message")).to_have_text(re.compile(r"Solved in \d+ moves and 5 pushes"))


def test_click_a_box_then_a_cell_and_click_to_walk(page: Page, studio: str) -> None:
    canvas = play(page, studio, ROOM)
    page.mouse.click(*middle(canvas, 2, 3))
    page.mouse.click(*middle(canvas, 3, 3))  # down needs a walk around the box first
    expect(page.locator("#pushes")).to_have_text("1")
    page.mouse.click(*middle(canvas, 5, 6))
    board = canvas.get_attribute("data-board") or ""
    assert board.split("\n")[5][6] == "@"
    assert board.split("\n")[3][3] == "$"


def test_swipes_walk_on_a_phone(browser: Browser, studio: str) -> None:
    phone = person(
        browser, studio, link(ROOM), viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    canvas = phone.locator("#play-board")
    touch = phone.context.new_cdp_session(phone)

    def swipe(row: int, column: int, right: float, down: float) -> None:
        x, y = middle(canvas, row, column)
        there = [{"x": x + right, "y": y + down}]
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchMove", there), ("touchEnd", [])):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    swipe(5, 5, -60, 0)
    expect(phone.locator("#moves")).to_have_text("1")
    shows(canvas, ROOM.replace("# @$ . #", "#@ $ . #"))
    # With a box in hand a swipe elsewhere is still a swipe, even where it ends on a cell the box could go to.
    phone.touchscreen.tap(*middle(canvas, 2, 3))
    swipe(1, 4, 0, 60)
    expect(phone.locator("#moves")).to_have_text("2")
    expect(phone.locator("#pushes")).to_have_text("0")
    phone.context.close()


def test_hint_and_solution(page: Page, studio: str) -> None:
    canvas = play(page, studio, "######\n#@$ .#\n######")
    page.click("#hint")
    expect(page.locator("#play-message")).to_have_text("Hint: push the box in row 2, column 3 right.")
    shows(canvas, "######\n#@$ .#\n######")
    page.click("#solution summary")
    page.click("#solution-on")
    shows(canvas, "######\n# @$.#\n######")
    page.click("#solution-back")
    page.click("#solution-play")
    expect(page.locator("#play-message")).to_have_text("Solved in 2 moves and 2 pushes!")
    expect(page.locator("#best")).to_have_text("–")  # looking it up is no feat


def test_the_solution_is_shown_and_not_ones_own_moves_again(page: Page, studio: str) -> None:
    play(page, studio, ROOM)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("z")
    page.click("#solution summary")
    page.locator("#speed").fill("10")
    page.click("#solution-play")
    expect(page.locator("#play-message")).to_have_text(re.compile("^Solved in .* and 5 pushes!"))


def test_a_quiet_warning_when_it_has_become_unsolvable(page: Page, studio: str) -> None:
    play(page, studio, "######\n#    #\n# $ .#\n#@   #\n######")
    page.click("#shade")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#play-message")).to_contain_text("cannot be solved any more")
    page.keyboard.press("z")
    expect(page.locator("#play-message")).not_to_contain_text("cannot")


def test_a_shared_link_opens_the_same_board(browser: Browser, studio: str) -> None:
    page = person(browser, studio, link(ROOM), permissions=["clipboard-read", "clipboard-write"])
    shows(page.locator("#play-board"), ROOM)
    page.click("#play-share")
    expect(page.locator("#toast")).to_contain_text("The link is copied")
    address = page.evaluate("() => navigator.clipboard.readText()")
    assert address.startswith(studio)
    other = person(browser, address, path="")
    shows(other.locator("#play-board"), ROOM)
    page.context.close()
    other.context.close()


def test_the_rules_in_the_browser_are_the_rules(page: Page) -> None:
    level = known_model().generate(1, seed=11)[0]
    solution = solve(level, "pushes").solution
    won, back = page.evaluate(
        """async ([text, solution]) => {
            const { Game } = await import("./game.js"), { parse, format } = await import("./board.js");
            const game = new Game(parse(text));
            for (const letter of solution) if (!game.step(letter)) return [false, ""];
            const won = game.solved && game.played === solution;
            while (game.undo());
            return [won, format(game.board())];
        }""",
        [str(level), solution],
    )
    assert won
    assert back == str(level)


def test_routes_are_legal_and_as_short_as_can_be(page: Page) -> None:
    level = Level.parse("#######\n#  @  #\n# #$# #\n#     #\n#  #  #\n#######")
    routes = page.evaluate(
        """async (text) => {
            const { Game } = await import("./game.js"), { parse } = await import("./board.js");
            const game = new Game(parse(text));
            return Array.from(game.routes(17), ([cell, push]) => [cell, game.route(17, push)]);
        }""",
        str(level),
    )
    assert routes  # one box, so each route solves the board whose only goal is its end
    for cell, route in routes:
        tokens = level.tokens.copy()
        tokens[divmod(cell, 7)] = 4 if tokens[divmod(cell, 7)] == 1 else 6
        assert solves(tokens, route)
        assert sum(map(str.isupper, route)) == solve(tokens, "pushes").pushes


def test_a_walk_that_is_hurried_or_clicked_twice_counts_all_the_same(browser: Browser, studio: str) -> None:
    corridor = "########\n#@$   .#\n########"
    page = person(browser, studio, link(corridor), reduced_motion="no-preference")
    canvas = page.locator("#play-board")
    page.mouse.click(*middle(canvas, 1, 2))
    page.mouse.dblclick(*middle(canvas, 1, 6))
    expect(page.locator("#play-message")).to_have_text("Solved in 4 moves and 4 pushes, your best so far!")
    page.goto(studio + link(ROOM))
    shows(canvas, ROOM)
    page.mouse.dblclick(*middle(canvas, 5, 6))
    expect(page.locator("#moves")).to_have_text("7")
    page.mouse.click(*middle(canvas, 1, 1))
    page.keyboard.press("h")
    expect(page.locator("#play-message")).to_contain_text("Hint: push the box")
    expect(page.locator("#moves")).to_have_text("16")
    page.mouse.click(*middle(canvas, 5, 6))
    page.keyboard.press("Shift+Z")
    expect(page.locator("#moves")).to_have_text("24")
    page.reload()
    expect(page.locator("#moves")).to_have_text("24")
    # Sent there with a double click, a box is not in hand again: the next click walks.
    page.keyboard.press("r")
    page.mouse.click(*middle(canvas, 2, 3))
    page.mouse.dblclick(*middle(canvas, 2, 4))
    expect(page.locator("#pushes")).to_have_text("1")
    page.mouse.click(*middle(canvas, 3, 4))
    expect(page.locator("#moves")).to_have_text("3")
    expect(page.locator("#pushes")).to_have_text("1")
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()


def test_the_solution_is_never_ones_own_and_costs_no_game(page: Page, studio: str) -> None:
    play(page, studio, "#######\n#@$  .#\n#######")
    message, moves = page.locator("#play-message"), page.locator("#moves")
    page.click("#solution summary")
    page.locator("#speed").fill("10")
    for _ in range(2):  # starting over makes it no less looked up
        page.click("#solution-play")
        expect(message).to_have_text("Solved in 3 moves and 3 pushes!")
        page.keyboard.press("r")
        expect(moves).to_have_text("0")
    for _ in range(3):
        page.keyboard.press("y")
    expect(moves).to_have_text("0")
    expect(page.locator("#best")).to_have_text("–")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(message).to_have_text("Solved in 3 moves and 3 pushes, your best so far!")
    # One's best is shown, and then the game goes on where it was, whatever happened in between.
    page.keyboard.press("r")
    page.keyboard.press("ArrowRight")
    page.click("#solution-best")
    expect(message).to_have_text("Solved in 3 moves and 3 pushes!")
    page.reload()
    page.click("#solution summary")
    page.click("#solution-best:text('My game')")
    shows(page.locator("#play-board"), "#######\n# @$ .#\n#######")
    expect(moves).to_have_text("1")
    # A button that has no more to do keeps the focus.
    page.focus("#undo")
    page.keyboard.press("Enter")
    expect(page.locator("#undo")).to_be_disabled()
    expect(page.locator("#undo")).to_be_focused()


def test_a_game_waits_for_those_who_come_back(page: Page, studio: str) -> None:
    canvas = play(page, studio, ROOM)
    page.keyboard.press("ArrowDown")
    page.goto(studio + link(ROOM))
    page.reload()
    expect(page.locator("html[data-ready]")).to_be_attached()
    expect(page.locator("#moves")).to_have_text("1")
    # What another window plays is its own affair; a new window begins with what was played last.
    other = page.context.new_page()
    other.goto(studio + link("#####\n#@$.#\n#####"))
    other.keyboard.press("ArrowRight")
    expect(other.locator("#play-message")).to_have_text("Solved in 1 move and 1 push, your best so far!")
    third = page.context.new_page()
    third.goto(studio + "/")
    expect(third.locator("#play-board")).to_have_attribute("data-board", "#####\n# @*#\n#####")
    page.reload()
    shows(canvas, ROOM.replace("# @$ . #\n#      #", "#  $ . #\n# @    #"))


def test_what_is_wrong_with_a_board_is_said_and_stays_said(page: Page, studio: str) -> None:
    message = page.locator("#play-message")
    for board in ("######\n#@$?.#\n######", "######\n#@$..#\n######"):
        page.goto(studio + link(board))
        expect(message).to_contain_text("This board cannot be played: ")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#moves")).to_have_text("0")
        expect(message).to_contain_text("This board cannot be played: ")
    page.goto(studio + link("######\n#$ @.#\n######"))
    expect(message).to_have_text("This board cannot be solved.")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#moves")).to_have_text("1")
    page.click("#hint")
    expect(message).to_have_text("This board cannot be solved.")
    page.goto(studio + link("#####\n#@ *#\n#####"))
    page.click("#hint")
    expect(message).to_have_text("It is solved.")


def test_a_box_in_hand_is_put_down_when_the_solution_is_played(page: Page, studio: str) -> None:
    # The far box can be reached only while no box stands in the door.
    two_rooms = "##########\n#   #    #\n#@$    $.#\n#   # .  #\n#   ######\n##########"
    canvas = play(page, studio, two_rooms)
    page.click("#solution summary")
    page.click("#solution-on")
    page.click("#solution-on")  # the near box is in the door now
    expect(page.locator("#pushes")).to_have_text("2")
    page.click("#solution-back")
    page.click("#solution-back")
    page.mouse.click(*middle(canvas, 2, 7))
    page.locator("#speed").fill("1")
    page.click("#solution-play")
    page.click("#solution-on")
    expect(page.locator("#pushes")).to_have_text("2")
    pushes = page.locator("#pushes").inner_text()
    page.mouse.click(*middle(canvas, 2, 6))  # where the far box could have gone at the beginning
    expect(page.locator("#pushes")).to_have_text(pushes)
    nowhere = page.evaluate(
        """async (text) => {
            const { Game } = await import("./game.js"), { parse } = await import("./board.js");
            return new Game(parse(text)).walkTo(27);
        }""",
        two_rooms.replace("#@$    $.#", "#@  $  $.#"),
    )
    assert nowhere is None


def test_an_answer_for_another_position_is_dropped(browser: Browser, studio: str) -> None:
    page = person(browser, studio, link(ROOM), reduced_motion="no-preference")
    canvas = page.locator("#play-board")
    page.click("#solution summary")
    page.uncheck("#warn")
    for asked in ("#solution-play", "#hint"):
        with unanswered(page, "solve") as questions:
            page.click(asked)
            expect(page.locator("#play-message")).to_have_text("Thinking…")
            with questions.given_up():
                page.mouse.click(*middle(canvas, 5, 6))  # a walk of many steps
        expect(page.locator("#moves")).to_have_text("7")
        expect(page.locator("#play-message")).to_have_text("")
        expect(page.locator("#pushes")).to_have_text("0")
        page.keyboard.press("r")
    page.context.close()


def test_two_fingers_are_no_move(browser: Browser, studio: str) -> None:
    phone = person(
        browser, studio, link(ROOM), viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    pinch(phone, phone.locator("#play-board"), (5, 5), (3, 3))
    shows(phone.locator("#play-board"), ROOM)
    expect(phone.locator("#moves")).to_have_text("0")
    phone.context.close()


def test_help_that_was_chosen_stays_and_edit_takes_the_board_with_its_title(page: Page, studio: str) -> None:
    play(page, studio, ROOM)
    page.check("#shade")
    page.uncheck("#warn")
    page.reload()
    expect(page.locator("#shade")).to_be_checked()
    expect(page.locator("#warn")).not_to_be_checked()
    page.click("#play-keep")
    page.click("[data-tab=collection]")
    page.fill("#kept-boards input", "The room")
    page.click("#kept-boards button:text('Play')")
    page.keyboard.press("ArrowDown")
    page.click("[data-tab=collection]")
    page.click("#kept-boards button:text('Remove')")
    page.click("[data-tab=play]")
    page.click("#play-edit")
    shows(page.locator("#draw-board"), ROOM)
    page.click("#draw-keep")
    page.click("[data-tab=collection]")
    expect(page.locator("#kept-boards input")).to_have_value("The room")
