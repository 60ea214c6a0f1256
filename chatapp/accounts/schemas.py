"""API schemas of users, settings and tokens, and the functions that build responses from rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from pydantic import AfterValidator, AwareDatetime, Field

from chatapp.accounts.models import ApiToken, User
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Body, Changes, Moment, Name, Shape, single_line
from memory.bounds import MAX_PASSWORD_CHARS

# Ten years with their leap days, so that a date ten years from now is always accepted.
MAX_TOKEN_LIFE = timedelta(days=3_660)
MAX_OWN_INSTRUCTIONS_CHARS = 8_000

Language = Literal["en", "zh-hans"]
Theme = Literal["system", "light", "dark"]
TextSize = Literal["small", "normal", "large"]
TextWidth = Literal["normal", "wide"]
SendKey = Literal["enter", "ctrl_enter"]


class Me(Shape):
    id: str
    email: str
    name: str
    time_zone: str
    is_admin: bool
    operators_read_chats: bool = Field(description="Whether operators may read your conversations.")
    scopes: list[str]
    created_at: Moment


def me_shape(user: User, scopes: Iterable[str]) -> dict[str, Any]:
    """Return the user as an API response, with the scopes of this request."""
    return {
        "id": str(user.pk),
        "email": user.email,
        "name": user.name,
        "time_zone": user.time_zone,
        "is_admin": user.is_superuser,
        "operators_read_chats": settings.OPERATORS_READ_CHATS,
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
    expires_at: Moment | None = Field(description="When it expires; null: never.")


class CreatedToken(Token):
    token: str | None = Field(
        description="The secret. It is shown only once: a repeat with the same `Idempotency-Key` has null."
    )


def token_shape(row: ApiToken) -> dict[str, Any]:
    """Return the token as an API response, without the secret, which is not stored."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "prefix": row.prefix,
        "scopes": row.scopes,
        "created_at": iso_time(row.created_at),
        "last_used_at": iso_time(row.last_used_at),
        "expires_at": iso_time(row.expires_at),
    }


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # for a path that leads out, and for a folder
        raise ValueError("is not the name of a time zone, such as Europe/Berlin") from None
    return name


TimeZone = Annotated[str, Field(max_length=64), AfterValidator(_time_zone)]


Scope = Literal["chat", "read", "memory", "admin"]


Password = Annotated[str, Field(max_length=MAX_PASSWORD_CHARS)]


def _expiry(moment: datetime) -> datetime:
    now = clock.now()
    if not now < moment <= now + MAX_TOKEN_LIFE:
        raise ValueError("must be in the future, and not more than ten years away")
    return moment.astimezone(UTC)


class NewToken(Body):
    name: Annotated[str, AfterValidator(single_line), Field(max_length=100)] = ""
    expires_at: Annotated[AwareDatetime, AfterValidator(_expiry)] | None = Field(
        None, description="When it expires; by default never."
    )
    password: Password | None = Field(
        None, description="Required if you signed in more than five minutes ago."
    )
    scopes: list[Scope] | None = Field(
        None, min_length=1, max_length=10, description="By default those of the caller, without admin."
    )


class MeChanges(Changes):
    name: Name | None = None
    time_zone: TimeZone | None = None


class Settings(Shape):
    language: str | None = Field(description="The language of the page; null: the browser's language.")
    theme: Theme
    text_size: TextSize
    text_width: TextWidth
    send_key: SendKey = Field(description="What sends a message: Enter, or Ctrl (⌘) and Enter.")
    notifications: bool = Field(description="Whether the page may notify, where the browser allows it.")
    instructions: str = Field(
        description="Sent to the model in every chat, after the instructions of its agent."
    )


class SettingsChanges(Changes):
    NULLABLE = frozenset({"language"})

    language: Language | None = None
    theme: Theme | None = None
    text_size: TextSize | None = None
    text_width: TextWidth | None = None
    send_key: SendKey | None = None
    notifications: bool | None = None
    instructions: Annotated[str, Field(max_length=MAX_OWN_INSTRUCTIONS_CHARS)] | None = None

    def columns(self) -> dict[str, Any]:
        """Return the sent fields, by column."""
        sent = self.sent()
        # The column is not nullable: it stores an empty string.
        return sent | ({"language": sent["language"] or ""} if "language" in sent else {})


class AccountDeletion(Body):
    password: Password | None = None
