"""What users say about being remembered: pause, resume, review, the profile."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from chatapp.models import Conversation, MemoryPause, User


@transaction.atomic
def update_memory_settings(*, user: User, changes: Mapping[str, bool], now: datetime) -> User:
    """`changes` holds columns by name: memory_paused, reviews_memory, uses_profile."""
    locked = User.objects.select_for_update().get(pk=user.pk)
    for name, value in changes.items():
        setattr(locked, name, value)
    locked.save(update_fields=list(changes))
    if "memory_paused" in changes:
        _note_pause(user, None, changes["memory_paused"], now)
    return locked


def note_pause(conversation: Conversation, now: datetime) -> None:
    """Called in the transaction that sets `memory` of the conversation, which it holds."""
    is_paused = conversation.memory == Conversation.Memory.PAUSED
    _note_pause(conversation.user, conversation, is_paused, now)


def _note_pause(user: User, conversation: Conversation | None, is_paused: bool, now: datetime) -> None:
    opened = MemoryPause.objects.filter(user=user, conversation=conversation, ended_at=None)
    if not is_paused:
        opened.update(ended_at=now)
    elif not opened.exists():
        MemoryPause.objects.create(user=user, conversation=conversation, began_at=now)
