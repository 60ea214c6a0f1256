"""What a user's memory says already, for whoever is about to add to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from django.db.models import Q, QuerySet

from chatapp import mapping
from chatapp.models import Compaction, EntryRevision, Event, MemoryEntry, Message

NEWEST_ENTRIES = 2_000


def known_texts(compaction: Compaction, *, first_id: UUID, last_id: UUID) -> Iterator[tuple[str, str]]:
    """`(entry id, text)`, newest first, without the entry of this very span. In a scope, what its user said there:
    what is known of them elsewhere is not known to it."""
    conversation = compaction.conversation
    of_span = Q(compaction=compaction) | Q(first_message_id=first_id, last_message_id=last_id)
    rows = MemoryEntry.objects.filter(user=conversation.user_id).exclude(of_span)
    if conversation.scope_id is not None:
        rows = rows.filter(scope=conversation.scope_id)
    newest = rows.order_by("-created_at", "-pk").values_list("pk", "text")
    for entry_id, text in newest[:NEWEST_ENTRIES].iterator():
        yield str(entry_id), text


def corrected_texts(compaction: Compaction) -> Iterator[tuple[str, str]]:
    """What entries of the same messages said before somebody edited them: it is not learned from these again. It has no
    source."""
    others = entries_of_the_same(compaction).exclude(compaction=compaction)
    edited = others.exclude(author=MemoryEntry.Author.EXTRACTION)
    texts = EntryRevision.objects.filter(entry__in=edited).values_list("text", flat=True)
    for text in texts.iterator():
        yield "", text


def entries_of_the_same(compaction: Compaction) -> QuerySet[MemoryEntry]:
    """Its own, and those of summaries of some of its messages that were undone."""
    return MemoryEntry.objects.filter(
        compaction__branch=compaction.branch_id,
        compaction__first_position__lte=compaction.last_position,
        compaction__last_position__gte=compaction.first_position,
    )


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
