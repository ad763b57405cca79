"""Pieces of the report's page: tables, pairs, and drawings that share a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape


def own_names(svg: str, name: str) -> str:
    """A drawing with names no other on the page has, and with the page's rules instead of its own.

    >>> own_names('<svg><g id="a"/><use href="#a"/></svg>', "key")
    '<svg><g id="key-a"/><use href="#key-a"/></svg>'
    """
    svg = re.sub(r"<style>@media.*?</style>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    return re.sub(r'href="#', f'href="#{name}-', svg)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "", numbers: bool = True) -> str:
    """A table whose first column names the rows; columns of numbers end at their right edge.

    >>> "<td>82.7 % <small>(82.2 to 83.2)</small></td>" in table(("", "solvable"), [("best", "82.7 % (82.2 to 83.2)")],
    ...                                                        numbers=False)
    True
    """
    right = ' class="number"' if numbers else ""
    head = "".join(f'<th scope="col"{right if i else ""}>{escape(text)}</th>' for i, text in enumerate(heads))
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td{right}>{_cell(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(text: str) -> str:
    """A number, with its interval in smaller letters."""
    return re.sub(r" (\([^()]* to [^()]*\))$", r" <small>\1</small>", escape(text))


def pair(left: str, right: str) -> str:
    """Side by side where there is room.

    >>> pair("<p>text</p>", "")
    '<div class="alone"><p>text</p></div>'
    """
    if not left or not right:
        return f'<div class="alone">{left}{right}</div>'
    return f'<div class="pair"><div>{left}</div>{right}</div>'
