"""What pages and programs see of conversations, by keyset, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations import message_values, shapes
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.details import asides_of
from chatapp.conversations.models import Branch, Conversation, GroupRetention, Message
from chatapp.conversations.partial_answers import with_stored_pieces
from chatapp.operations.access import parse_id
from chatapp.operations.errors import Conflict, NotFound
from chatapp.runs.models import Run
from memory.bounds import MAX_RETENTION_DAYS


@dataclass(frozen=True, slots=True)
class Page:
    items: list[dict[str, Any]]
    next_cursor: str | None


def conversation_page(
    user: User, *, query: str, archived: bool, cursor: tuple[datetime, UUID] | None, limit: int
) -> tuple[list[Conversation], bool]:
    """One page and whether there are more."""
    rows = Conversation.objects.filter(user=user, archived=archived).select_related("model", "agent", "scope")
    if query:
        rows = rows.filter(title__icontains=query)
    if cursor is not None:
        moment, last_id = cursor
        rows = rows.filter(Q(last_activity_at__lt=moment) | Q(last_activity_at=moment, id__lt=last_id))
    found = list(rows.order_by("-last_activity_at", "-id")[: limit + 1])
    return found[:limit], len(found) > limit


def shape_conversations(rows: Sequence[Conversation]) -> list[dict[str, Any]]:
    active = {
        run.conversation_id: run for run in Run.objects.filter(conversation__in=rows, status__in=Run.ACTIVE)
    }
    days = retention_days_of((row.owner_id for row in rows), settings.RETENTION_DAYS)
    return [shapes.conversation_shape(row, days[row.owner_id], active.get(row.pk)) for row in rows]


def shape_conversation(row: Conversation) -> dict[str, Any]:
    return shape_conversations([row])[0]


def shape_messages(rows: Sequence[Message]) -> list[dict[str, Any]]:
    """With the run that wrote each answer, and what stands beside the messages."""
    answers = [row.pk for row in rows if row.role == Message.Role.ASSISTANT]
    runs = {run.answer_id: run for run in Run.objects.filter(answer__in=answers)}
    asides = asides_of(rows, runs)
    return [
        shapes.message_shape(row, runs.get(row.pk)) | asides.get(row.pk, {})
        for row in with_stored_pieces(rows)
    ]


def shape_message(row: Message) -> dict[str, Any]:
    return shape_messages([row])[0]


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Oldest first. An empty page does not say what is beside it."""

    rows: list[Message]
    has_older: bool
    has_newer: bool

    @property
    def older_cursor(self) -> str | None:
        return str(self.rows[0].position) if self.rows and self.has_older else None

    @property
    def newer_cursor(self) -> str | None:
        return str(self.rows[-1].position) if self.rows and self.has_newer else None


def newest_page(branch: Branch, limit: int) -> MessagePage:
    rows, has_older = _cut(list(visible_messages(branch).order_by("-position")[: limit + 1]), limit)
    return MessagePage(rows[::-1], has_older, has_newer=False)


def page_before(branch: Branch, position: int, limit: int) -> MessagePage:
    seen = visible_messages(branch)
    older = seen.filter(position__lt=position).order_by("-position")
    rows, has_older = _cut(list(older[: limit + 1]), limit)
    return MessagePage(rows[::-1], has_older, seen.filter(position__gte=position).exists())


def page_after(branch: Branch, position: int, limit: int) -> MessagePage:
    newer = visible_messages(branch, position).order_by("position")
    rows, has_newer = _cut(list(newer[: limit + 1]), limit)
    return MessagePage(rows, visible_messages(branch).filter(position__lte=position).exists(), has_newer)


def page_around(branch: Branch, message: Message, limit: int) -> MessagePage:
    """With the message in the middle. Raises Conflict where the branch does not show it."""
    from_here = page_after(branch, message.position - 1, limit - limit // 2)
    if message not in from_here.rows:
        raise Conflict("This message stands in another branch; turn to it first.", code="other_branch")
    before = page_before(branch, message.position, limit // 2)
    return MessagePage(before.rows + from_here.rows, before.has_older, from_here.has_newer)


def _cut(found: list[Message], limit: int) -> tuple[list[Message], bool]:
    return found[:limit], len(found) > limit


@dataclass(frozen=True, slots=True)
class StoredText:
    conversation_id: str
    text: str
    is_growing: bool


def stored_answer_text(user: User, message_id: str) -> StoredText:
    row = Message.objects.filter(pk=parse_id(message_id), conversation__user=user).first()
    if row is None:
        raise NotFound()
    is_growing = row.status == Message.Status.STREAMING
    with_stored_pieces([row])
    return StoredText(str(row.conversation_id), message_values.text_of(row.parts), is_growing)


def is_queued(message: Message) -> bool:
    """Whether it was sent into the run that is going on, and no model call has seen it."""
    if message.kind != Message.Kind.INJECTED or message.forgotten_at is not None:
        return False
    runs = Run.objects.filter(conversation=message.conversation_id, status__in=Run.ACTIVE)
    return runs.filter(answer__branch=message.branch_id, answer__position__lt=message.position).exists()


def retention_days_of(user_ids: Iterable[UUID], default_days: int) -> Mapping[UUID, int]:
    """By user: the longest period of their groups, else the default."""
    users = set(user_ids)
    found: dict[UUID, list[int]] = {user_id: [] for user_id in users}
    rows = GroupRetention.objects.filter(group__user__in=users).values_list("group__user", "days")
    for user_id, days in rows:
        found[user_id].append(days)
    return {user_id: _longest(periods) if periods else default_days for user_id, periods in found.items()}


def _longest(periods: Iterable[int]) -> int:
    periods = list(periods)
    return 0 if min(periods) <= 0 else max(periods)


def _is_period(days: int) -> bool:
    """What is no number of days deletes nothing, whoever entered it."""
    return 0 < days <= MAX_RETENTION_DAYS


def idle_conversations(now: datetime, default_days: int) -> list[tuple[UUID, datetime]]:
    """`(conversation_id, idle_since)`, longest idle first. A hint: what is deleted is decided under a lock."""
    periods = [default_days, *GroupRetention.objects.values_list("days", flat=True)]
    shortest = min(filter(_is_period, periods), default=None)
    if shortest is None:
        return []
    rows = Conversation.objects.filter(pinned=False, last_activity_at__lt=now - timedelta(days=shortest))
    idle = list(rows.order_by("last_activity_at", "pk").values_list("pk", "user_id", "last_activity_at"))
    days_of = retention_days_of((user_id for _, user_id, _ in idle), default_days)
    since = {user_id: now - timedelta(days=days) for user_id, days in days_of.items() if _is_period(days)}
    return [
        (conversation_id, since[user_id])
        for conversation_id, user_id, last_activity_at in idle
        if user_id in since and last_activity_at < since[user_id]
    ]


def scope_for(agent: Agent | None, *, temporary: bool) -> Agent | None:
    """Of a conversation that begins with this agent now."""
    is_open = agent is not None and agent.enabled and agent.shares_memory and agent.uses_memory
    return agent if is_open and not temporary else None
