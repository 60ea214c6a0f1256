"""What the API's own description promises holds, on a running service, for whatever a program may send."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.fuzz import LIMITS, ask, make_things
from tests.fixtures.processes import ServiceStarter

BOUNDED = ["--phases=examples,fuzzing,stateful"]
"""`make fuzz` tries more of each, every value at the edge of a bound, and all of it on PostgreSQL, too; what only one
database refuses is found on both by `test_every_address`."""


@pytest.mark.slow
def test_answers_are_as_described_for_good_and_bad_input(
    start_service: ServiceStarter, tmp_path: Path
) -> None:
    service = start_service(**LIMITS)
    make_things(tmp_path, service.env)
    assert ask(tmp_path, service, "2", more=BOUNDED) == 0, "pytest shows above what schemathesis found"
