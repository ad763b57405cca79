"""``maskoban site``: the page as a static site."""

from __future__ import annotations

from typing import Annotated

import typer

from maskoban.cli.output import complain

site = typer.Typer(help="The studio's page as a static site.", no_args_is_help=True)


@site.callback()
def _site() -> None:
    """The studio's page as a static site, with the model and the solver inside the browser."""


@site.command()
def build(
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder for the site.")],
) -> None:
    """Build the page with the model and the solver inside the browser.

    Any file server can serve the folder, under any path; it works offline once
    loaded. Needs npm and: pip install 'maskoban\\[site]'

    \b
    Examples:
      maskoban site build public
      python -m http.server --directory public
    """
    from maskoban.site.build import build

    sizes = build(out, lambda step: complain(f"building: {step}"))
    print(f"{out}: {len(sizes)} files, {sum(sizes.values()) / 1e6:.1f} MB")
    complain(f"play: python -m http.server --directory {out}")
