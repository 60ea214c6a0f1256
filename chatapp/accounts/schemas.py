"""What the API answers, for its description and as a check. `mapping` makes the values; more fields may be added."""

from __future__ import annotations

from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    Field,
)

from chatapp.operations.http.schemas import Body, Changes, Moment, Name, Shape, _line


class Me(Shape):
    id: str
    email: str
    name: str
    time_zone: str
    is_admin: bool
    scopes: list[str]
    created_at: Moment


class Token(Shape):
    id: str
    name: str
    prefix: str
    scopes: list[str]
    created_at: Moment
    last_used_at: Moment | None


class CreatedToken(Token):
    token: str = Field(description="The secret. It is shown this once.")


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not the name of a time zone, such as Europe/Berlin") from None
    return name


TimeZone = Annotated[str, Field(max_length=64), AfterValidator(_time_zone)]


Scope = Literal["chat", "read", "memory", "admin"]


class NewToken(Body):
    name: Annotated[str, AfterValidator(_line), Field(max_length=100)] = ""
    scopes: list[Scope] | None = Field(
        None, min_length=1, max_length=10, description="By default those of the caller, without admin."
    )


class MeChanges(Changes):
    name: Name | None = None
    time_zone: TimeZone | None = None


class AccountDeletion(Body):
    password: str | None = Field(None, max_length=1_000, description="Asked of a page, not of a program.")
