"""When memory was paused, and what was said meanwhile: off the record, also once the pause is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from chatapp.models import Conversation, MemoryPause, Message


@dataclass(frozen=True, slots=True)
class OffRecord:
    """`pauses` are (conversation, or None for everything; beginning; end, or None while it lasts)."""

    pauses: Sequence[tuple[UUID | None, datetime, datetime | None]] = ()

    def __bool__(self) -> bool:
        return bool(self.pauses)

    def covers(self, conversation_id: UUID | None, said_at: datetime) -> bool:
        return any(
            where in (None, conversation_id) and began <= said_at and (ended is None or said_at < ended)
            for where, began, ended in self.pauses
        )


ALL_ON_RECORD = OffRecord()


def off_record(user_id: UUID) -> OffRecord:
    rows = MemoryPause.objects.filter(user_id=user_id)
    return OffRecord(list(rows.values_list("conversation_id", "began_at", "ended_at")))


def is_paused(conversation: Conversation) -> bool:
    """Whether nothing is learned here now, and nothing recalled from elsewhere."""
    return conversation.memory == Conversation.Memory.PAUSED or conversation.user.memory_paused


def was_paused(conversation: Conversation, upto_position: int) -> bool:
    """Whether anything up to this position was said off the record."""
    where = Q(conversation=None) | Q(conversation=conversation)
    pauses = MemoryPause.objects.filter(where, user=conversation.user_id)
    said = Message.objects.filter(conversation=conversation, position__lte=upto_position)
    return any(
        said.filter(created_at__gte=began, created_at__lt=ended).exists()
        if ended
        else said.filter(created_at__gte=began).exists()
        for began, ended in pauses.values_list("began_at", "ended_at")
    )
