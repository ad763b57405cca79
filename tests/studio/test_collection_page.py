"""Collection, in a real browser: boards and solutions that are kept."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from maskoban.boards import Level, read, write
from tests.studio.browsing import ROOM, play


def test_import_of_an_archive_fills_the_collection(page: Page, tmp_path: Path) -> None:
    write(tmp_path / "two.npz", [Level.parse(ROOM), Level.parse(ROOM[::-1])])
    page.click("[data-tab=collection]")
    page.click("#import-here")
    page.set_input_files("#import-file", tmp_path / "two.npz")
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
