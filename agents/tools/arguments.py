"""The arguments of built-in tools: one pydantic model per tool, which also generates the schema for the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agents.tools.protocol import ToolFailure
from memory.strict_types import first_problem


class Arguments(BaseModel):
    """Forbids unknown fields. The caller is never an argument."""

    model_config = ConfigDict(frozen=True, extra="forbid")


A = TypeVar("A", bound=Arguments)


def schema_of(kind: type[Arguments]) -> dict[str, Any]:
    """Return the schema without the titles that pydantic adds, because they cost tokens."""
    schema = kind.model_json_schema()
    properties = {name: _untitled(field) for name, field in schema.get("properties", {}).items()}
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def _untitled(field: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in field.items() if name != "title"}


def read_arguments(kind: type[A], given: Mapping[str, Any]) -> A:
    """Validate the arguments. Raise ToolFailure, which tells the model what to correct."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        place, problem = first_problem(error)
        raise ToolFailure(f"{place or 'arguments'}: {problem}.") from None
