"""The report as one page: everything in it, nothing fetched. The text is in ``report.html.j2``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from maskoban.evaluation import theme
from maskoban.evaluation.figures import Picture
from maskoban.evaluation.report import Comparison, Report
from maskoban.evaluation.rows import (
    DIVERSITY_ROWS,
    NOTHING,
    PAPER,
    ROWS,
    TITLE,
    fixed,
    interval,
    known_ratios,
    percent,
    rounded,
    sampled_how,
)


def render(report: Report | Comparison, pictures: Iterable[Picture]) -> str:
    """The page of a report, with its figures.

    >>> from maskoban.evaluation.report import Source
    >>> "<h1>best: 3 boards measured</h1>" in render(Report("1", Source("best", 3)), [])
    True
    """
    several = isinstance(report, Comparison)
    style = files("maskoban.evaluation").joinpath("report.css").read_text(encoding="utf-8")
    svgs = {picture.name: own_names(picture.svg, f"f{number}") for number, picture in enumerate(pictures)}
    shared: dict[str, Any] = {
        "report": report,
        "style": Markup(style + theme.night_rules()),
        "svgs": svgs,
        "figure": lambda name, caption, kind="": figure(svgs, name, caption, kind),
        "ranges": [name for name in svgs if name.startswith("range-")],
        "rows": ROWS,
        "diversity_rows": DIVERSITY_ROWS,
        "paper": PAPER,
        "paper_title": TITLE,
        "nothing": NOTHING,
    }
    if isinstance(report, Report):
        shared |= {"ratios": known_ratios(report), "steps": sampled_how(report.source)}
    else:
        shared |= {"reports": report.generators, "sampled_how": sampled_how}
    return template("comparison.html.j2" if several else "report.html.j2").render(shared)


def template(name: str) -> Template:
    """A template of this folder; in pages every text is escaped."""
    environment = Environment(
        loader=PackageLoader("maskoban.evaluation", "."),
        autoescape=".html" in name,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=name.endswith(".md.j2"),
        extensions=["jinja2.ext.do"],
    )
    environment.filters |= {
        "percent": percent,
        "interval": interval,
        "fixed": fixed,
        "rounded": rounded,
        "small_interval": _small_interval,
    }
    return environment.get_template(name)


def figure(svgs: dict[str, str], name: str, caption: str, kind: str = "") -> Markup:
    """A figure with its caption where there is one, its picture in the page itself."""
    if name not in svgs:
        return Markup()
    svg = svgs[name].replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
    if "scrolling" in kind:
        svg = f'<div class="scroll" tabindex="0">{svg}</div>'
    return Markup(f'<figure class="{kind}">{svg}<figcaption>{escape(caption)}</figcaption></figure>')


def own_names(svg: str, name: str) -> str:
    """A drawing with names no other on the page has, and with the page's rules instead of its own.

    >>> own_names('<svg><g id="a"/><use href="#a"/></svg>', "key")
    '<svg><g id="key-a"/><use href="#key-a"/></svg>'
    """
    svg = re.sub(r"<style>@media.*?</style>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    return re.sub(r'href="#', f'href="#{name}-', svg)


def _small_interval(text: str) -> Markup:
    """A number, with its interval in smaller letters.

    >>> _small_interval("82.7 % (82.2 to 83.2)")
    Markup('82.7 % <small>(82.2 to 83.2)</small>')
    """
    return Markup(re.sub(r" (\([^()]* to [^()]*\))$", r" <small>\1</small>", escape(text)))
