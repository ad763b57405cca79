"""Draw, in a real browser, and boards coming in and going out."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from maskoban.boards import read
from tests.studio.browsing import BLOCKED, ROOM, middle, paste, shows
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
    shows(page.locator("#draw-board"), BLOCKED.replace("$#.", "$ ."))
    expect(page.locator("#draw-verdict b")).to_have_text("solved, easy")


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
