"""What the API's own description promises holds, on a running service, for whatever a program may send."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.fuzz import LIMITS, ask, make_things
from tests.fixtures.processes import ServiceStarter
from tests.servers.people import ADMIN, CHARLIE, make_people

BOUNDED = ["--phases=examples,fuzzing,stateful"]
"""`make fuzz` tries more of each, and every value at the edge of a bound."""


@pytest.mark.slow
@pytest.mark.parametrize(("database", "examples"), [("sqlite", "2"), ("postgres", "1")])
def test_answers_are_as_described_for_good_and_bad_input(
    start_service: ServiceStarter, tmp_path: Path, database: str, examples: str
) -> None:
    if database == "postgres":
        service = start_service(production=True, REDIS_URL="", **LIMITS)
        service.tokens = make_people(service.env, (ADMIN, CHARLIE)).tokens
    else:
        service = start_service(**LIMITS)
    make_things(tmp_path, service.env)
    assert ask(tmp_path, service, examples, more=BOUNDED) == 0, "pytest shows above what schemathesis found"
