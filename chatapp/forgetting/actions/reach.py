"""Locks all that a forgetting reaches before any of it is touched, so that no two writers wait for each other.

The order of locks is the clocks (`forget_clock`), consolidations, conversations, entries, indexes of users, indexes of
scopes, profiles. Rows of one kind are locked in one statement, in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import F, QuerySet

from chatapp.conversations.models import Conversation
from chatapp.long_term.models import Consolidation, MemoryEntry
from chatapp.recall.actions.indexing import lock_indexes_of


def lock_reach(
    user_id: UUID, conversation_ids: Iterable[UUID], entries: QuerySet[MemoryEntry], now: datetime
) -> list[Conversation]:
    """These conversations as they are now, and `entries` of the user, with the indexes of whoever they belong to.
    Called once in a transaction that forgets."""
    rows = Conversation.objects.filter(pk__in=set(conversation_ids))
    users = {user_id, *rows.values_list("user_id", flat=True)}
    restart_consolidations(users, now)
    locked = list(rows.select_for_update().order_by("pk"))
    list(entries.order_by("pk").select_for_update().values_list("pk"))
    lock_indexes_of(users)
    return locked


def restart_consolidations(user_ids: Iterable[UUID], now: datetime) -> None:
    """One under way has read what goes: it begins again. One that is being completed is waited for."""
    active = Consolidation.objects.filter(user__in=set(user_ids), status__in=Consolidation.ACTIVE)
    held = list(active.select_for_update().order_by("pk").values_list("pk", flat=True))
    Consolidation.objects.filter(pk__in=held).update(
        status=Consolidation.Status.PENDING, fence=F("fence") + 1, lease_expires_at=now
    )
