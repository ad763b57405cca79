"""Every test of this folder runs torch in one thread."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def quietly(one_thread: None) -> None:
    pass
