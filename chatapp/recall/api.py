"""The search over everything that was said, and over the memory entries."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from ninja import Query, Router, Schema
from pydantic import Field

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_conversation
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http import schemas as http_schemas
from chatapp.recall.search import search_memory, source_of
from chatapp.recall.selectors.search import SearchFilter
from chatapp.recall.validity import Standing, judge_found
from memory.bounds import MAX_ID_CHARS, MAX_QUERY_CHARS, Id, PageSize

search_router = Router(tags=["memory"])

DAY_CHARS = len("2026-03-01")


class Source(http_schemas.Shape):
    kind: str
    conversation_id: str | None = None
    message_id: str | None = None
    day: str | None = None


class Result(http_schemas.Shape):
    text: str
    source: Source
    score: float
    created_at: http_schemas.Moment
    valid_until: http_schemas.Moment | None = Field(None, description="Since then something else is so.")
    superseded_by: dict[str, Any] | None = None


class Asked(Schema):
    q: Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
    limit: PageSize = 20
    after: str | None = Field(
        None, max_length=MAX_ID_CHARS, description="A day or a moment (ISO 8601): said then or later."
    )
    before: str | None = Field(
        None, max_length=MAX_ID_CHARS, description="A day or a moment: said earlier than that."
    )
    as_of: str | None = Field(
        None,
        max_length=MAX_ID_CHARS,
        description="A day or a moment: as it was known then, said up to its end.",
    )
    conversation_id: Id | None = Field(None, description="Said in this conversation.")


@search_router.get(
    "/memory/search",
    auth=allow("memory", "read"),
    response=http_schemas.answers(404, ok=http_schemas.Page[Result]),
)
async def search(request: ApiRequest, asked: Query[Asked]) -> Any:
    """Every turn of yours and every memory entry, best match first. Dates and names in `q` count. Days are those of
    your time zone."""
    return await sync_to_async(_search)(request.auth.user, asked)


def _search(user: User, asked: Asked) -> dict[str, Any]:
    zone = ZoneInfo(user.time_zone)
    now = _moment("as_of", asked.as_of, zone, at_its_end=True) or clock.now()
    earlier = [_moment("before", asked.before, zone), now if asked.as_of else None]
    only = SearchFilter(
        after=_moment("after", asked.after, zone),
        before=min((moment for moment in earlier if moment), default=None),
        conversation_id=_conversation(user, asked.conversation_id),
    )
    found = search_memory(user_id=user.pk, query=asked.q, limit=asked.limit, now=now, only=only)
    standing = judge_found(user.pk, found, before=only.before)[: asked.limit]
    return {"items": [_result(item) for item in standing], "next_cursor": None}


def _conversation(user: User, conversation_id: str | None) -> Any:
    """Raises NotFound."""
    return accessible_conversation(user, conversation_id).pk if conversation_id else None


def _moment(field: str, value: str | None, zone: ZoneInfo, *, at_its_end: bool = False) -> datetime | None:
    """The moment itself, or the beginning of the day, or what comes right after either."""
    if not value:
        return None
    try:
        if len(value) == DAY_CHARS:
            day = date.fromisoformat(value) + timedelta(days=int(at_its_end))
            return datetime.combine(day, time(), zone).astimezone(UTC)
        moment = datetime.fromisoformat(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return moment.astimezone(UTC) + timedelta(microseconds=int(at_its_end))
    except (OverflowError, ValueError):
        message = "must be a date like 2026-03-01, or an ISO 8601 time"
        raise InvalidInput(f"{field} {message}.", details=[{"field": field, "message": message}]) from None


def _result(standing: Standing) -> dict[str, Any]:
    found, over = standing.found, standing.over
    return {
        "text": found.text,
        "source": source_of(found),
        "score": round(found.score, 6),
        "created_at": _iso(found.said_at),
        "role": found.role or None,
        "valid_until": _iso(over.until) if over else None,
        "superseded_by": {
            "text": over.text,
            "message_id": str(over.message_id) if over.message_id else None,
            "entry_id": str(over.entry_id) if over.entry_id else None,
            "created_at": _iso(over.until),
        }
        if over
        else None,
    }


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
