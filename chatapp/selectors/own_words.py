"""Reads which messages their user really sent: what was imported, or said off the record, tells memory nothing new."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from chatapp.models import Message, Run
from chatapp.selectors.pauses import off_record


def sent_messages(user_id: UUID, message_ids: Iterable[UUID]) -> list[Message]:
    """Those of these messages that the user wrote in a chat that is remembered, in their order."""
    asked = Exists(Run.objects.filter(question=OuterRef("pk")))
    sent = Q(role=Message.Role.USER) & (Q(kind=Message.Kind.INJECTED) | asked)
    found = Message.objects.filter(sent, pk__in=list(message_ids), conversation__temporary=False)
    paused = off_record(user_id)
    return [
        row
        for row in found.order_by("created_at", "position", "pk")
        if not paused.covers(row.conversation_id, row.created_at)
    ]
