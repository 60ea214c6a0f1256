"""What a user's memory says already, for whoever is about to add to it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.db.models import Q

from chatapp.models import Conversation, Event, MemoryEntry

NEWEST_ENTRIES = 2_000


def known_texts(
    conversation: Conversation, *, compaction_id: UUID, first_id: UUID, last_id: UUID
) -> Iterator[tuple[str, str]]:
    """`(entry id, text)`, newest first, without the entry of this very span. In a scope, what its user said there:
    what is known of them elsewhere is not known to it."""
    of_span = Q(compaction=compaction_id) | Q(first_message_id=first_id, last_message_id=last_id)
    rows = MemoryEntry.objects.filter(user=conversation.user_id).exclude(of_span).order_by("-created_at")
    if conversation.scope_id is not None:
        rows = rows.filter(scope=conversation.scope_id)
    for entry_id, text in rows.values_list("pk", "text")[:NEWEST_ENTRIES].iterator():
        yield str(entry_id), text


def recalled_texts(conversation_id: UUID) -> Iterator[tuple[str, str]]:
    """What was brought back into the conversation: saying it again is no news. It has no source here."""
    rows = Event.objects.filter(conversation=conversation_id, type="recall")
    for payload in rows.values_list("payload", flat=True).iterator():
        for item in payload["items"]:
            yield "", item["preview"]
