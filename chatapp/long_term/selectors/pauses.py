"""Reads when memory was paused. Texts said during a pause are never learned, even after its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.models import MemoryPause
from chatapp.operations.caching.editions import cached_from_user_tables
from chatapp.runs.models import Run


@dataclass(frozen=True, slots=True)
class MemoryPauses:
    """Periods when nothing was learned: (conversation id, or None for all; begin; end, or None while it lasts)."""

    periods: Sequence[tuple[UUID | None, datetime, datetime | None]] = ()

    def __bool__(self) -> bool:
        return bool(self.periods)

    def covers(self, conversation_id: UUID | None, said_at: datetime) -> bool:
        return any(
            where in (None, conversation_id) and began <= said_at and (ended is None or said_at < ended)
            for where, began, ended in self.periods
        )


NO_PAUSES = MemoryPauses()


def pauses_of(user_id: UUID) -> MemoryPauses:
    def read() -> MemoryPauses:
        rows = MemoryPause.objects.filter(user_id=user_id)
        return MemoryPauses(tuple(rows.values_list("conversation_id", "began_at", "ended_at")))

    return cached_from_user_tables(user_id, "pauses", read)


def is_paused(conversation: Conversation) -> bool:
    """Return whether memory is paused: nothing is learned here, and nothing is recalled from elsewhere."""
    return conversation.memory == Conversation.Memory.PAUSED or conversation.user.memory_paused


def was_paused(conversation: Conversation, upto_position: int) -> bool:
    """Return whether anything up to this position was said while memory was paused."""
    where = Q(conversation=None) | Q(conversation=conversation)
    pauses = MemoryPause.objects.filter(where, user=conversation.user_id)
    said = Message.objects.filter(conversation=conversation, position__lte=upto_position)
    return any(
        said.filter(created_at__gte=began, created_at__lt=ended).exists()
        if ended
        else said.filter(created_at__gte=began).exists()
        for began, ended in pauses.values_list("began_at", "ended_at")
    )


def sent_messages(user_id: UUID, message_ids: Iterable[UUID]) -> list[Message]:
    """Return the messages among these that the user sent in a remembered chat while memory was not paused, oldest
    first."""
    # Imported messages have no run, and their requests to remember are old.
    asked = Exists(Run.objects.filter(question=OuterRef("pk")))
    sent = Q(role=Message.Role.USER) & (Q(kind=Message.Kind.INJECTED) | asked)
    found = Message.objects.filter(sent, pk__in=list(message_ids), conversation__temporary=False)
    paused = pauses_of(user_id)
    return [
        row
        for row in found.order_by("created_at", "position", "pk")
        if not paused.covers(row.conversation_id, row.created_at)
    ]
