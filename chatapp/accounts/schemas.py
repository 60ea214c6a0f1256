"""Users and tokens as they come in and go out: what the API accepts, what it answers, and the answers made of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from chatapp.accounts.models import ApiToken, User
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Body, Changes, Moment, Name, Shape, single_line


class Me(Shape):
    id: str
    email: str
    name: str
    time_zone: str
    is_admin: bool
    scopes: list[str]
    created_at: Moment


def me_shape(user: User, scopes: Iterable[str]) -> dict[str, Any]:
    """Return the caller as the API answers it, with the scopes of this request."""
    return {
        "id": str(user.pk),
        "email": user.email,
        "name": user.name,
        "time_zone": user.time_zone,
        "is_admin": user.is_superuser,
        "scopes": sorted(scopes),
        "created_at": iso_time(user.date_joined),
    }


class Token(Shape):
    id: str
    name: str
    prefix: str
    scopes: list[str]
    created_at: Moment
    last_used_at: Moment | None


class CreatedToken(Token):
    token: str = Field(description="The secret. It is shown this once.")


def token_shape(row: ApiToken) -> dict[str, Any]:
    """Return the row as the API answers it, without the secret, which is not stored."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "prefix": row.prefix,
        "scopes": row.scopes,
        "created_at": iso_time(row.created_at),
        "last_used_at": iso_time(row.last_used_at),
    }


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not the name of a time zone, such as Europe/Berlin") from None
    return name


TimeZone = Annotated[str, Field(max_length=64), AfterValidator(_time_zone)]


Scope = Literal["chat", "read", "memory", "admin"]


class NewToken(Body):
    name: Annotated[str, AfterValidator(single_line), Field(max_length=100)] = ""
    scopes: list[Scope] | None = Field(
        None, min_length=1, max_length=10, description="By default those of the caller, without admin."
    )


class MeChanges(Changes):
    name: Name | None = None
    time_zone: TimeZone | None = None


class AccountDeletion(Body):
    password: str | None = Field(None, max_length=1_000, description="Asked of a page, not of a program.")
