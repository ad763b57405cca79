"""``maskoban studio``: the page and the HTTP API. ``maskoban site``: the page as a static site."""

from __future__ import annotations

from typing import Annotated

import typer

from maskoban.cli.output import complain
from maskoban.errors import need

site = typer.Typer(help="The studio's page as a static site.", no_args_is_help=True)


def studio(
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is every address of this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            show_default="none on this machine, else a random one", help="Token that clients must send."
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Serve the page to play, watch, draw and keep boards, and the HTTP API.

    The API is described at /api/openapi.json. The server listens on this machine
    only, unless --host says otherwise; then clients need the token.

    \b
    Examples:
      maskoban studio
      maskoban studio --port 9000 --no-browser
      maskoban studio --host 0.0.0.0 --token secret
    """
    need("the studio", "studio", "fastapi", "uvicorn")
    from maskoban.studio.app import run

    run(host, port, token, browser)


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
