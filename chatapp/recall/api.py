"""The API of the search in messages and memory entries."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from ninja import Query

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.agent_presets.api import chosen_agent
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.folders.selectors import accessible_folder
from chatapp.conversations.selectors.conversations import titles_of
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers
from chatapp.recall.schemas import Result, SearchQuery, shown_shape
from chatapp.recall.selectors.user_index import DEFAULT_AGENT, SearchFilter
from chatapp.recall.user_search import search_marked

search_router = Router(tags=["memory"])

DAY_CHARS = len("2026-03-01")


@search_router.get("/memory/search", auth=allow("memory", "read"), response=answers(404, ok=Page[Result]))
def search(request: ApiRequest, asked: Query[SearchQuery]) -> Any:
    """Search all your conversations and memory entries, best match first. Dates and names in `q` affect the ranking.
    Days are those of your time zone."""
    user = request.auth.user
    zone = user.zone
    now = _moment("as_of", asked.as_of, zone, at_its_end=True) or clock.now()
    limits = [_moment("before", asked.before, zone), now if asked.as_of else None]
    here = accessible_conversation(user, asked.conversation_id) if asked.conversation_id else None
    only = SearchFilter(
        after=_moment("after", asked.after, zone),
        before=min((moment for moment in limits if moment), default=None),
        conversation_id=here.pk if here else None,
        folder_id=accessible_folder(user, asked.folder).pk if asked.folder else None,
        agent_id=_agent_id(user, asked.agent),
        role=asked.role or "",
    )
    results = search_marked(user=user, query=asked.q, limit=asked.limit, now=now, only=only)
    titles = titles_of(user, (result.found.conversation_id for result in results))
    return {"items": [shown_shape(result, asked.q, titles) for result in results], "next_cursor": None}


def _agent_id(user: User, name: str | None) -> UUID | Literal["default"] | None:
    if not name:
        return None
    agent = chosen_agent(user, name)
    return agent.pk if agent else DEFAULT_AGENT


def _moment(field: str, value: str | None, zone: ZoneInfo, *, at_its_end: bool = False) -> datetime | None:
    """Parse a time, or a day as its start. With `at_its_end`, return the first moment after it. Raise InvalidInput."""
    if not value:
        return None
    try:
        if len(value) == DAY_CHARS:
            day = date.fromisoformat(value) + timedelta(days=int(at_its_end))
            return datetime.combine(day, time(), zone).astimezone(UTC)
        moment = datetime.fromisoformat(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        # The filter excludes its end, but `at_its_end` includes the given moment.
        return moment.astimezone(UTC) + timedelta(microseconds=int(at_its_end))
    # OverflowError: the day after 9999-12-31, or a time close to it in another zone.
    except (OverflowError, ValueError):
        message = "must be a date like 2026-03-01, or an ISO 8601 time"
        raise InvalidInput(f"{field} {message}.", details=[{"field": field, "message": message}]) from None
