"""What the API's own description promises holds, on a running service, for whatever a program may send."""

from __future__ import annotations

import os
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import settings as budget
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from tests.servers.people import ALICE
from tests.servers.service import Service

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.allow_header_conformance,
]
# A stream without an end; and the model's failures are what its 502 promises, not an error of the server.
NOT_TRIED = {("GET", "/api/v1/conversations/{conversation_id}/events")}
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "4"))
"""For each operation and kind of input; `make fuzz` tries more."""


@pytest.mark.slow
def test_answers_are_as_described_for_good_and_bad_input(start_service: Any) -> None:
    service: Service = start_service(MESSAGES_PER_MINUTE="0")
    headers = {"Authorization": f"Bearer {service.tokens[ALICE]}"}
    with httpx2.Client(base_url=f"{service.url}/api/v1", headers=headers, timeout=120) as client:
        description = client.get("/openapi.json").json()
        own = {"conversation_id": client.post("/conversations", json={}).json()["id"]}
    tried = 0
    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = result.ok()
        if (operation.method.upper(), operation.path) not in NOT_TRIED:
            try_operation(operation, service.url, headers, own)
            tried += 1
    assert tried >= 25


def try_operation(operation: Any, url: str, headers: dict[str, str], own: dict[str, str]) -> None:
    has_own = operation.method != "delete" and "{conversation_id}" in operation.path
    fixed = [{}, {"path_parameters": own}] if has_own and operation.path.count("{") == 1 else [{}]
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        for values in fixed:
            try:
                try_cases(operation.as_strategy(mode, **values), url, headers)
            except Exception as error:
                error.add_note(f"{mode} {operation.method.upper()} {operation.path}")
                raise


def try_cases(cases: Any, url: str, headers: dict[str, str]) -> None:
    @budget(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def try_case(case: Any) -> None:
        case.call_and_validate(base_url=url, headers=headers, checks=CHECKS, timeout=120)

    try_case()
