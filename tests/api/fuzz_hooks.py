"""What schemathesis cannot know by itself: loaded by `tests.api.fuzz`."""

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
"""Of things that alice has, by their names in the addresses."""
CHANCE = Random(15)
RULES = {"value_error", "assertion_error"}
"""Types of pydantic's errors for what a schema cannot say: one of two fields, a day before another."""


@schemathesis.hook
def before_call(context: Any, case: Any, **kwargs: Any) -> None:
    """Ask for things that are there, and make new ones: chance finds no id, and repeats one key for all."""
    # Each from an address of its own, or the limit of invalid tokens answers what the checks of sign-in ask.
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
    """Whatever is sent as Markdown is Markdown: no type is wrong."""
    return not (case.media_type == "text/markdown" and not isinstance(case.body, str))


@schemathesis.check
def valid_by_schema_is_refused_by_a_rule_alone(context: Any, response: Any, case: Any) -> None:
    """Beside `positive_data_acceptance`, which cannot know rules: that a cursor is of the page before, that a day
    comes before another. What pydantic refuses by type, length or bounds, the schema has to say, too."""
    if response.status_code != 422 or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    details = response.json()["error"].get("details") or []
    if missed := [each for each in details if each.get("type", "value_error") not in RULES]:
        raise Failure(
            operation=case.operation.label, title="Refused, but valid by the schema", message=str(missed)
        )
