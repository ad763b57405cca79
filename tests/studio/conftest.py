"""One served studio for all tests that do not need one of their own, its page, and the backends of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from maskoban.diffusion.loading import load
from maskoban.diffusion.model import Model
from maskoban.studio import app, limits, solver_pool
from maskoban.studio.app import create_app
from tests.site.serving import FOLDER, built_site, file_server, known_site
from tests.studio.browsing import person
from tests.studio.serving import PATIENCE, Known, held, known_model, picky_model, serving


@pytest.fixture(scope="session", autouse=True)
def _patience() -> Iterator[None]:
    """No deadline that a slow machine could miss."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver_pool, "QUICK_JOB", PATIENCE)
        patch.setattr(limits, "JUDGE_SECONDS", PATIENCE)
        patch.setattr(limits, "LONG_SECONDS", PATIENCE)
        patch.setattr(app, "GRACE", round(PATIENCE))
        yield


@pytest.fixture(scope="session")
def known() -> Iterator[str]:
    """The address of a studio that samples with the known model, for tests that expect its boards or its API."""
    with serving(create_app(known_model)) as address:
        yield address


@pytest.fixture(scope="session")
def static(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a static site with the known model, in a folder of a plain file server."""
    root = tmp_path_factory.mktemp("static")
    known_site(built_site(), root / FOLDER)
    with file_server(root) as (address, _):
        yield address


#: The backends of the page, and the fixture with the address of each. Tests of ``studio`` and ``page`` run with all.
BACKENDS = {"server": "known", "static": "static"}


@pytest.fixture(scope="session", params=BACKENDS.values(), ids=BACKENDS.keys())
def studio(request: pytest.FixtureRequest) -> str:
    """The address of the page, with every backend."""
    return str(request.getfixturevalue(request.param))


@dataclass
class Halted:
    """The page with a model that waits after twenty evaluations, until it is allowed more."""

    address: str
    denoiser: Known | None = None

    def allow(self, page: Page, evaluations: int) -> None:
        if self.denoiser:
            self.denoiser.allow(evaluations)
        else:
            page.evaluate("(n) => new BroadcastChannel('allow').postMessage(n)", evaluations)


@pytest.fixture(params=BACKENDS)
def halted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Halted]:
    """With every backend."""
    if request.param == "server":
        denoiser = Known(allowed=20)
        with held(denoiser) as address:
            yield Halted(address, denoiser)
    else:
        known_site(built_site(), tmp_path / FOLDER, allowed=20)
        with file_server(tmp_path) as (address, _):
            yield Halted(address)


@pytest.fixture(params=BACKENDS)
def picky(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of the page with a model that has a critic, with every backend."""
    yield from _with_model(request.param, picky_model, tmp_path)


@pytest.fixture(params=BACKENDS)
def shipped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of the page, which describes the shipped model, with every backend."""
    yield from _with_model(request.param, load, tmp_path)


def _with_model(backend: str, model: Callable[[], Model], folder: Path) -> Iterator[str]:
    if backend == "server":
        with serving(create_app(model)) as address:
            yield address
    else:
        known_site(built_site(), folder / FOLDER, model=model)
        with file_server(folder) as (address, _):
            yield address


@pytest.fixture
def page(browser: Browser, studio: str) -> Iterator[Page]:
    """The page as it opens, with every backend, and at the end nothing in the console."""
    page = person(browser, studio)
    yield page
    assert page.complaints == []  # type: ignore[attr-defined]
    page.context.close()
