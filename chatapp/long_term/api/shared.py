"""The API of shared memories for their readers: read-only, without the authors of entries."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import Field

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.scopes import accessible_scope, readable_scopes, shared_entries
from chatapp.operations.clock import iso_time
from chatapp.operations.http.cursors import read_page
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Moment, Page, Shape, answers
from memory.bounds import Cursor, PageSize

shared_router = Router(tags=["memory"])


class SharedMemory(Shape):
    agent_id: str
    agent: str
    entry_count: int


class SharedEntry(Shape):
    id: str
    day: str
    text: str
    is_mine: bool = Field(description="Whether this is your own entry, which you can edit or forget.")
    created_at: Moment


@shared_router.get(
    "/memory/shared",
    auth=allow("memory", "read"),
    response=answers(ok=Page[SharedMemory]),
)
def memories(request: ApiRequest) -> Any:
    """List the agents that you can use and whose memory is shared by all their users."""
    shared = [
        {"agent_id": str(agent.pk), "agent": agent.name, "entry_count": count}
        for agent, count in readable_scopes(request.auth.user)
    ]
    return {"items": shared, "next_cursor": None}


@shared_router.get(
    "/memory/shared/{agent_id}",
    auth=allow("memory", "read"),
    response=answers(404, ok=Page[SharedEntry]),
)
def entries(request: ApiRequest, agent_id: str, cursor: Cursor = None, limit: PageSize = 50) -> Any:
    """List the shared entries that chats with this agent can recall, newest first."""
    rows = shared_entries(accessible_scope(request.auth.user, agent_id))
    return read_page(rows, "created_at", cursor, limit, partial(_entry, request.auth.user))


def _entry(user: User, row: MemoryEntry) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "day": row.day.isoformat(),
        "text": row.text,
        "is_mine": row.user_id == user.pk,
        "created_at": iso_time(row.created_at),
    }
