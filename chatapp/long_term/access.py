"""Reads and locks entries by id, for one user. An entry of another user raises NotFound."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.access import find_row


def accessible_entry(user: User, entry_id: str | UUID) -> MemoryEntry:
    return find_row(
        MemoryEntry.objects.select_related("conversation", "user", "scope").filter(user=user), entry_id
    )


def lock_entry(user: User, entry_id: str | UUID) -> MemoryEntry:
    """Lock and return an entry of the user."""
    return _lock(MemoryEntry.objects.filter(user=user), entry_id)


def lock_shared_entry(entry_id: UUID) -> MemoryEntry:
    """Lock and return any user's entry of an agent's shared memory, like `lock_entry`. For operators."""
    return _lock(MemoryEntry.objects.filter(scope__isnull=False, state=MemoryEntry.State.KEPT), entry_id)


def _lock(rows: QuerySet[MemoryEntry], entry_id: str | UUID) -> MemoryEntry:
    conversation_id = find_row(rows, entry_id).conversation_id
    if conversation_id:  # locked first, as everywhere
        Conversation.objects.select_for_update().filter(pk=conversation_id).first()
    return find_row(rows.select_for_update(), entry_id)
