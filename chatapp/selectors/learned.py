"""What a user's memory says already, for whoever is about to add to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from django.db.models import Q

from chatapp import mapping
from chatapp.models import Compaction, Conversation, Event, MemoryEntry, Message

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


def recalled_texts(compaction: Compaction) -> Iterator[tuple[str, str]]:
    """What was brought back into its conversation, whole: saying it again is no news. It has no source here. What the
    span itself said first is news, though it came back meanwhile."""
    told = Event.objects.filter(conversation=compaction.conversation_id, type="recall")
    sources = [
        item["source"] for payload in told.values_list("payload", flat=True) for item in payload["items"]
    ]
    of_span = Q(
        conversation=compaction.conversation_id,
        position__gte=compaction.first_position,
        position__lte=compaction.last_position,
    )
    messages = Message.objects.filter(pk__in=_named(sources, "message_id")).exclude(of_span)
    for parts in messages.values_list("parts", flat=True).iterator():
        yield "", mapping.text_of(parts)
    entries = MemoryEntry.objects.filter(pk__in=_named(sources, "entry_id"))
    for text in entries.values_list("text", flat=True).iterator():
        yield "", text


def _named(sources: Iterable[Mapping[str, str]], name: str) -> set[str]:
    return {source[name] for source in sources if name in source}
