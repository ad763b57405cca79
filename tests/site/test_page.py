"""The built site in Chromium: offline, in a folder of a plain file server, with the shipped model."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from maskoban.boards import Level
from maskoban.diffusion.loading import load
from maskoban.errors import MaskobanError
from maskoban.site.build import CONTENT_POLICY, build
from maskoban.solving import rate
from tests.site.serving import FOLDER, file_server
from tests.site.test_solver import HARD
from tests.studio.browsing import person

GENERATE = """async (request) => {
  const { generate } = await import("./api.js");
  const events = [];
  for await (const event of generate(request)) events.push(event);
  return events;
}"""


@pytest.fixture
def served(site: Path, tmp_path: Path) -> Path:
    """A folder to serve, with the site in a folder of it."""
    (tmp_path / FOLDER).parent.mkdir(parents=True)
    (tmp_path / FOLDER).symlink_to(site)
    return tmp_path


def sizes(site: Path) -> dict[str, int]:
    return {
        path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*") if path.is_file()
    }


def test_the_site_is_small(site: Path) -> None:
    found = sizes(site)
    assert sum(found.values()) < 25_000_000
    # What a browser loads before it paints: the page, its styles and all that main.js imports.
    loaded, waiting = set(), ["main.js"]
    while waiting:
        file = waiting.pop()
        loaded.add(file)
        names = re.findall(r'(?:from|import) "\./([^"]+)"', (site / file).read_text("utf-8"))
        waiting += [name for name in names if name not in loaded]
    first = {
        "index.html",
        "style.css",
        "theme.js",
        *loaded,
        *(name for name in found if name.startswith("tiles")),
    }
    assert sum(found[name] for name in first) < 300_000


def test_what_the_service_worker_keeps_is_all_there_is(site: Path) -> None:
    text = (site / "service-worker.js").read_text("utf-8")
    kept, large = (
        json.loads(re.search(rf"const {name} = (\[.*\]);", text)[1]) for name in ("FILES", "LARGE")
    )  # type: ignore[index]
    licences = {name for name in sizes(site) if name.startswith("licences/")}
    assert {"index.html" if name == "./" else name for name in kept + large} == sizes(
        site
    ).keys() - licences - {"service-worker.js"}


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(
        MaskobanError, match="neither empty nor a site; expected a new folder, or the last build"
    ):
        build(tmp_path)


def test_the_first_boards_wait_for_no_model(browser: Browser, site: Path, tmp_path: Path) -> None:
    shutil.copytree(site, tmp_path / FOLDER, ignore=shutil.ignore_patterns("files"))
    with file_server(tmp_path) as (address, _):
        page = person(browser, address)
        canvas, seen = page.locator("#play-board"), set()
        for number in range(1, 4):
            page.click("#next")
            expect(page.locator("#board-name")).to_contain_text("best 0-")
            expect(page.locator("#par")).to_have_text(re.compile(r"^\d+$"))
            seen.add(canvas.get_attribute("data-board"))
            assert len(seen) == number
        page.context.close()


def test_boards_of_the_shipped_model_offline(browser: Browser, served: Path, site: Path) -> None:
    with file_server(served) as (address, server):
        page = person(browser, address)
        policy = page.locator("meta[http-equiv=Content-Security-Policy]")
        expect(policy).to_have_attribute("content", CONTENT_POLICY)
        assert page.evaluate("self.crossOriginIsolated") is False
        page.evaluate('import("./api.js").then(({ model }) => model()).then(() => 0)')
        page.evaluate("navigator.serviceWorker.ready.then(() => 0)")
        server.shutdown()
        server.server_close()
    # The server is gone. All that follows comes from the browser's cache.
    page.reload()
    expect(page.locator("html[data-ready]")).to_be_attached()
    request = {"count": 2, "seed": 3, "sampler": "fast", "precision": "fp32"}
    events = page.evaluate(GENERATE, request)
    assert [event["type"] for event in events][:2] == ["start", "boards"]
    judged = [event for event in events if event["type"] == "judged"]
    # With fp32 products, both round alike to six digits: the boards are those of Python.
    expected = load(threads=1).generate(2, seed=3, sampler="fast")
    assert [event["board"] for event in judged] == [str(level) for level in expected]
    for event in judged:
        known = rate(Level.parse(event["board"])).as_json()
        assert {name: event["judgement"][name] for name in ("verdict", "word", "effort", "pushes")} == {
            name: known[name] for name in ("verdict", "word", "effort", "pushes")
        }
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()


def test_sampling_and_searches_end_when_they_are_stopped(browser: Browser, static: str) -> None:
    page = person(browser, static)
    found = page.evaluate(
        """async (board) => {
      const { solve, generate } = await import("./api.js");
      const stop = new AbortController(), names = [];
      // More searches than workers: all end, and the workers that come after them answer.
      const search = () => solve({ board, mode: "effort", seconds: 600 }, stop.signal);
      const searches = [1, 2, 3].map(() => search().catch((error) => names.push(error.name)));
      stop.abort();
      await Promise.all(searches);
      const again = new AbortController();
      try {
        for await (const event of generate({ count: 2, seed: 1 }, again.signal))
          if (event.type === "commit") again.abort();
      } catch (error) {
        names.push(error.name);
      }
      return [names, (await solve({ board: "#####\\n#@$.#\\n#####" })).solution];
    }""",
        HARD.strip(),
    )
    assert found == [["AbortError"] * 4, "R"]
    page.context.close()


def test_boards_to_come_are_seen_while_the_model_loads(browser: Browser, static: str) -> None:
    page = person(browser, static, "/#/watch")
    page.add_init_script(
        """const post = Worker.prototype.postMessage;
        Worker.prototype.postMessage = function (data, ...more) {
            if (data.files) window.loadModel = () => post.call(this, data, ...more);
            else post.call(this, data, ...more);
        };"""
    )
    page.reload()
    page.click("#generate")
    expect(page.locator("#watch-boards canvas[data-board*='#????????#']")).to_have_count(6)
    page.click("#watch-stop")
    expect(page.locator("#generate")).to_have_text("Generate")
    page.click("#generate")
    page.evaluate("loadModel()")
    expect(page.locator("#watch-boards .verdict b")).to_have_count(6)
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()


def test_the_page_stays_responsive_while_it_samples(browser: Browser, static: str) -> None:
    """No script of the page takes part in sampling: its thread only hears events."""
    page = person(browser, static)
    page.evaluate(GENERATE, {"count": 1, "seed": 1})
    workers = {worker.url.rsplit("/", 1)[1] for worker in page.workers}
    assert workers == {"sampling-worker.js", "solver-worker.js"}
    page.context.close()


def test_pictures_are_made_in_the_browser(browser: Browser, static: str, tmp_path: Path) -> None:
    from PIL import Image

    page = person(browser, static)
    board = "######\n#@$ .#\n######"
    for format, frames in (("png", 1), ("gif", 3)):
        data = page.evaluate(
            """async (given) => {
          const { picture } = await import("./api.js");
          return [...new Uint8Array(await (await picture(given)).arrayBuffer())];
        }""",
            {"board": board, "format": format},
        )
        (tmp_path / f"board.{format}").write_bytes(bytes(data))
        image = Image.open(tmp_path / f"board.{format}")
        assert getattr(image, "n_frames", 1) == frames
        assert image.size == ((6 * 48, 3 * 48) if format == "png" else (6 * 32, 3 * 32))
    page.context.close()
