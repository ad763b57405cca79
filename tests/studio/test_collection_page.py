"""Collection, in a real browser: boards and solutions that are kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Download, Page, expect

from maskoban.boards import Level, read, write
from maskoban.solving import solve, solves
from tests.site.serving import FOLDER
from tests.studio.browsing import BLOCKED, ROOM, link, paste, person, play, shows
from tests.studio.serving import eventually


def test_an_archive_fills_the_collection_or_is_refused_in_one_sentence(
    page: Page, studio: str, tmp_path: Path
) -> None:
    write(tmp_path / "two.npz", [Level.parse(ROOM), Level.parse(ROOM[::-1])])
    page.click("[data-tab=collection]")
    page.click("#import-here")
    page.set_input_files("#import-file", tmp_path / "two.npz")
    if studio.endswith(FOLDER):
        expect(page.locator("#import-message")).to_contain_text("which only maskoban itself reads")
    else:
        expect(page.locator("#kept")).to_have_text("2")


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


def test_many_boards_are_kept_at_once_and_one_is_taken_out_alone(page: Page, tmp_path: Path) -> None:
    corridors = [Level.parse(f"{'#' * n}\n#@$.{' ' * (n - 5)}#\n{'#' * n}") for n in range(5, 64)]
    write(tmp_path / "many.sok", [*corridors, *(Level(level.tokens.T) for level in corridors)])
    page.evaluate(
        """() => {
            window.writes = [];
            const set = Storage.prototype.setItem;
            Storage.prototype.setItem = function (key, value) {
                if (key === "maskoban.collection") window.writes.push(JSON.parse(value).length);
                return set.call(this, key, value);
            };
        }"""
    )
    page.click("[data-tab=collection]")
    page.click("#import-here")
    page.set_input_files("#import-file", tmp_path / "many.sok")
    boards = page.locator("#kept-boards canvas")
    expect(page.locator("#kept")).to_have_text("118")
    assert set(page.evaluate("() => writes")) == {118}
    expect(boards).to_have_count(24)
    expect(boards.first).to_have_attribute("aria-label", re.compile("Board 1. Board of 3 by 5"))
    # A tall board gets no taller card.
    for _ in range(4):
        page.click("#page-on")
    expect(page.locator("#page-at")).to_have_text("Page 5 of 5")
    expect(page.locator("#page-on")).to_be_disabled()
    tall = boards.last
    tall.scroll_into_view_if_needed()
    box = tall.bounding_box()
    assert box is not None
    assert box["height"] == pytest.approx(box["width"], abs=1)
    # The one is gone, all others stay where they are, and it can be had back.
    second = boards.nth(1).element_handle()
    page.locator("#kept-boards button:text('Remove')").first.click()
    expect(boards).to_have_count(21)
    expect(page.locator("#kept")).to_have_text("117")
    assert second.evaluate("(canvas) => canvas.isConnected")
    expect(page.locator("#kept-boards button:text('Remove')").first).to_be_focused()
    page.click("#toast button:text('Undo')")
    expect(page.locator("#kept-boards input").first).to_have_value("Board 97")


def test_titles_are_given_once_and_renaming_is_in_nobodys_way(page: Page, studio: str) -> None:
    for board in (ROOM, BLOCKED):
        paste(page, board)
        page.click("#draw-keep")
    page.click("[data-tab=collection]")
    page.locator("#kept-boards button:text('Remove')").first.click()
    paste(page, ROOM)
    page.click("#draw-keep")
    page.click("[data-tab=collection]")
    titles = page.locator("#kept-boards input")
    assert sorted(title.input_value() for title in titles.all()) == ["Board 1", "Board 2"]
    titles.first.fill("Renamed")
    page.keyboard.press("Tab")
    expect(page.locator("#kept-boards button:text('Play')").first).to_be_focused()
    titles.nth(1).fill("Renamed too")
    page.locator("#kept-boards button:text('Play')").nth(1).click()
    shows(page.locator("#play-board"), ROOM)
    # Where nothing more fits, nobody is told otherwise.
    full = """() => {
        for (let size = 1 << 22; size; size >>= 1)
            for (let n = 0; n < 4; n++)
                try { localStorage.setItem(Math.random(), "x".repeat(size)); } catch { break; }
    }"""
    page.goto(studio + link("#####\n#@$.#\n#####"))
    shows(page.locator("#play-board"), "#####\n#@$.#\n#####")
    page.evaluate(full)
    page.click("#play-keep")
    expect(page.locator("#toast")).to_contain_text("is full")
    page.locator("#toast").evaluate("(toast) => toast.replaceChildren()")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#play-message")).to_have_text("Solved in 1 move and 1 push!")
    expect(page.locator("#toast")).to_contain_text("is full")
    page.click("[data-tab=collection]")
    titles.first.fill("A name that is longer than the one before" * 4)
    page.locator("#toast").evaluate("(toast) => toast.replaceChildren()")
    page.keyboard.press("Tab")
    expect(page.locator("#toast")).to_contain_text("is full")


def test_solutions_are_told_at_once_and_travel_with_the_boards(
    browser: Browser, page: Page, studio: str, tmp_path: Path
) -> None:
    play(page, studio, "######\n#@$ .#\n######")
    page.click("#play-keep")
    page.click("[data-tab=collection]")
    expect(page.locator("#kept-boards")).to_contain_text("not solved by you yet")
    page.go_back()
    expect(page.locator("#play")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.click("[data-tab=collection]")
    expect(page.locator("#kept-boards")).to_contain_text("solved by you in 2 pushes")
    with page.expect_download() as download:
        page.click("#export-all")
    download.value.save_as(tmp_path / "all.sok")
    other = person(browser, studio, "/#/collection")
    other.click("#import-here")
    other.set_input_files("#import-file", tmp_path / "all.sok")
    expect(other.locator("#kept-boards")).to_contain_text("solved by you in 2 pushes")
    other.context.close()


RAGGED = """
####
# .#
#  ###
#*@  #
#  $ #
#  ###
####
""".strip()


def test_a_board_is_known_again_however_its_rows_were_written(page: Page, tmp_path: Path) -> None:
    page.click("[data-tab=collection]")
    page.click("#import-here")
    page.fill(
        "#import-text",
        f"{RAGGED}\nTitle: First\nAuthor: Her\nComment: Mind the gap.\n\n{ROOM}\nTitle: Second\n",
    )
    page.click("#import-go")
    expect(page.locator("#kept-boards canvas")).to_have_count(2)
    page.click("#kept-boards button:text('Play') >> nth=0")
    for letter in solve(Level.parse(RAGGED)).solution:
        page.keyboard.press({"l": "a", "u": "w", "r": "d", "d": "s"}[letter.lower()])
    expect(page.locator("#play-message")).to_contain_text("Solved in")
    page.click("#play-keep")
    expect(page.locator("#toast")).to_have_text("It is in your collection already.")
    page.click("[data-tab=collection]")
    expect(page.locator("#kept-boards .card").first).to_contain_text("solved by you in")
    with page.expect_download() as download:
        page.click("#export-all")
    download.value.save_as(tmp_path / "all.sok")
    first, second = read(tmp_path / "all.sok")
    assert (str(first), first.title, first.author) == (RAGGED, "First", "Her")
    assert "Mind the gap." in first.comment
    assert solves(first, first.solutions[0])
    assert second.title == "Second"


def test_what_went_in_comes_out_again_however_much_it_is(page: Page, tmp_path: Path) -> None:
    rows = ["#" * 60, "#@$." + " " * 55 + "#", *["#" + " " * 58 + "#"] * 57, "#" * 60]
    # A wall across the hall, and a last row that is shorter each time.
    across = ["\n".join([*rows[:i], "#" * 60, *rows[i + 1 :]]) for i in range(3, 43)]
    boards = sorted(board[:-short] for board in across for short in range(1, 11))
    page.evaluate(
        """async (boards) => {
            const { collection } = await import("./store.js");
            collection.add(boards.map((board, i) => ({ board, title: `${i} ` + "W".repeat(1500) })));
        }""",
        boards,
    )
    page.click("[data-tab=collection]")
    downloads: list[Download] = []
    page.on("download", lambda download: downloads.append(download))
    with page.expect_download(lambda download: download.suggested_filename == "collection-4.sok"):
        page.click("#export-all")
    assert len(downloads) == 4
    for download in downloads:
        download.save_as(tmp_path / download.suggested_filename)
    assert sorted(str(level) for level in read(tmp_path)) == boards
    # And all the files at once go in again.
    page.evaluate("() => localStorage.clear()")
    page.reload()
    page.click("#import-here")
    page.set_input_files("#import-file", sorted(tmp_path.glob("*.sok")))
    expect(page.locator("#kept")).to_have_text(str(len(boards)))


def test_one_bad_file_among_others_is_named_and_costs_them_nothing(page: Page, tmp_path: Path) -> None:
    for name, board in (("room.xsb", ROOM), ("nonsense.txt", "hello"), ("blocked.xsb", BLOCKED)):
        (tmp_path / name).write_text(board)
    page.click("[data-tab=draw]")
    page.click("#import")
    page.set_input_files("#import-file", sorted(tmp_path.iterdir()))
    expect(page.locator("#toast")).to_contain_text(
        "2 of 2 boards were new and are in the collection. nonsense.txt: no level"
    )
    expect(page.locator("#kept-boards canvas")).to_have_count(2)
    # Something that cannot be read at all, as a folder that is dropped.
    page.evaluate(
        """(board) => {
            const data = new DataTransfer(), folder = new File([], "folder");
            folder.arrayBuffer = () => Promise.reject(new DOMException("gone", "NotFoundError"));
            for (const file of [new File([board], "board.xsb"), folder]) data.items.add(file);
            const files = [data.files[0], folder];
            const event = new DragEvent("drop", { dataTransfer: data, bubbles: true });
            Object.defineProperty(event, "dataTransfer", { value: { files, types: ["Files"] } });
            document.body.dispatchEvent(event);
        }""",
        RAGGED,
    )
    expect(page.locator("#kept-boards canvas")).to_have_count(3)
    expect(page.locator("#toast")).to_contain_text("folder cannot be read.")
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser's own remark on the refusal


def test_what_was_removed_comes_back_by_keyboard_and_never_twice(page: Page, studio: str) -> None:
    for board in (ROOM, BLOCKED):
        paste(page, board)
        page.click("#draw-keep")
    page.click("[data-tab=collection]")
    titles = page.locator("#kept-boards input")
    for _ in range(2):
        page.locator("#kept-boards button:text('Remove')").first.click()
    expect(titles).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(titles).to_have_count(1)
    expect(page.locator("#toast")).to_have_text("It is back.")
    other = page.context.new_page()
    other.goto(studio + link(ROOM))
    other.click("#play-keep")
    expect(titles).to_have_count(2)
    page.keyboard.press("Control+z")  # the room, which is there again
    expect(titles).to_have_count(2)
    assert page.evaluate("() => JSON.parse(localStorage['maskoban.collection']).length") == 2


def test_boards_are_judged_searched_sorted_and_filtered(page: Page, studio: str) -> None:
    page.click("[data-tab=collection]")
    page.click("#import-here")
    levels = {"Gamma": ROOM, "alpha": BLOCKED, "Beta": "######\n#@ $.#\n######"}
    page.fill("#import-text", "".join(f"{board}\nTitle: {title}\n\n" for title, board in levels.items()))
    page.click("#import-go")
    titles = page.locator("#kept-boards input")

    def there(*expected: str) -> None:
        expect(titles).to_have_count(len(expected))
        assert [title.input_value() for title in titles.all()] == list(expected)

    expect(page.locator("#kept-boards .verdict b")).to_have_text(
        ["solved, easy", "unsolvable", "solved, easy"]
    )
    page.reload()  # verdicts are stored, not asked for again
    expect(page.locator("#kept-boards .verdict b")).to_have_text(
        ["solved, easy", "unsolvable", "solved, easy"]
    )
    there("Gamma", "alpha", "Beta")
    for order, expected in (("title", ("alpha", "Beta", "Gamma")), ("pushes", ("Beta", "Gamma", "alpha"))):
        page.select_option("[name=sort]", order)
        there(*expected)
    page.select_option("[name=filter]", "unsolvable")
    there("alpha")
    page.select_option("[name=filter]", "easy")
    there("Beta", "Gamma")
    page.fill("[name=search]", "GAM")
    there("Gamma")
    expect(page.locator("#collection-note")).to_have_text("1 board of 3; solved by you: 0.")
    # Progress is told: begun, then solved.
    page.fill("[name=search]", "")
    page.select_option("[name=filter]", "begun")
    there()
    expect(page.locator("#kept-boards")).to_contain_text("No board is like that.")
    page.goto(studio + link(levels["Beta"]))
    page.keyboard.press("ArrowRight")
    page.click("[data-tab=collection]")
    there("Beta")
    expect(page.locator("#kept-boards")).to_contain_text("begun, 1 move")
    page.click("[data-tab=play]")
    page.keyboard.press("ArrowRight")
    page.click("[data-tab=collection]")
    page.select_option("[name=filter]", "won")
    there("Beta")


def test_thousands_of_boards_make_no_long_page(page: Page) -> None:
    page.evaluate(
        """async () => {
            const { collection } = await import("./store.js");
            const bits = (i) => i.toString(2).padStart(12, "0").replaceAll("0", " ").replaceAll("1", "#");
            const row = (i) => `#${bits(i)}#`;
            const judgement = { verdict: "solved", word: "easy", pushes: 1, reason: "" };
            const board = (i) => ["#".repeat(14), "#@$.          ", row(i), "#".repeat(14)].join("\\n");
            const level = (_, i) => ({ board: board(i), title: `Board ${i}`, judgement });
            collection.add(Array.from({ length: 3000 }, level));
        }"""
    )
    page.click("[data-tab=collection]")
    expect(page.locator("#kept")).to_have_text("3000")
    expect(page.locator("#kept-boards .card")).to_have_count(24)
    assert page.evaluate("() => document.documentElement.scrollHeight") < 8000
    page.fill("[name=search]", "2999")
    expect(page.locator("#kept-boards input")).to_have_value("Board 2999")


def test_the_sheet_for_paper_has_boards_first_and_solutions_last(page: Page) -> None:
    page.evaluate("() => (window.print = () => (window.printed = true))")
    for board in (ROOM, "######\n#@$ .#\n######"):
        paste(page, board)
        page.click("#draw-keep")
    page.click("[data-tab=collection]")
    page.click("#print")
    assert eventually(lambda: page.evaluate("() => window.printed"))
    page.emulate_media(media="print")
    expect(page.locator("#sheet figure canvas")).to_have_count(2)
    expect(page.locator("main")).to_be_hidden()
    expect(page.locator("#sheet .solutions p")).to_have_text([re.compile("^1[.] "), "2. RR"])
    pages = page.pdf(format="A4").count(b"/Type /Page\n")
    assert pages == 2  # the pictures, and the solutions on a page of their own
    page.emulate_media(media="screen")
    expect(page.locator("#sheet")).to_be_hidden()
