"""What pages and programs see of conversations, by keyset, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from chatapp import row_shapes
from chatapp.models import Branch, Conversation, Message, Run, User
from chatapp.selectors.asides import asides_of
from chatapp.selectors.branches import visible_compactions
from chatapp.selectors.pieces import with_stored_pieces
from chatapp.selectors.retention import retention_days_of


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
    return [row_shapes.conversation_shape(row, days[row.owner_id], active.get(row.pk)) for row in rows]


def shape_conversation(row: Conversation) -> dict[str, Any]:
    return shape_conversations([row])[0]


def shape_messages(rows: Sequence[Message]) -> list[dict[str, Any]]:
    """With the run that wrote each answer, and what stands beside the messages."""
    answers = [row.pk for row in rows if row.role == Message.Role.ASSISTANT]
    runs = {run.answer_id: run for run in Run.objects.filter(answer__in=answers)}
    asides = asides_of(rows, runs)
    return [
        row_shapes.message_shape(row, runs.get(row.pk)) | asides.get(row.pk, {})
        for row in with_stored_pieces(rows)
    ]


def shape_message(row: Message) -> dict[str, Any]:
    return shape_messages([row])[0]


def compaction_list(branch: Branch) -> list[dict[str, Any]]:
    """All that cover only what this branch shows, oldest first."""
    rows = visible_compactions(branch).order_by("created_at", "first_position", "pk")
    return [row_shapes.compaction_shape(row) for row in rows]
