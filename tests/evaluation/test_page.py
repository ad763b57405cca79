"""The page in a real browser: no error, nothing cut off, on a desk and on a phone, by day and by night."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from maskoban.evaluation.page import render
from maskoban.evaluation.report import Report, Source
from maskoban.evaluation.rows import ROWS

Whole = tuple[Path, Report]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_opened_in_chromium(browser: Browser, whole_report: Whole, width: int, scheme: Any) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(request.url))
    page.goto((whole_report[0] / "report.html").as_uri())

    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.eval_on_selector_all(
        "figure svg", "all => all.map(svg => svg.getBoundingClientRect().width)"
    )
    assert len(sizes) == len(list((whole_report[0] / "figures").glob("*.svg")))
    assert min(sizes) > 250

    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ink = page.evaluate(
        """getComputedStyle(document.querySelector('figure [style*="fill: #2d3142"]')).fill"""
    )
    light, dark = "rgb(253, 251, 247)", "rgb(20, 22, 28)"
    assert background == (light if scheme == "light" else dark)
    assert ink == ("rgb(45, 49, 66)" if scheme == "light" else "rgb(236, 232, 223)")
    page.close()


def test_on_paper_it_is_day(browser: Browser, whole_report: Whole) -> None:
    a4_within_margins: Any = {"width": 672, "height": 1000}
    page = browser.new_page(viewport=a4_within_margins, color_scheme="dark")
    page.goto((whole_report[0] / "report.html").as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(253, 251, 247)"
    cut_off = "all => all.filter(each => each.scrollWidth > each.clientWidth).length"
    assert page.eval_on_selector_all("html, .scroll", cut_off) == 0
    assert page.pdf().startswith(b"%PDF")
    page.close()


def test_the_page_needs_nothing_else(whole_report: Whole) -> None:
    text = (whole_report[0] / "report.html").read_text()
    assert not re.search(r"<script|<link[^>]+stylesheet|<img|@import|url\((?!#)", text)
    names = re.findall(r'\bid="([^"]+)"', text)
    assert [name for name, count in Counter(names).items() if count > 1] == []
    links = re.findall(r'href="#([^"]+)"', text)
    assert set(links) <= set(names)


def test_every_number_of_the_papers_stands_beside_ours(whole_report: Whole) -> None:
    text = (whole_report[0] / "report.html").read_text()
    for row in ROWS:
        assert row.label in text
        if row.paper:
            assert row.paper.text in text
            assert row.paper.where in text


def test_names_from_outside_stay_text() -> None:
    source = Source("<script>", 1, file="<b>.npz")
    text = render(Report("1", source, notes={"training": "no <log>"}), [])
    assert "<script>" not in text
    assert "&lt;b&gt;.npz" in text
    assert "no &lt;log&gt;" in text
