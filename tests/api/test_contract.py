"""A running service keeps the promises of its API description, whatever a client sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.fuzz import LIMITS, ask, make_things
from tests.fixtures.processes import ServiceStarter

BOUNDED = ["--phases=examples,fuzzing,stateful"]
"""`make fuzz` tries more examples, all values at the edges of bounds, and PostgreSQL, too. `test_every_address` finds
values that only one database rejects."""


@pytest.mark.slow
def test_responses_match_the_description_for_valid_and_invalid_input(
    start_service: ServiceStarter, tmp_path: Path
) -> None:
    service = start_service(**LIMITS)
    make_things(tmp_path, service.env)
    assert ask(tmp_path, service, "2", more=BOUNDED) == 0, "pytest shows above what schemathesis found"
