"""Conversations in the API: schemas of requests and responses, and the response built from a row."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from agents.loop.hooks import Hook
from chatapp.conversations import models
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Body, Changes, Moment, PolicyFields, Shape, single_line
from chatapp.runs.models import Run
from memory.bounds import MAX_HOOKS, MAX_ID, MAX_RETENTION_DAYS, MAX_TITLE_CHARS, Id

Title = Annotated[str, AfterValidator(single_line), Field(max_length=MAX_TITLE_CHARS)]
MemoryState = Literal["on", "paused"]
Mode = Literal["react", "plan", "auto"]
ConversationHooks = Annotated[
    list[Hook], Field(max_length=MAX_HOOKS, description="Its own, after the deployment's and the agent's.")
]


class NewConversation(Body):
    title: Title = ""
    model: Id | None = None
    agent: Id | None = Field(None, description="By id or name; null is the default.")
    folder: Id | None = Field(None, description="Its agent is the conversation's, where none is named.")
    mode: Mode | None = Field(None, description="How its messages are answered; null: as the agent says.")
    temporary: bool = False
    memory: MemoryState = "on"
    context_policy: PolicyFields | None = None
    hooks: ConversationHooks = []


class ConversationChanges(Changes):
    NULLABLE = frozenset({"model", "agent", "folder", "mode", "context_policy", "hooks"})

    title: Title | None = None
    model: Id | None = None
    agent: Id | None = None
    folder: Id | None = None
    mode: Mode | None = None
    pinned: bool | None = None
    archived: bool | None = None
    memory: MemoryState | None = None
    context_policy: PolicyFields | None = None
    hooks: ConversationHooks | None = None


class ImportHead(BaseModel):
    """All fields of an import except its messages."""

    title: Title = ""
    model: Id | None = None


class Imported(Shape):
    id: str
    message_count: int


class ActiveRun(Shape):
    id: str
    message_id: str


class Conversation(Shape):
    id: str
    title: str
    model: str | None
    agent: str | None
    folder: str | None = Field(description="The id of the folder it is in.")
    shared_memory_of: str | None = Field(
        description="The agent in whose shared memory it was started; it knows nothing private about you."
    )
    mode: Literal["react", "plan", "auto"] | None = Field(description="Null: as its agent says.")
    pinned: bool
    archived: bool
    temporary: bool
    memory: Literal["on", "paused"]
    hooks: list[dict[str, Any]] = Field(description="Its own, after the deployment's and the agent's.")
    message_count: int
    last_seq: int
    last_activity_at: Moment
    created_at: Moment
    expires_at: Moment | None
    active_run: ActiveRun | None
    unread: bool = Field(
        description="Whether an answer ended that no page in view has shown (`POST …/read`)."
    )
    waiting_calls: int = Field(description="How many tool calls wait for your approval.")


class ReadIn(Body):
    message_count: Annotated[int, Field(ge=0, le=MAX_ID)] = Field(
        description="The conversation's `message_count` when it was shown."
    )


def conversation_shape(
    row: models.Conversation, retention_days: int, active_run: Run | None, waiting_calls: int | None = None
) -> dict[str, Any]:
    """Return the row as the API and the event `conversation.updated` show it. The event omits `waiting_calls`, which
    `conversation.attention` reports."""
    shape = {
        "id": str(row.id),
        "title": row.title,
        "model": row.model.name if row.model else None,
        "agent": row.agent.name if row.agent else None,
        "folder": str(row.folder_id) if row.folder_id else None,
        "shared_memory_of": row.scope.name if row.scope else None,
        "mode": row.mode or None,
        "pinned": row.pinned,
        "archived": row.archived,
        "temporary": row.temporary,
        "memory": row.memory,
        "context_policy": row.context_policy,
        "hooks": row.hooks,
        "branch": str(row.branch_id),
        "message_count": row.next_position,
        "last_seq": row.last_seq,
        "last_activity_at": iso_time(row.last_activity_at),
        "created_at": iso_time(row.created_at),
        "expires_at": iso_time(expires_at(row, retention_days)),
        "active_run": {"id": str(active_run.id), "message_id": str(active_run.answer_id)}
        if active_run
        else None,
        # An answer counts as a message from its start, but is unread only once it has ended.
        "unread": active_run is None and row.next_position > row.read_count,
    }
    return shape if waiting_calls is None else {**shape, "waiting_calls": waiting_calls}


def days_kept(retention_days: int, *, temporary: bool) -> int:
    """Return after how many days without a message the clean-up removes a conversation; 0 = never."""
    if not temporary:
        return retention_days
    return min(retention_days, models.TEMPORARY_DAYS) if retention_days > 0 else models.TEMPORARY_DAYS


def expires_at(row: models.Conversation, retention_days: int) -> datetime | None:
    """Return when the clean-up may delete this conversation; None = never."""
    days = days_kept(retention_days, temporary=row.temporary)
    if days <= 0 or row.pinned:
        return None
    since = max(row.last_activity_at, row.kept_since or row.last_activity_at)
    return since + timedelta(days=min(days, MAX_RETENTION_DAYS))
