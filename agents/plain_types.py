"""Values of JSON and YAML as they are: a text is no number, and 1 is not true, though pydantic would read them so."""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from typing import Any, Self, get_args

from pydantic import BaseModel, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError


class PlainTypes(BaseModel):
    """Fields that hold a number, or true and false, take nothing else."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_other_types(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        fields = plain_fields(cls).items() if isinstance(data, dict) else ()
        wrong = {name: kind for name, kind in fields if _is_other(kind, data.get(name))}
        if not wrong:
            return handler(data)
        told = [
            InitErrorDetails(type=f"{kind.__name__}_type", loc=(name,), input=data[name])
            for name, kind in wrong.items()
        ]
        raise ValidationError.from_exception_data(cls.__name__, told + _others(handler, data, wrong))


def _others(
    handler: ModelWrapValidatorHandler[Any], data: Any, told: Container[str]
) -> list[InitErrorDetails]:
    """Return what else is wrong."""
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


def _is_other(kind: type, value: Any) -> bool:
    """Return whether a value of JSON is of another type: true is no number, and 1 is not true."""
    return isinstance(value, str) or (value is not None and (kind is bool) != isinstance(value, bool))


@cache
def plain_fields(body: type[BaseModel]) -> dict[str, type]:
    """Return the fields that hold a number or true and false, by the name they are sent with."""
    kinds = {field.alias or name: plain_type(field.annotation) for name, field in body.model_fields.items()}
    return {name: kind for name, kind in kinds.items() if kind}


def plain_type(annotation: Any) -> type | None:
    """Return bool, int or float for what is that or null."""
    if annotation in (bool, int, float):
        return annotation  # type: ignore[no-any-return]
    inner = [each for each in get_args(annotation) if each is not type(None)]
    return (
        plain_type(inner[0]) if inner and (len(inner) == 1 or hasattr(annotation, "__metadata__")) else None
    )
