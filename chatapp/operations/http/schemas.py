"""Base schemas of bodies and responses, for validation and for the API's description."""

from __future__ import annotations

from functools import cache, partial
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from ninja import Schema
from ninja.operation import Operation
from ninja.params.models import ParamModel
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import json_or_python_schema

from chatapp.operations.database.text import normalize_text
from memory.bounds import MAX_ID_CHARS, MAX_NAME_CHARS, MAX_POLICY_FIELDS, Day
from memory.strict_types import StrictTypes
from memory.window.policy import ALIASES, ContextPolicy

# Build validators on first use, because a process uses few of all schemas.
_bases: list[type[BaseModel]] = [Schema, *ParamModel.__subclasses__()]
for _base in _bases:
    _base.model_config["defer_build"] = True
# Ninja creates a class for each status of each operation: 1,400 classes (11 MB), nearly all for the same Error. Share
# them between responses of the same type.
_operations: Any = Operation
_operations._create_response_model = staticmethod(cache(partial(_operations._create_response_model, None)))

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Item = TypeVar("Item")


class Shape(BaseModel):
    """A response. Fields may be added without notice."""

    model_config = ConfigDict(extra="allow", protected_namespaces=(), defer_build=True)


class ErrorBody(Shape):
    code: str = Field(description="For programs.")
    message: str = Field(description="One sentence for people.")
    details: Any = Field(None, description="For `invalid`: a list of `{field, message, type}`, at most 100.")


class Error(Shape):
    error: ErrorBody


class Page(Shape, Generic[Item]):
    items: list[Item]
    next_cursor: str | None


ALWAYS_POSSIBLE = (400, 401, 403, 413, 422, 429, 500, 503)


def answers(*statuses: int, **bodies: Any) -> dict[int, Any]:
    """Return the value for `response=`, e.g. `answers(404, ok=Run)`. Add the statuses that are always possible."""
    success = {{"ok": 200, "created": 201, "accepted": 202}[name]: body for name, body in bodies.items()}
    return {**(success or {204: None}), **dict.fromkeys(sorted({*ALWAYS_POSSIBLE, *statuses}), Error)}


def single_line(text: str) -> str:
    """Return the text on one line, with single spaces."""
    return " ".join(normalize_text(text, len(text)).split())


Name = Annotated[str, AfterValidator(single_line), Field(max_length=MAX_NAME_CHARS)]


Key = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]


class Body(StrictTypes):
    """A request body. Unknown fields are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), defer_build=True)


def _policy_field(name: str) -> tuple[Any, Any]:
    field = ContextPolicy.model_fields[name]
    return field.rebuild_annotation() | None, Field(None, description=field.description)


class PolicyDescription:
    """Describes a policy, which is validated by its level. Null means "not set here"."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        names = (*ContextPolicy.model_fields, *ALIASES)
        fields: dict[str, Any] = {name: _policy_field(ALIASES.get(name, name)) for name in names}
        described = create_model("PolicyFields", __base__=Body, **fields)
        return json_or_python_schema(handler.generate_schema(described), handler(source))


PolicyFields = Annotated[dict[str, Any], Field(max_length=MAX_POLICY_FIELDS), PolicyDescription()]


class Changes(Body):
    """Sent fields are changed. Null is refused, except for fields in NULLABLE, for which it means "none"."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        for name, field in handler.resolve_ref_schema(schema)["properties"].items():
            if name not in cls.NULLABLE and "anyOf" in field:
                field.pop("default", None)
                kept = [each for each in field.pop("anyOf") if each != {"type": "null"}]
                field |= kept[0] if len(kept) == 1 else {"anyOf": kept}
        return schema

    # Pydantic does not validate fields that are left out.
    @field_validator("*")
    @classmethod
    def _refuse_null(cls, value: Any, field: ValidationInfo) -> Any:
        if value is None and field.field_name not in cls.NULLABLE:
            raise ValueError("may be left out, but it cannot be null")
        return value

    def sent(self) -> dict[str, Any]:
        """Return the fields that were sent."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class MemorySettingsChanges(Changes):
    paused: bool | None = None
    review: bool | None = None
    profile: bool | None = None


class Period(BaseModel):
    start: Day | None = Field(None, alias="from", description="First day; 30 days ago by default.")
    end: Day | None = Field(None, alias="to", description="Last day; today by default.")


class UsagePeriod(Period):
    group_by: Literal["day", "model", "agent", "purpose", "conversation"] = "day"


class UsageOfAllPeriod(Period):
    group_by: Literal["day", "user", "group", "model", "agent", "purpose"] = "day"
    format: Literal["json", "csv"] = Field("json", description="`csv`: the same rows as a file.")
