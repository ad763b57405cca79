"""Somebody with a real browser, and what their hands do."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from playwright.sync_api import Browser, Locator, Page, Route, expect

from maskoban.boards import Level
from tests.site.serving import FOLDER, cut_off
from tests.studio.serving import PATIENCE

expect.set_options(timeout=1000 * PATIENCE)  # a busy machine is no reason to fail

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


def person(
    browser: Browser,
    studio: str,
    path: str = "/",
    first_visit: bool = False,
    at: datetime | None = None,
    **options: Any,
) -> Page:
    """Somebody with a browser of their own, who minds every error in the console.

    Watch draws boards on a first visit; here it was visited before, and what it does is what the test asks for. With
    ``at`` it is always that time.
    """
    context = browser.new_context(**{"reduced_motion": "reduce", **options})
    context.set_default_timeout(1000 * PATIENCE)
    if not first_visit:
        context.add_init_script("sessionStorage['maskoban.watch'] ??= '[]'")
    page = context.new_page()
    page.complaints = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.complaints.append(str(error)))  # type: ignore[attr-defined]
    page.on(
        "console",
        lambda said: page.complaints.append(said.text) if said.type == "error" else None,  # type: ignore[attr-defined]
    )
    if at is not None:
        page.clock.set_fixed_time(at)
    page.goto(studio + path)
    expect(page.locator("html[data-ready]")).to_be_attached()
    if studio.endswith(FOLDER):
        cut_off(page)
    return page


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


class Unanswered:
    """Questions of one kind to the backend, of either kind: a request to the server, or a job of a solver worker."""

    def __init__(self, page: Page, kind: str) -> None:
        self._page, self._kind = page, kind
        self._static = FOLDER in page.url
        self._held: list[Route] = []

    def hold(self) -> None:
        if self._static:
            self._page.evaluate(
                """(kind) => {
                    const post = Worker.prototype.postMessage;
                    window.held = 0;
                    Worker.prototype.postMessage = function (data, ...more) {
                        if (data.kind === kind) window.held += 1;
                        else post.call(this, data, ...more);
                    };
                    window.answerAgain = () => void (Worker.prototype.postMessage = post);
                }""",
                self._kind,
            )
        else:
            self._page.route(f"**/api/{self._kind}", lambda route: self._held.append(route))

    def answer_again(self) -> None:
        if self._static:
            self._page.evaluate("answerAgain()")
        else:
            self._page.unroute(f"**/api/{self._kind}")

    def asked(self) -> None:
        """Wait until the page has asked."""
        if self._static:
            self._page.wait_for_function("() => held > 0")
        while not self._static and not self._held:
            self._page.wait_for_timeout(20)

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """In this block the page stops waiting for an answer. The search ends: its request, or its worker."""
        self.asked()
        if self._static:
            with self._page.expect_event("worker"):  # the one in place of the worker that was ended
                yield
        else:
            with self._page.expect_event("requestfailed", lambda request: self._kind in request.url):
                yield


@contextmanager
def unanswered(page: Page, kind: str) -> Iterator[Unanswered]:
    """Nobody answers questions of this kind (solve, rate or repair) in this block."""
    questions = Unanswered(page, kind)
    questions.hold()
    yield questions
    questions.answer_again()


def middle(canvas: Locator, row: int, column: int) -> tuple[float, float]:
    """Where on the screen the middle of a cell is."""
    box = canvas.bounding_box()
    board = (canvas.get_attribute("data-board") or "").split("\n")
    assert box is not None
    return (
        box["x"] + (column + 0.5) * box["width"] / len(board[0]),
        box["y"] + (row + 0.5) * box["height"] / len(board),
    )


def pinch(page: Page, canvas: Locator, *cells: tuple[int, int]) -> None:
    """A finger on each of the cells, one after the other; then all go a little apart and leave."""
    touch = page.context.new_cdp_session(page)
    at = [middle(canvas, *cell) for cell in cells]

    def fingers(n: int, apart: float = 0) -> list[dict[str, float]]:
        return [{"x": x + apart * i, "y": y + apart * i, "id": i} for i, (x, y) in enumerate(at[:n])]

    for n in range(1, len(at) + 1):
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": fingers(n)})
    for kind, points in (("touchMove", fingers(len(at), 40)), ("touchEnd", [])):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
