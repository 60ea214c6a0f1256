"""Returns a conversation in the trash to its user, to be restored, or to be deleted like any other."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.forgetting.models import Removal, TrashedConversation
from chatapp.long_term.actions.stale_days import mark_days_stale
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.access import parse_id
from chatapp.operations.errors import Conflict
from chatapp.recall.actions.indexing import move_documents

BUSY = "This chat is still being moved to the trash. Please try again in a moment."


def lock_trashed(
    user: User, conversation_id: str | UUID, now: datetime | None = None, *, locks: bool = True
) -> TrashedConversation | None:
    """Return the row, locked if `locks`; None if missing or due for deletion at `now`. Raise NotFound for a bad id."""
    rows = TrashedConversation.objects.filter(user=user, pk=parse_id(conversation_id))
    if locks:
        rows = rows.select_for_update()
    if now is not None:
        rows = rows.filter(purge_at__gt=now)
    return rows.first()


def return_to_user(row: TrashedConversation, *, discards_removal: bool = False) -> Conversation:
    """Return a conversation in the trash to its user, locked. The caller's transaction must hold `row` locked.

    Raise Conflict while the index is still being cleaned, unless the caller deletes the conversation
    (`discards_removal`).
    """
    work = Removal.objects.filter(conversation_id=row.pk)
    if discards_removal:
        work.delete()
    elif work.exists():
        raise Conflict(BUSY)
    Conversation.with_unowned.filter(pk=row.pk, user=None).update(user=row.user_id)
    conversation = Conversation.objects.select_for_update().get(pk=row.pk)
    entries = MemoryEntry.objects.filter(user=row.user_id, conversation=None, pk__in=map(UUID, row.entries))
    held = list(entries.select_for_update().order_by("pk").values_list("pk", "day"))
    mark_days_stale(row.user_id, tuple(sorted({day for _, day in held})))
    ids = [pk for pk, _ in held]
    MemoryEntry.objects.filter(pk__in=ids).update(conversation=conversation)
    # A caller that deletes it locks more entries later, and entries are locked before the index.
    if ids and not discards_removal:
        move_documents(row.user_id, ids, conversation.pk)
    TrashedConversation.objects.filter(pk=row.pk).delete()
    return conversation
