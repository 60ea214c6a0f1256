"""Hooks and checks for what schemathesis cannot know by itself, loaded by `tests.api.fuzz`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.core.parameters import ParameterLocation

IDS: list[dict[str, str]] = json.loads(Path(os.environ["FUZZ_IDS"]).read_text())
"""The ids of existing rows of the operator, by path parameter."""
CHANCE = Random(15)
RULES = {"value_error", "assertion_error"}
"""Types of pydantic's errors for rules that a schema cannot express, e.g. that one day comes before another."""


@schemathesis.hook
def before_call(context: Any, case: Any, **kwargs: Any) -> None:
    """Use existing ids and new idempotency keys: random values match no id, and all requests would share one key."""
    # Send each request from its own address, or the rate limit for invalid tokens would answer the checks of sign-in.
    case.headers["X-Forwarded-For"] = (
        f"10.{CHANCE.randrange(256)}.{CHANCE.randrange(256)}.{CHANCE.randrange(256)}"
    )
    if case.meta is None or case.meta.phase.name.value == "Stateful":
        return
    if (
        case.path_parameters
        and not case.meta.is_negative_at(ParameterLocation.PATH)
        and CHANCE.random() < 0.7
    ):
        known = CHANCE.choice(IDS)
        case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
    if "Idempotency-Key" in (case.headers or {}) and not case.meta.is_negative_at(ParameterLocation.HEADER):
        case.headers["Idempotency-Key"] = uuid4().hex


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Skip Markdown bodies that are not strings: they are sent as text, and any text is valid Markdown."""
    return not (case.media_type == "text/markdown" and not isinstance(case.body, str))


@schemathesis.check
def valid_by_schema_is_refused_by_a_rule_alone(context: Any, response: Any, case: Any) -> None:
    """Complement `positive_data_acceptance`, which does not know the rules, e.g. that one day comes before another.

    If pydantic rejects the type, the length or the bounds of a value, the schema must reject the value, too.
    """
    if response.status_code != 422 or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    details = response.json()["error"].get("details") or []
    if missed := [each for each in details if each.get("type", "value_error") not in RULES]:
        raise Failure(
            operation=case.operation.label, title="Refused, but valid by the schema", message=str(missed)
        )
