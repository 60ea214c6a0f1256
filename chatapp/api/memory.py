"""The daily memory and the search over everything that was said."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from ninja import Query, Router
from pydantic import Field

from chatapp import clock
from chatapp.api import shapes
from chatapp.api.auth import ApiRequest, allow
from chatapp.errors import InvalidInput, NotFound
from chatapp.memory_files import daily_entry
from chatapp.models import MemoryEntry, User
from chatapp.recall import search_memory, source_of
from chatapp.selectors.memory import day_entries, list_days
from chatapp.selectors.search import Found
from memory.daily import render_day

memory_router = Router(tags=["memory"])

Limit = Annotated[int, Field(ge=1, le=100)]
QueryText = Annotated[str, Field(max_length=2_000)]


class Day(shapes.Shape):
    day: date
    entry_count: int


class Entry(shapes.Shape):
    id: str
    text: str
    conversation_id: str | None
    first_message_id: str | None
    last_message_id: str | None
    created_at: shapes.Moment


class DayText(shapes.Shape):
    day: date
    markdown: str
    entries: list[Entry]


class Source(shapes.Shape):
    kind: str
    conversation_id: str | None = None
    message_id: str | None = None
    day: str | None = None


class Result(shapes.Shape):
    text: str
    source: Source
    score: float
    created_at: shapes.Moment


@memory_router.get("/memory/days", auth=allow("memory", "read"), response=shapes.answers(ok=shapes.Page[Day]))
async def days(request: ApiRequest, cursor: str | None = None, limit: Limit = 50) -> Any:
    """Days that hold memory entries, newest first."""
    return await sync_to_async(_days)(request.auth.user, cursor, limit)


def _days(user: User, cursor: str | None, limit: int) -> dict[str, Any]:
    found = list_days(user, before=_day_of_cursor(cursor), limit=limit + 1)
    page = found[:limit]
    return {
        "items": [{"day": item.day, "entry_count": item.entry_count} for item in page],
        "next_cursor": page[-1].day.isoformat() if len(found) > limit else None,
    }


def _day_of_cursor(cursor: str | None) -> date | None:
    try:
        return date.fromisoformat(cursor) if cursor else None
    except ValueError:
        details = [{"field": "cursor", "message": "Use next_cursor of the page before."}]
        raise InvalidInput("This cursor is not one of ours.", details=details) from None


@memory_router.get(
    "/memory/days/{day}", auth=allow("memory", "read"), response=shapes.answers(404, ok=DayText)
)
async def day_text(request: ApiRequest, day: str) -> Any:
    """One daily file: its Markdown, and its entries one by one."""
    return await sync_to_async(_day_text)(request.auth.user, day)


def _day_text(user: User, raw: str) -> dict[str, Any]:
    try:
        day = date.fromisoformat(raw)
    except ValueError:
        raise NotFound() from None
    rows = day_entries(user.pk, day)
    if not rows:
        raise NotFound("There is no memory of this day.")
    markdown = render_day(day, [daily_entry(row) for row in rows])
    return {"day": day, "markdown": markdown, "entries": [_entry(row) for row in rows]}


def _entry(row: MemoryEntry) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "text": row.text,
        "conversation_id": _text_or_none(row.conversation_id),
        "first_message_id": _text_or_none(row.first_message_id),
        "last_message_id": _text_or_none(row.last_message_id),
        "created_at": row.created_at.isoformat().replace("+00:00", "Z"),
    }


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


@memory_router.get(
    "/memory/search", auth=allow("memory", "read"), response=shapes.answers(ok=shapes.Page[Result])
)
async def search(request: ApiRequest, q: Query[QueryText], limit: Limit = 20) -> Any:
    """Every turn of yours and every memory entry, best match first. Dates and names in `q` count."""
    found = await sync_to_async(search_memory)(
        user_id=request.auth.user.pk, query=q, limit=limit, now=clock.now()
    )
    return {"items": [_result(item) for item in found], "next_cursor": None}


def _result(found: Found) -> dict[str, Any]:
    return {
        "text": found.text,
        "source": source_of(found),
        "score": round(found.score, 6),
        "created_at": found.said_at.isoformat().replace("+00:00", "Z"),
        "role": found.role or None,
    }
