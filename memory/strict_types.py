"""Strict types of JSON and YAML values: text is no number, 1 is not true and a number is no date, though pydantic would
accept them."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from datetime import date, datetime, time
from functools import cache
from types import NoneType
from typing import Any, Literal, Self, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

Check = Callable[[Any], type | None]
"""Returns the type that an invalid value should have; None for a valid one."""
_DIGITS = re.compile(r"[\s+\-.\d]*")
_A_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Return (place, message) of the first invalid value. The place is empty for the whole value."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ".".join(str(step) for step in first["loc"]), first["msg"]


class StrictTypes(BaseModel):
    """A model whose number, boolean and date fields accept no other types."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_other_types(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        checks = strict_checks(cls).items() if isinstance(data, dict) else ()
        wrong = {name: kind for name, check in checks if name in data and (kind := check(data[name]))}
        if not wrong:
            return handler(data)
        told = [
            InitErrorDetails(type=f"{kind.__name__}_type", loc=(name,), input=data[name])
            for name, kind in wrong.items()
        ]
        # Report all errors at once.
        raise ValidationError.from_exception_data(cls.__name__, told + _others(handler, data, wrong))


def _others(
    handler: ModelWrapValidatorHandler[Any], data: Any, told: Container[str]
) -> list[InitErrorDetails]:
    """Return the validation errors of all other fields."""
    try:
        handler(data)
    except ValidationError as error:
        return [
            InitErrorDetails(
                type=PydanticCustomError(each["type"], each["msg"]), loc=each["loc"], input=each["input"]
            )
            for each in error.errors(include_url=False, include_context=False)
            if not each["loc"] or each["loc"][0] not in told
        ]
    return []


@cache
def strict_checks(body: type[BaseModel]) -> dict[str, Check]:
    """Return the checks of the fields with these types, by the name they are sent with."""
    checks = {field.alias or name: _check_of(field.annotation) for name, field in body.model_fields.items()}
    return {name: check for name, check in checks.items() if check}


def _check_of(annotation: Any) -> Check | None:
    """Return the check of an annotation; None if it needs none."""
    if annotation in (bool, int, float):
        return lambda value: None if _is_number(annotation, value) else annotation
    if annotation in (AwareDatetime, date, datetime, time):
        kind = datetime if annotation is AwareDatetime else annotation
        return lambda value: kind if _is_count(value) else None
    origin, inner = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return _check_of(inner[0])
    if origin is Literal:
        kinds = {type(each) for each in inner}
        return _check_of(kinds.pop()) if len(kinds) == 1 else None
    if origin in (list, tuple, set, frozenset) or origin is dict:
        return _check_each(_check_of(inner[1 if origin is dict else 0]), list if origin is not dict else dict)
    return _check_any([each for each in inner if each is not NoneType]) if inner else None


def _check_each(check: Check | None, container: type) -> Check | None:
    def check_each(value: Any) -> type | None:
        inside = value.values() if isinstance(value, dict) else value
        found = (check(each) for each in inside) if check and isinstance(value, container) else ()
        return next((kind for kind in found if kind), None)

    return check_each if check else None


def _check_any(annotations: list[Any]) -> Check | None:
    """Return the check of a union; None if one of its types accepts what the others reject."""
    checks = [_check_of(each) for each in annotations]
    known = [check for check in checks if check]
    if len(known) < len(checks):
        return None

    def check_any(value: Any) -> type | None:
        found = [check(value) for check in known]
        return found[0] if all(found) else None

    return check_any


def _is_number(kind: type, value: Any) -> bool:
    """Return whether it is no value of another type: text, true for a number, or 1 for true. Null and other invalid
    values are left to pydantic."""
    return not isinstance(value, str) and (value is None or (kind is bool) == isinstance(value, bool))


def _is_count(value: Any) -> bool:
    """Return whether it is a number or text of digits, which pydantic reads as seconds since 1970."""
    if isinstance(value, str):
        return bool(_DIGITS.fullmatch(value)) and not _A_DAY.fullmatch(value)
    return isinstance(value, int | float)
