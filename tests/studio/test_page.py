"""The page as a whole, in a real browser, as people use it."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from maskoban.boards import Level
from maskoban.pictures.tileset import looks
from maskoban.studio.app import create_app
from maskoban.studio.limits import Access
from tests.studio.browsing import ROOM, link, paste, person, shows
from tests.studio.serving import Known, eventually, held, known_model, serving
from tests.studio.test_command import command


def test_the_page_recovers_when_the_server_is_killed_and_restarted(browser: Browser) -> None:
    with command() as (process, address):
        page = person(browser, address.rstrip("/"), "/#/watch")
        process.kill()
        process.wait()
        page.click("#generate")
        expect(page.locator("#offline")).to_be_visible()
    with command("--port", address.rstrip("/").rpartition(":")[2]):
        expect(page.locator("#offline")).to_be_hidden()
        page.fill("[name=count]", "1")
        page.click("#generate")
        expect(page.locator("#watch-boards .verdict b")).to_have_count(1)
    page.context.close()


def test_the_page_recovers_when_the_server_stops_while_it_samples(browser: Browser) -> None:
    with held(Known(allowed=5)) as address:
        page = person(browser, address, "/#/watch")
        page.click("#generate")
        expect(page.locator("#watch-at")).to_have_text("step 5 of 64")
    expect(page.locator("#offline")).to_be_visible()
    expect(page.locator("#generate")).to_be_enabled()
    # Without a server nothing new is sampled, and nothing that was there is lost.
    page.click("#generate")
    expect(page.locator("#toast")).to_have_text("The server does not answer.")
    expect(page.locator("#watch-boards canvas")).to_have_count(6)
    page.click("[data-tab=draw]")
    page.click("#clear")
    expect(page.locator("#draw-verdict")).to_have_text("The server does not answer.")
    page.goto(address + link(ROOM))
    expect(page.locator("#par")).to_have_text("–")
    port = int(address.rpartition(":")[2])
    with serving(create_app(known_model), port):
        expect(page.locator("#offline")).to_be_hidden()
        # What could not be answered is asked again.
        expect(page.locator("#par")).to_have_text("5")
        expect(page.locator("#draw-verdict b")).to_have_text("malformed")
        page.click("[data-tab=watch]")
        page.click("#generate")
        expect(page.locator("#watch-boards .verdict b")).to_have_count(6)
    page.context.close()


def test_the_colours_chosen_last_time_are_there_before_anything_is_painted(
    browser: Browser, studio: str
) -> None:
    page = person(browser, studio, color_scheme="light")
    page.click("#theme")
    # Nothing is painted before there is a body.
    page.add_init_script(
        """new MutationObserver(() => {
            const { ready, theme } = document.documentElement.dataset;
            if (document.body) window.early ??= [ready ?? "not ready", theme];
        }).observe(document, { childList: true, subtree: true });"""
    )
    page.reload()
    expect(page.locator("html[data-ready]")).to_be_attached()
    assert page.evaluate("early") == ["not ready", "dark"]
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    page.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_sticks_out_at_any_size(browser: Browser, studio: str, theme: Any) -> None:
    page = person(browser, studio, color_scheme=theme)
    expect(page.locator(f"html[data-theme={theme}]")).to_be_attached()
    paste(page, ROOM)
    page.evaluate(
        """async (room) => {
            const { collection } = await import("./store.js");
            const wider = (i) => room.replace("#", "#".repeat(1 + (i % 50))) + "\\n#".repeat(Math.floor(i / 50));
            collection.add(Array.from({ length: 120 }, (_, i) => ({ board: wider(i), title: "W".repeat(200) })));
        }""",
        ROOM,
    )
    for width, height in (
        (320, 640),
        (320, 256),
        (360, 740),
        (820, 1180),
        (740, 360),
        (1440, 900),
        (2560, 1300),
    ):
        page.set_viewport_size({"width": width, "height": height})
        for tab in ("watch", "play", "draw", "collection"):
            page.click(f"[data-tab={tab}]")
            there = page.evaluate(
                "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth, scrollY]"
            )
            assert there[0] <= there[1], (width, tab)
            assert there[2] == 0, (width, tab)
            if tab in ("play", "draw"):
                box = page.locator(f"#{tab}-board").bounding_box()
                assert box is not None
                assert box["width"] > 200, (width, height)
        # Every tile says its name in letters one can read, inside its button.
        page.click("[data-tab=draw]")
        assert page.evaluate(
            """() => [...document.querySelectorAll("#palette button")].every(
                (each) => parseFloat(getComputedStyle(each).fontSize) > 10 && each.scrollWidth <= each.clientWidth)"""
        ), width
    # Header and content begin and end at the same places.
    header, panel = page.locator("header h1").bounding_box(), page.locator("#draw .panel").bounding_box()
    assert header is not None
    assert panel is not None
    assert header["x"] == panel["x"]
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()


def test_dark_is_dark_before_any_script_has_run(browser: Browser, studio: str) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.route("**/main.js", lambda route: route.abort())
    page.goto(studio)
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(23, 26, 38)"
    context.close()


def test_addresses_lead_there_and_back(browser: Browser, studio: str) -> None:
    page = person(browser, studio, "/#draw", viewport={"width": 390, "height": 700})
    expect(page.locator("#draw")).to_be_visible()
    for _ in range(2):  # at its top, with the header over nothing
        assert page.evaluate("() => scrollY") == 0
        page.reload()
    # The first thing to reach is the way past the header, and it leads nowhere else.
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    before = page.evaluate("() => history.length")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    assert page.evaluate("() => history.length") == before
    expect(page.locator("#draw")).to_be_visible()
    page.mouse.wheel(0, 500)
    page.click("[data-tab=play]")
    assert page.evaluate("() => scrollY") == 0
    page.click("[data-tab=collection]")
    page.evaluate("() => (location.hash = 'nothing-here')")
    expect(page.locator("#collection")).to_be_visible()
    page.go_back()
    page.go_back()
    expect(page.locator("#play")).to_be_visible()
    page.go_back()
    expect(page.locator("#draw")).to_be_visible()
    assert page.complaints == []  # type: ignore[attr-defined]
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
    assert {
        "restart",
        "hint",
        "next",
        "daily",
        "difficulty",
        "shade",
        "warn",
        "play-edit",
        "play-board",
    } <= reached


def test_the_backend_is_reached_through_one_file_and_any_path() -> None:
    files = {
        path.name: path.read_text() for path in Path(str(resources.files("maskoban.studio"))).glob("page/*.*")
    }
    for name, text in files.items():
        network = re.search(r"\b(fetch|EventSource|XMLHttpRequest|WebSocket|sendBeacon)\b", text)
        assert (network is None) == (name != "api.js"), name
        # Addresses are relative, so that the page works in any folder of a site.
        assert not re.search(r"""(src|href)=["']/|["'`]/(api|\w+\.(js|svg|css))""", text), name


def test_the_page_works_in_a_folder_of_a_site(browser: Browser, known: str) -> None:
    context, folder = browser.new_context(), "/games/sokoban"
    context.route(
        f"**{folder}/**",
        lambda route: route.fulfill(response=route.fetch(url=route.request.url.replace(folder, ""))),
    )
    page = context.new_page()
    page.goto(known + folder + link(ROOM))
    shows(page.locator("#play-board"), ROOM)
    expect(page.locator("#par")).to_have_text("5")
    shared = page.evaluate("""async (board) => (await import("./share.js")).linkTo(board)""", ROOM)
    assert shared.startswith(f"{known}{folder}/#board=")
    context.unroute_all(behavior="ignoreErrors")  # boards drawn ahead may still be on their way
    context.close()


def test_boards_look_as_in_all_other_pictures(page: Page) -> None:
    rng = np.random.default_rng(3)
    boards = [
        rng.choice(8, size=(7, 9), p=[0.45, 0.4, 0.02, 0.05, 0.05, 0.01, 0.01, 0.01]) for _ in range(20)
    ]
    texts = [str(Level(board)) for board in boards]
    found = page.evaluate(
        """async (texts) => {
            const { looks, parse } = await import("./board.js");
            return texts.map((text) => [...looks(parse(text))]);
        }""",
        texts,
    )
    for board, text, seen in zip(boards, texts, found, strict=True):
        if Level.parse(text).shape == board.shape:
            assert looks(board.astype(np.uint8)).ravel().tolist() == seen


def test_tiles_are_dark_in_the_dark_theme(browser: Browser, studio: str) -> None:
    page = person(browser, studio, link(ROOM), color_scheme="light")
    floor = """() => {
        const canvas = document.getElementById("play-board"), cell = canvas.width / 8;
        const [red, green, blue] = canvas.getContext("2d").getImageData(1.5 * cell, 3.5 * cell, 1, 1).data;
        return red + green + blue;
    }"""
    assert eventually(lambda: page.evaluate(floor) > 600)
    page.click("#theme")
    assert eventually(lambda: page.evaluate(floor) < 300)
    page.context.close()


def test_the_page_works_where_the_browser_keeps_nothing(browser: Browser, studio: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(
        """for (const name of ["localStorage", "sessionStorage"])
            Object.defineProperty(window, name, { get() { throw new DOMException("no", "SecurityError"); } });"""
    )
    page.goto(studio + link(ROOM))
    shows(page.locator("#play-board"), ROOM)
    page.click("#play-keep")
    expect(page.locator("#toast")).to_contain_text("nothing was kept")
    page.click("[data-tab=watch]")  # where boards are drawn on a first visit
    expect(page.locator("#watch-boards .verdict b")).to_have_count(6)
    assert errors == []
    context.close()


def test_the_colours_follow_the_system_until_they_are_chosen(browser: Browser, studio: str) -> None:
    page = person(browser, studio, color_scheme="light")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html[data-theme=dark]")).to_be_attached()
    page.click("#theme")
    page.emulate_media(color_scheme="light")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html[data-theme=light]")).to_be_attached()
    page.context.close()


def test_a_server_that_is_back_with_another_token_says_so(browser: Browser) -> None:
    with serving(create_app(known_model, Access("127.0.0.1", "one"))) as address:
        page = person(browser, address, "/?token=one")
    page.click("[data-tab=watch]")
    page.click("#generate")
    expect(page.locator("#offline")).to_be_visible()
    with serving(create_app(known_model, Access("127.0.0.1", "two")), int(address.rpartition(":")[2])):
        expect(page.locator("#offline")).to_be_hidden()
        expect(page.locator("#toast")).to_contain_text("token")
    page.context.close()


def test_whoever_uses_keys_sees_where_they_are(page: Page) -> None:
    page.click("[data-tab=draw]")
    page.click("#import")
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.id") == "import-file":
            break
    outline = page.locator("label.button").evaluate("(label) => getComputedStyle(label).outlineWidth")
    assert outline == "3px"
