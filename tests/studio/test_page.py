"""The page in a real browser, as people use it."""

from __future__ import annotations

import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from maskoban.boards import Level, read, write
from maskoban.diffusion.model import Model
from maskoban.pictures.surroundings import looks
from maskoban.solving import solve, solves
from maskoban.studio.app import create_app
from tests.studio.serving import KNOWN, Known, known_model, serving
from tests.studio.test_command import command

CHROMIUM = which("chromium")
expect.set_options(timeout=20_000)  # a busy machine is no reason to fail
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="needs chromium (Debian's package)"
)

ROOM = """
########
#      #
# @$ . #
#      #
# $  . #
#      #
########
""".strip()

BLOCKED = "#######\n#@$#.##\n#######"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None, "continuous integration must have chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def person(browser: Browser, studio: str, path: str = "/", **options: Any) -> Page:
    """Somebody with a browser of their own, who minds every error in the console."""
    context = browser.new_context(reduced_motion="reduce", **options)
    context.set_default_timeout(20_000)
    page = context.new_page()
    page.complaints = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.complaints.append(str(error)))  # type: ignore[attr-defined]
    page.on(
        "console",
        lambda said: page.complaints.append(said.text) if said.type == "error" else None,  # type: ignore[attr-defined]
    )
    page.goto(studio + path)
    expect(page.locator("html[data-ready]")).to_be_attached()
    return page


@pytest.fixture
def page(browser: Browser, studio: str) -> Iterator[Page]:
    page = person(browser, studio)
    yield page
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()


def link(board: str) -> str:
    """The address a shared board has."""
    rows = board.replace(" ", "-").replace("\n", "|")
    return "/#board=" + urlsafe_b64encode(rows.encode()).decode().rstrip("=")


def play(page: Page, studio: str, board: str) -> Locator:
    page.goto(studio + link(board))
    page.reload()
    expect(page.locator("html[data-ready]")).to_be_attached()
    shows(page.locator("#play-board"), board)
    return page.locator("#play-board")


def paste(page: Page, board: str) -> None:
    page.click("[data-tab=draw]")
    page.click("#import")
    page.fill("#import-text", board)
    page.click("#import-go")
    expect(page.locator("#importing")).to_be_hidden()
    shows(page.locator("#draw-board"), board)


def shows(canvas: Locator, board: str) -> None:
    expect(canvas).to_have_attribute("data-board", str(Level.parse(board)))


def middle(canvas: Locator, row: int, column: int) -> tuple[float, float]:
    """Where on the screen the middle of a cell is."""
    box = canvas.bounding_box()
    board = (canvas.get_attribute("data-board") or "").split("\n")
    assert box is not None
    return (
        box["x"] + (column + 0.5) * box["width"] / len(board[0]),
        box["y"] + (row + 0.5) * box["height"] / len(board),
    )


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
        page.click("#generate")
        expect(page.locator("#watch-at")).to_have_text(re.compile(r"cell ([1-9]|[12]\d) of"))
        page.click("#watch-stop")
        expect(page.locator("#generate")).to_have_text("Generate")
        assert page.complaints == []  # type: ignore[attr-defined]
        page.context.close()


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
    x, y = middle(canvas, 5, 5)
    touch = phone.context.new_cdp_session(phone)
    for kind, place in (("touchStart", x), ("touchMove", x - 60), ("touchEnd", None)):
        points = [] if place is None else [{"x": place, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    expect(phone.locator("#moves")).to_have_text("1")
    shows(canvas, ROOM.replace("# @$ . #", "#@ $ . #"))
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
    expect(page.locator("#draw-verdict")).to_contain_text("solved, easy1 push, effort 1")
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
    shows(page.locator("#draw-board"), BLOCKED.replace("$#.", "$ ."))
    expect(page.locator("#draw-verdict b")).to_have_text("solved, easy")


@pytest.mark.parametrize("kind", ["xsb", "sok"])
def test_export_and_import_round_trip(page: Page, tmp_path: Path, kind: str) -> None:
    paste(page, ROOM)
    with page.expect_download() as download:
        page.select_option("#export", kind)
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
            page.select_option("#export", kind)
        download.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(magic)


def test_import_of_an_archive_fills_the_collection(page: Page, tmp_path: Path) -> None:
    write(tmp_path / "two.npz", [Level.parse(ROOM), Level.parse(ROOM[::-1])])
    page.click("[data-tab=collection]")
    page.click("#import-here")
    page.set_input_files("#import-file", tmp_path / "two.npz")
    expect(page.locator("#kept")).to_have_text("2")


def test_nonsense_is_refused_with_a_sentence(page: Page) -> None:
    page.click("[data-tab=draw]")
    page.click("#import")
    page.fill("#import-text", "no board at all")
    page.click("#import-go")
    expect(page.locator("#import-message")).to_contain_text("no level in it")
    (complaint,) = page.complaints  # type: ignore[attr-defined]
    assert "422" in complaint  # the browser's own remark on the refusal
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


def test_a_reload_keeps_the_collection_and_the_game(page: Page, studio: str, tmp_path: Path) -> None:
    canvas = play(page, studio, ROOM)
    page.click("#play-keep")
    page.keyboard.press("ArrowDown")
    moved = canvas.get_attribute("data-board")
    page.click("[data-tab=collection]")
    page.locator("#kept-boards input").fill("My room")
    page.locator("#kept-boards input").press("Tab")
    page.reload()
    expect(page.locator("#kept-boards input")).to_have_value("My room")
    with page.expect_download() as download:
        page.click("#export-all")
    download.value.save_as(tmp_path / "all.sok")
    (level,) = read(tmp_path / "all.sok")
    assert (level.title, str(level)) == ("My room", ROOM)
    page.click("[data-tab=play]")
    expect(canvas).to_have_attribute("data-board", moved or "")
    page.click("[data-tab=collection]")
    page.click("#kept-boards button:text('Remove')")
    expect(page.locator("#kept-boards")).to_contain_text("Nothing kept yet")


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


def test_the_rules_in_the_browser_are_the_rules(page: Page) -> None:
    level = known_model().generate(1, seed=11)[0]
    solution = solve(level, "pushes").solution
    won, back = page.evaluate(
        """async ([text, solution]) => {
            const { Game } = await import("/game.js"), { parse, format } = await import("/board.js");
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
            const { Game } = await import("/game.js"), { parse } = await import("/board.js");
            return [...new Game(parse(text)).routes(17)];
        }""",
        str(level),
    )
    assert routes  # one box, so each route solves the board whose only goal is its end
    for cell, route in routes:
        tokens = level.tokens.copy()
        tokens[divmod(cell, 7)] = 4 if tokens[divmod(cell, 7)] == 1 else 6
        assert solves(tokens, route)
        assert sum(map(str.isupper, route)) == solve(tokens, "pushes").pushes


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
