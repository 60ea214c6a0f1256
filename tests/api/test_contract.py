"""What the API's own description promises holds, on a running service, for whatever a program may send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.api.fuzz import LIMITS, ask, make_things
from tests.servers.service import Service

BOUNDED = ["--phases=examples,fuzzing,stateful"]
"""`make fuzz` tries more of each, and every value at the edge of a bound."""


@pytest.mark.slow
def test_answers_are_as_described_for_good_and_bad_input(start_service: Any, tmp_path: Path) -> None:
    service: Service = start_service(**LIMITS)
    make_things(tmp_path, service.env)
    assert ask(tmp_path, service, "2", more=BOUNDED) == 0, "pytest shows above what schemathesis found"
