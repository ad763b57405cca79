"""The API held to its own OpenAPI description, by requests made up from it."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from maskoban.studio.app import create_app
from tests.studio.serving import PATIENCE

# What is too large is refused before it is looked at, with 413.
REFUSED = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 413, 422, 503]}}}
)

description = schemathesis.openapi.from_dict(create_app().openapi(), config=REFUSED)


@description.parametrize()
@settings(
    max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
def test_answers_are_as_described(case: Any, known: str) -> None:
    # No schema can say which letters make a board a model can complete, so a 422 to text of the right
    # letters is no failure; everything else is checked.
    case.call_and_validate(base_url=known, excluded_checks=[positive_data_acceptance], timeout=PATIENCE)
