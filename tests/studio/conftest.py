"""One served studio for all tests that do not need one of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from maskoban.studio.app import create_app
from tests.studio.serving import known_model, serving


@pytest.fixture(scope="session")
def studio() -> Iterator[str]:
    """The address of a studio that draws with the known model."""
    with serving(create_app(known_model)) as address:
        yield address
