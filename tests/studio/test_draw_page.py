"""Draw, in a real browser, and boards coming in and going out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from maskoban.boards import Level, read
from maskoban.solving import rate
from tests.studio.browsing import BLOCKED, ROOM, middle, paste, person, pinch, shows, unanswered
from tests.studio.conftest import Halted
from tests.studio.serving import KNOWN


def test_complete_keeps_the_drawn_cells(page: Page) -> None:
    half = KNOWN.strip().replace("# @$ .   #", "# @ $.  *#")
    paste(page, half)
    page.click("#complete")
    expect(page.locator("#suggestions .verdict b")).to_have_count(6)
    suggestions = page.locator("#suggestions canvas")
    for number in range(6):
        board = suggestions.nth(number).get_attribute("data-board") or ""
        assert all(given in (drawn, "?") for given, drawn in zip(half, board, strict=True))
    chosen = suggestions.nth(2).get_attribute("data-board")
    page.locator("#suggestions button").nth(2).click()
    expect(page.locator("#draw-board")).to_have_attribute("data-board", chosen or "")
    expect(page.locator("#draw-verdict b")).to_have_text("solved, easy")


def test_paint_with_the_mouse_and_with_keys(page: Page) -> None:
    paste(page, "#####\n#@$ #\n#####")
    canvas = page.locator("#draw-board")
    expect(page.locator("#draw-verdict")).to_contain_text("1 box but 0 goals")
    page.click("#palette [aria-label=goal]")
    page.mouse.click(*middle(canvas, 1, 3))
    expect(page.locator("#draw-verdict")).to_contain_text("solved, easy 1 push, effort 1")
    canvas.focus()
    for key in ["ArrowRight", "ArrowRight", "ArrowRight", "1", " "]:
        page.keyboard.press(key)
    shows(canvas, "#####\n#@$##\n#####")
    page.click("#draw-undo")
    shows(canvas, "#####\n#@$.#\n#####")
    page.fill("[name=width]", "6")
    page.click("#resize button")
    shows(canvas, "######\n#@$.?#\n######")


def test_repair_shows_the_wall_and_takes_it_away(page: Page) -> None:
    paste(page, BLOCKED)
    expect(page.locator("#draw-verdict b")).to_have_text("unsolvable")
    page.click("#repair")
    expect(page.locator("#draw-verdict")).to_have_text("Without the outlined wall it can be solved.")
    page.click("#cure")
    mended = BLOCKED.replace("$#.", "$ .")
    shows(page.locator("#draw-board"), mended)
    expect(page.locator("#draw-verdict b")).to_have_text(f"solved, {rate(Level.parse(mended)).difficulty}")


@pytest.mark.parametrize("kind", ["xsb", "sok"])
def test_export_and_import_round_trip(page: Page, tmp_path: Path, kind: str) -> None:
    paste(page, ROOM)
    with page.expect_download() as download:
        page.select_option("#export select", kind)
        page.click("#export button:text('Export')")
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert [str(level) for level in read(file)] == [ROOM]
    page.click("#clear")
    page.click("#import")
    page.set_input_files("#import-file", file)
    shows(page.locator("#draw-board"), ROOM)


def test_export_pictures(page: Page, tmp_path: Path) -> None:
    paste(page, ROOM)
    for kind, magic in (("png", b"\x89PNG"), ("gif", b"GIF89a")):
        with page.expect_download() as download:
            page.select_option("#export select", kind)
            page.click("#export button:text('Export')")
        download.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(magic)


def test_nonsense_is_refused_with_a_sentence(page: Page) -> None:
    page.click("[data-tab=draw]")
    page.click("#import")
    page.fill("#import-text", "no board at all")
    page.click("#import-go")
    message = page.locator("#import-message")
    expect(message).to_contain_text("no level in it")
    expect(message).not_to_contain_text("content")
    page.fill("#import-text", "Title: A\n\n####\n#@x#\n####")
    page.click("#import-go")
    expect(message).to_have_text(re.compile("^line 4, column 3: "))
    assert all("422" in each for each in page.complaints)  # type: ignore[attr-defined]  # the browser's own remark
    page.complaints.clear()  # type: ignore[attr-defined]


def test_boards_can_be_dropped_and_pasted_anywhere(page: Page) -> None:
    for kind, board in (("drop", ROOM), ("paste", BLOCKED)):
        page.evaluate(
            """([kind, board]) => {
                const data = new DataTransfer();
                if (kind === "drop") data.items.add(new File([board], "board.xsb"));
                else data.setData("text/plain", board);
                const event = kind === "drop"
                    ? new DragEvent("drop", { dataTransfer: data, bubbles: true })
                    : new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
                document.body.dispatchEvent(event);
            }""",
            [kind, board],
        )
        shows(page.locator("#draw-board"), board)


def test_what_was_painted_comes_back_be_it_nothing_but_floor(page: Page) -> None:
    page.click("[data-tab=draw]")
    page.fill("[name=height]", "3")
    page.fill("[name=width]", "3")
    page.click("#resize button")
    canvas = page.locator("#draw-board")
    page.click("#palette [aria-label=floor]")
    for row in range(3):
        page.mouse.move(*middle(canvas, row, 0))
        page.mouse.down()
        page.mouse.move(*middle(canvas, row, 2))
        page.mouse.up()
    floor = "   \n   \n   "
    expect(page.locator("#draw-verdict b")).to_have_text("malformed")
    page.reload()
    expect(canvas).to_have_attribute("data-board", floor)
    page.click("#palette [aria-label=box]")
    page.mouse.click(*middle(canvas, 1, 1))
    expect(canvas).to_have_attribute("data-board", "   \n $ \n   ")
    page.click("#draw-undo")
    expect(canvas).to_have_attribute("data-board", floor)
    page.click("#draw-play")
    expect(page.locator("#play-message")).to_contain_text("This board cannot be played")
    # Whatever the storage holds, the page opens.
    page.evaluate(
        """() => {
            for (const each of [localStorage, sessionStorage])
                for (const key of ["draw", "play"]) each.setItem(`maskoban.${key}`, '"no board"');
        }"""
    )
    page.reload()
    expect(page.locator("html[data-ready]")).to_be_attached()


def test_strokes_are_whole_and_undone_as_a_whole(page: Page) -> None:
    board = "########\n#@ $ . #\n#      #\n########"
    paste(page, board)
    canvas = page.locator("#draw-board")
    page.click("#palette [aria-label=goal]")
    page.mouse.move(*middle(canvas, 2, 1))
    page.mouse.down()
    page.mouse.move(*middle(canvas, 2, 6))  # at once, with nothing heard in between
    page.mouse.up()
    striped = board.replace("#      #", "#......#")
    shows(canvas, striped)
    page.mouse.click(*middle(canvas, 2, 3))  # a goal already: nothing to do, and nothing to undo
    page.keyboard.press("Control+z")
    shows(canvas, board)
    # The player goes where it is dragged, and what it is dragged over stays.
    page.click("#palette [aria-label=player]")
    page.mouse.move(*middle(canvas, 1, 1))
    page.mouse.down()
    page.mouse.move(*middle(canvas, 1, 3))
    page.mouse.move(*middle(canvas, 1, 5))
    page.mouse.move(*middle(canvas, 1, 6))
    page.mouse.up()
    shows(canvas, board.replace("#@ $ . #", "#  $ .@#"))
    page.focus("#palette [aria-label=player]")
    page.keyboard.press("Control+z")
    shows(canvas, board)
    # At the end of a row the cursor stays in it.
    canvas.focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect(canvas).to_have_attribute("aria-label", "row 2, column 8, wall")


def test_what_comes_in_costs_no_drawing_and_brings_its_title(page: Page) -> None:
    paste(page, KNOWN)
    page.click("#complete")
    expect(page.locator("#suggestions canvas")).to_have_count(6)
    page.focus("#complete")
    expect(page.locator("#suggestions .verdict b")).to_have_count(6)
    expect(page.locator("#complete")).to_be_focused()
    page.click("#import")
    page.fill("#import-text", f"{ROOM}\nTitle: My room\n")
    page.click("#import-go")
    shows(page.locator("#draw-board"), ROOM)
    expect(page.locator("#suggestions canvas")).to_have_count(0)
    page.click("#draw-keep")
    page.click("#draw-undo")
    shows(page.locator("#draw-board"), KNOWN)
    page.click("[data-tab=collection]")
    expect(page.locator("#kept-boards input")).to_have_value("My room")
    # One board imported here stays here, and the drawing is left alone.
    page.click("#import-here")
    page.fill("#import-text", BLOCKED)
    page.click("#import-go")
    expect(page.locator("#kept-boards canvas")).to_have_count(2)
    shows(page.locator("#draw-board"), KNOWN)


def test_the_verdict_is_that_of_the_board_shown(page: Page) -> None:
    paste(page, ROOM)
    expect(page.locator("#draw-verdict b")).to_have_text(re.compile("solved"))
    with unanswered(page, "rate") as questions:
        page.click("#clear")
        expect(page.locator("#draw-verdict")).to_have_text("Judging…")
        questions.asked()
    page.click("#draw-undo")
    expect(page.locator("#draw-verdict b")).to_have_text(re.compile("solved"))
    # A wall that would mend another board is of no use to this one.
    with unanswered(page, "repair") as questions:
        page.click("#repair")
        with questions.given_up():
            page.click("#clear")
    expect(page.locator("#cure")).to_be_hidden()


def test_the_answer_of_repair_is_not_talked_over(page: Page) -> None:
    with unanswered(page, "rate") as questions:
        paste(page, BLOCKED)
        expect(page.locator("#draw-verdict")).to_have_text("Judging…")
        with questions.given_up():
            page.click("#repair")
    expect(page.locator("#draw-verdict")).to_have_text("Without the outlined wall it can be solved.")


def test_two_fingers_paint_nothing(browser: Browser, studio: str) -> None:
    phone = person(
        browser, studio, "/#/draw", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    canvas = phone.locator("#draw-board")
    blank = canvas.get_attribute("data-board") or ""
    phone.click("#palette [aria-label=wall]")
    canvas.scroll_into_view_if_needed()
    pinch(phone, canvas, (2, 2), (6, 7))
    expect(canvas).to_have_attribute("data-board", blank)
    expect(phone.locator("#draw-undo")).to_be_disabled()
    phone.touchscreen.tap(*middle(canvas, 2, 2))
    assert (canvas.get_attribute("data-board") or "").split("\n")[2][2] == "#"
    phone.context.close()


def test_the_cursor_is_never_outside_the_board(page: Page) -> None:
    page.click("[data-tab=draw]")
    canvas = page.locator("#draw-board")
    page.fill("[name=height]", "20")
    page.click("#resize button")
    canvas.focus()
    for _ in range(14):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+z")
    page.keyboard.press("ArrowDown")
    expect(canvas).to_have_attribute("aria-label", "row 2, column 2, to be drawn")


def test_what_is_exported_carries_title_and_solution(page: Page, tmp_path: Path) -> None:
    page.click("[data-tab=draw]")
    page.click("#import")
    page.fill("#import-text", "#####\n#@$.#\n#####\nTitle: One push\nSolution:\nR\n")
    page.click("#import-go")
    expect(page.locator("#importing")).to_be_hidden()
    with page.expect_download() as download:
        page.select_option("#export select", "sok")
        page.click("#export button:text('Export')")
    download.value.save_as(tmp_path / "board.sok")
    (level,) = read(tmp_path / "board.sok")
    assert (level.title, level.solutions) == ("One push", ("R",))


def test_redo_erase_fill_rotate_and_mirror(page: Page) -> None:
    paste(page, "#####\n#@$ #\n#  .#\n#####")
    canvas = page.locator("#draw-board")
    page.click("#palette [aria-label=box]")
    page.mouse.click(*middle(canvas, 2, 3))  # a box painted on a goal stands on it
    shows(canvas, "#####\n#@$ #\n#  *#\n#####")
    page.mouse.click(*middle(canvas, 1, 2), button="right")
    erased = "#####\n#@  #\n#  *#\n#####"
    shows(canvas, erased)
    page.click("#draw-undo")
    page.click("#draw-undo")
    shows(canvas, "#####\n#@$ #\n#  .#\n#####")
    page.keyboard.press("Control+y")
    page.click("#draw-redo")
    shows(canvas, erased)
    expect(page.locator("#draw-redo")).to_be_disabled()
    page.click("#palette [aria-label='to be drawn']")
    page.click("#fill")
    page.mouse.click(*middle(canvas, 1, 3))  # all floor that hangs together
    shows(canvas, "#####\n#@??#\n#??*#\n#####")
    page.click("#rotate")
    shows(canvas, "####\n#?@#\n#??#\n#*?#\n####")
    page.click("#mirror")
    shows(canvas, "####\n#@?#\n#??#\n#?*#\n####")
    expect(page.locator("#fill")).to_have_attribute("aria-pressed", "false")
    page.mouse.click(*middle(canvas, 0, 0))  # one cell again
    shows(canvas, "?###\n#@?#\n#??#\n#?*#\n####")


@pytest.mark.parametrize("small", ["######\n#@? ?#\n#$?? #\n#?.? #\n######", "??\n@?", "#?#\n?@?"])
def test_a_smaller_board_is_completed_within_walls_and_cut_out_again(page: Page, small: str) -> None:
    paste(page, small)
    page.click("#complete")
    expect(page.locator("#suggestions .verdict b")).to_have_count(6)
    for canvas in page.locator("#suggestions canvas").all():
        board = canvas.get_attribute("data-board") or ""
        assert [len(row) for row in board.split("\n")] == [len(row) for row in small.split("\n")]
        assert "?" not in board
        assert all(given in (drawn, "?") for given, drawn in zip(small, board, strict=True))


def test_a_board_that_is_too_large_to_complete_says_so(page: Page) -> None:
    page.click("[data-tab=draw]")
    page.fill("[name=width]", "30")
    page.click("#resize button")
    page.click("#complete")
    expect(page.locator("#draw-verdict")).to_have_text(
        re.compile(r"^The model completes boards of up to \d+ rows and \d+ columns with a wall all around\.$")
    )


@pytest.mark.parametrize(("width", "height"), [(390, 664), (1440, 900)])
def test_completions_appear_where_one_looks_and_can_be_stopped(
    browser: Browser, halted: Halted, width: int, height: int
) -> None:
    page = person(browser, halted.address, "/#/draw", viewport={"width": width, "height": height})
    page.click("#complete")
    progress = page.locator("#complete-progress")
    expect(progress).to_have_js_property("value", 20 / 64)
    first = page.locator("#suggestions canvas").first.bounding_box()
    assert first is not None
    assert 0 <= first["y"] < first["y"] + first["height"] <= height
    expect(page.locator("#complete-stop")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#completions")).to_be_hidden()  # half-drawn boards are no completions
    expect(page.locator("#complete")).to_be_focused()
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()
